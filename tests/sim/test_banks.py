"""Do banks serve what lies in them, one access after the other, and never faster than the rate?"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from arch.errors import InputError
from arch.load import load_architecture
from arch.spec import Banks
from mapper.cost import Price
from mapper.program import Program
from mapper.search.network import map_workload
from mapper.workload.load import load_workload
from sim.devices.banked_sram import QUIET, WORKING, new_banks, port_constants, touch
from sim.engine import simulate
from sim.models import cost_model
from sim.ports import Prices
from sim.prices import price
from sim.replay.engine import replay, run_schedule
from sim.schedule import build_schedule, busy_ps
from tests.conformance.suite import FamilyConformance
from tests.sim.programs import PRICES, compute, hold, load, program, repeat
from tests.sim.random_programs import Shape, random_prices, random_program

#: A byte takes 8 ps at the full rate, 32 ps in one of four banks.
RATE = Fraction(1)
SIDES = {"x": Price(), "y": Price()}


def banked(interleave: int, *, count: int = 4, shared: bool = False) -> Prices:
    gbuf = Price(
        read_ps_per_bit=RATE,
        write_ps_per_bit=RATE,
        shared_port=shared,
        banks=Banks(count=count, interleave_bytes=interleave),
    )
    return {**PRICES, **SIDES, "gbuf": gbuf}


def latency_ps(given: Program, prices: Prices) -> int:
    schedule = build_schedule(given, prices)
    latency = simulate(schedule)
    assert replay(schedule).latency_ps == latency
    return latency


@pytest.mark.parametrize(("size", "most_in_one_bank"), [(1, 1), (4, 1), (5, 2), (8, 2), (13, 4)])
def test_an_access_takes_as_long_as_its_fullest_bank(size: int, most_in_one_bank: int) -> None:
    given = program(hold(0, compute(1), load=load(8 * size, "x")))
    assert latency_ps(given, banked(1)) == 32 * most_in_one_bank + 1


@pytest.mark.parametrize(("interleave", "expected"), [(1, 32), (2, 32), (64, 64)])
def test_tiles_in_different_banks_do_not_wait(interleave: int, expected: int) -> None:
    """One byte each, in the slots of two operands: at bytes 0 and 2."""
    inner = hold(1, compute(1), load=load(8, "y"))
    given = program(hold(0, inner, load=load(8, "x")))
    assert latency_ps(given, banked(interleave)) == expected + 1


def test_two_slots_may_be_in_two_banks() -> None:
    """Tiles of two bytes one after the other; with two bytes in a bank each slot has its own."""
    given = program(repeat(8, hold(0, compute(1), load=load(16, "x"))))
    in_turn = build_schedule(given, banked(2))
    assert replay(in_turn).latency_ps == simulate(in_turn) == 8 * 64 + 1
    together = build_schedule(given, banked(1))
    assert replay(together).latency_ps == 8 * 32 + 1


def test_reads_meet_writes_in_a_bank_with_one_port() -> None:
    """The second tile of operand 0 is read into l1 while operand 1's is written."""
    inner = hold(0, compute(1), load=load(32, "gbuf", "l1"), memory="l1")
    given = program(hold(0, hold(1, inner, load=load(32, "y")), load=load(32, "x")))
    own, one = banked(1), banked(1, shared=True)
    assert latency_ps(given, {**own, "l1": Price()}) == 32 + 32 + 1
    assert latency_ps(given, {**one, "l1": Price()}) == 32 + 32 + 32 + 1


@pytest.mark.parametrize("seed", range(40))
def test_banks_share_the_rate(seed: int) -> None:
    """Against counting bytes one by one; never faster than the whole rate."""
    rng = np.random.default_rng(seed)
    banks = Banks(count=int(rng.integers(2, 9)), interleave_bytes=int(rng.integers(1, 9)))
    per_bit = Fraction(int(rng.integers(1, 9)), int(rng.integers(1, 9)))
    constants = port_constants(banks, per_bit)
    state = new_banks(constants)
    free, ready, moved = [0] * banks.count, 0, 0
    for _ in range(30):
        ready += int(rng.integers(0, 60))
        address, size = (int(rng.integers(low, 90)) for low in (0, 1))
        moved += size
        ends = [ready]
        for bank in range(banks.count):
            here = sum(
                (byte // banks.interleave_bytes) % banks.count == bank
                for byte in range(address, address + size)
            )
            if here:
                free[bank] = max(free[bank], ready) + -(-here * 8 * per_bit * banks.count // 1)
                ends.append(free[bank])
        assert touch(state, constants, address, size, ready) == max(ends)
    assert state[QUIET] == max(free)
    assert moved * 8 * per_bit <= state[WORKING] <= state[QUIET]


def random_banks(rng: np.random.Generator, prices: dict[str, Price]) -> dict[str, Price]:
    def some() -> Banks | None:
        count, interleave = int(rng.integers(2, 9)), int(rng.choice([1, 2, 8, 64]))
        return Banks(count=count, interleave_bytes=interleave) if rng.random() < 0.7 else None

    return {
        name: each
        if name == "unit" or 0 in (each.read_ps_per_bit, each.write_ps_per_bit)
        else replace(each, banks=some())
        for name, each in prices.items()
    }


@pytest.mark.parametrize("seed", range(60))
def test_engines_agree_and_the_gap_is_accounted_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices = random_banks(rng, random_prices(rng))
    shape = Shape(loops=int(rng.integers(1, 4)), count=5, inputs=3, kept=0.9)
    schedule = build_schedule(random_program(rng, shape), prices)
    if not schedule.banked:
        return
    latency = simulate(schedule)
    assert simulate(schedule, skip_ahead=False) == replay(schedule).latency_ps == latency
    busy = busy_ps(schedule.body)
    for port in schedule.ports:
        assert busy[port] <= latency or port in schedule.banked
        done = run_schedule(schedule, port)
        assert min(done.lost_ps.values()) >= 0
        working = busy[port] if done.working_ps is None else done.working_ps
        assert sum(done.lost_ps.values()) + working <= latency


def test_conflicts_are_a_cause_of_their_own() -> None:
    """Rows of a matrix that are shorter than a bank's chunk leave the other banks idle."""
    overrides = {"gbuf.banks": 16, "gbuf.interleave": "16 KiB"}
    workload = load_workload("gemm:M=64,N=256,K=256")
    architecture = load_architecture("edge_npu", overrides)
    found = map_workload(workload, architecture, price, "edp")
    mappings = {name: result.mapping for name, result in found.items()}
    one, quick, careful = (
        cost_model(fidelity).evaluate(workload, where, mappings)
        for fidelity, where in (
            ("event", load_architecture("edge_npu")),
            ("analytical", architecture),
            ("event", architecture),
        )
    )
    assert quick.latency_ps < one.latency_ps < careful.latency_ps
    assert sum(careful.gap.values()) == careful.latency_ps - quick.latency_ps
    assert careful.dynamic_energy_pj == one.dynamic_energy_pj


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"gbuf.interleave": "32 B"}, "needs several 'banks'"),
        ({"gbuf.banks": 0}, "allowed 1 to 256"),
        ({"gbuf.banks": 3}, "equal banks"),
        ({"gbuf.banks": 4, "gbuf.interleave": "3 B"}, "equal banks"),
        ({"gbuf.banks": 4, "gbuf.interleave": "1 MiB"}, "equal banks"),
        ({"gbuf.banks": 4, "gbuf.queue": 2}, "in the order of the requests"),
        ({"gbuf.banks": 4, "gbuf.read_bandwidth": "unlimited"}, "must be a number"),
    ],
)
def test_what_would_have_no_effect_is_refused(overrides: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_architecture("edge_npu", overrides)


class TestBanked(FamilyConformance):
    architecture = "banked_npu"

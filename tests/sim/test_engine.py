"""Does the event engine do what its semantics say? Closed forms, ties, and a second opinion."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from mapper.cost import Price
from mapper.program import Compute, Program, TileOp, Work
from sim.deadlock import DeadlockError
from sim.engine import Listeners, simulate
from sim.ports import Prices
from sim.process import Process
from sim.schedule import PricedOp, build_schedule, busy_ps
from tests.sim.programs import PRICES, compute, hold, load, program, repeat, store
from tests.sim.random_programs import Shape, random_prices, random_program
from tests.sim.reference import reference_latency_ps


def latency_ps(given: Program, prices: Prices = PRICES) -> int:
    return simulate(build_schedule(given, prices))


@pytest.mark.parametrize(("transfer", "work"), [(5, 9), (9, 5), (7, 7)])
@pytest.mark.parametrize("tiles", [2, 3, 50])
def test_double_buffered_loads_overlap_with_compute(transfer: int, work: int, tiles: int) -> None:
    given = program(repeat(tiles, hold(0, compute(work), load=load(transfer))))
    slower = max(transfer, work)
    assert latency_ps(given) == transfer + work + (tiles - 1) * slower


@pytest.mark.parametrize("tiles", [1, 2, 50])
def test_single_buffer_does_one_thing_at_a_time(tiles: int) -> None:
    tile = hold(0, compute(9), load=load(5), store=store(4), slots=1)
    assert latency_ps(program(repeat(tiles, tile))) == tiles * (5 + 9 + 4)


@pytest.mark.parametrize("slots", [1, 2, 3, 4])
def test_loader_runs_ahead_as_far_as_there_are_slots(slots: int) -> None:
    """A long computation after `slots` tiles: only so many loads are hidden behind it."""
    first, later = hold(0, compute(100), load=load(10), slots=slots), 5
    rest = repeat(later, hold(0, compute(0), load=load(10), slots=slots))
    exposed = later - (slots - 1)
    assert latency_ps(program(first, rest)) == 10 + 100 + 10 * exposed


def test_results_appear_after_the_latency_but_the_next_tile_starts_at_once() -> None:
    prices = {**PRICES, "unit": Price(step_ps=1, latency_ps=1000)}
    assert latency_ps(program(repeat(3, compute(10))), prices) == 3 * 10 + 1000
    stored = program(repeat(3, hold(2, compute(10), store=store(1), slots=3)))
    assert latency_ps(stored, prices) == 3 * 10 + 1000 + 1


def test_latency_of_a_transfer_is_the_largest_of_its_components() -> None:
    prices = {**PRICES, "dram": replace(PRICES["dram"], latency_ps=70), "gbuf": Price(latency_ps=9)}
    assert latency_ps(program(hold(0, compute(1), load=load(5))), prices) == 5 + 70 + 1


def test_two_loaders_share_a_port() -> None:
    given = program(hold(0, hold(1, compute(1), load=load(8)), load=load(5)))
    assert latency_ps(given) == 5 + 8 + 1


def test_separate_ports_do_not_wait_for_each_other() -> None:
    """Loads and stores on two ports of the memory overlap, on one shared port they add up."""
    tile = hold(0, hold(2, compute(0), store=store(10)), load=load(10))
    given = program(repeat(100, tile))
    shared = {**PRICES, "dram": replace(PRICES["dram"], shared_port=True)}
    assert latency_ps(given) == 101 * 10
    assert latency_ps(given, shared) == 200 * 10


def test_inner_tile_comes_out_of_the_outer_one() -> None:
    inner = hold(0, compute(1), load=load(3, "gbuf", "l1"), memory="l1")
    prices = {**PRICES, "gbuf": Price(read_ps_per_bit=Fraction(1)), "l1": Price()}
    assert latency_ps(program(hold(0, inner, load=load(50))), prices) == 50 + 3 + 1
    other = hold(1, compute(1), load=load(3, "gbuf", "l1"), memory="l1")
    assert latency_ps(program(hold(0, other, load=load(50))), prices) == 50 + 1


def test_outer_tile_is_stored_after_the_inner_one() -> None:
    inner = hold(2, compute(1), store=store(30, "l1", "gbuf"), memory="l1")
    prices = {**PRICES, "gbuf": Price(write_ps_per_bit=Fraction(1)), "l1": Price()}
    assert latency_ps(program(hold(2, inner, store=store(50))), prices) == 1 + 30 + 50


def test_a_tile_without_a_store_is_kept_until_the_inner_ones_are_stored() -> None:
    inner = hold(2, compute(1), store=store(30, "l1", "gbuf"), memory="l1")
    prices = {**PRICES, "gbuf": Price(write_ps_per_bit=Fraction(1)), "l1": Price()}
    given = program(repeat(2, hold(2, inner, slots=1)))
    assert latency_ps(given, prices) == 2 * (1 + 30)


def test_an_input_slot_is_free_before_the_output_is_stored() -> None:
    tile = hold(0, hold(2, compute(10), store=store(1000), slots=5), load=load(10), slots=1)
    assert latency_ps(program(tile, tile)) == 2 * (10 + 10) + 1000 + (1000 - 20)


def test_at_equal_times_compute_goes_before_a_loader() -> None:
    """At 10 ps the tile is there: compute and the next load both want the port."""
    shared = {"dram": Price(read_ps_per_bit=Fraction(1), shared_port=True), "gbuf": Price()}
    work = Compute(TileOp("compute", (("dram", Work(read_bits=3)),)))
    order: list[tuple[str, int]] = []

    def note(
        process: Process, op: PricedOp, issued: int, served: list[tuple[str, int, int]]
    ) -> None:
        order.append((op.name, issued))

    given = build_schedule(program(repeat(2, hold(0, work, load=load(10)))), shared)
    simulate(given, listeners=Listeners(issue=note, skip=lambda skip: None))
    assert order[:3] == [("load 10", 0), ("compute", 10), ("load 10", 10)]


def test_a_deadlock_says_who_waits_for_what() -> None:
    """One slot, but a tile inside a tile of the same stage needs two."""
    given = program(hold(0, hold(0, compute(1), load=load(1), slots=1), load=load(1), slots=1))
    with pytest.raises(DeadlockError, match="compute waits for tile of operand 0 in gbuf"):
        latency_ps(given)


def test_a_stage_has_one_number_of_slots() -> None:
    given = program(hold(0, compute(1), slots=1), hold(0, compute(1), slots=2))
    with pytest.raises(ValueError, match="operand 0 in gbuf has both 1 and 2 slots"):
        latency_ps(given)


def test_an_empty_program_takes_no_time() -> None:
    assert latency_ps(program()) == 0


@pytest.mark.parametrize("seed", range(150))
def test_engine_equals_the_unrolled_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices = random_prices(rng)
    given = random_program(rng, Shape(loops=int(rng.integers(1, 4)), count=5))
    assert latency_ps(given, prices) == reference_latency_ps(given, prices)


@pytest.mark.parametrize("seed", range(40))
def test_a_port_serves_one_request_at_a_time_and_as_long_as_planned(seed: int) -> None:
    rng = np.random.default_rng(seed)
    schedule = build_schedule(random_program(rng, Shape(loops=3, count=4)), random_prices(rng))
    served: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def note(p: Process, op: PricedOp, issued: int, ports: list[tuple[str, int, int]]) -> None:
        for port, start, end in ports:
            assert issued <= start < end
            served[port].append((start, end))

    listeners = Listeners(issue=note, skip=lambda skip: None)
    latency = simulate(schedule, skip_ahead=False, listeners=listeners)
    for spans in served.values():
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        assert spans[-1][1] <= latency
    assert {p: sum(b - a for a, b in s) for p, s in served.items()} == busy_ps(schedule.body)

"""Is skipping ahead exact, and does it skip?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mapper.program import Program
from sim.engine import Listeners, simulate
from sim.ports import Prices
from sim.process import Process
from sim.schedule import PricedOp, build_schedule
from sim.steady import Skip
from tests.sim.programs import PRICES, compute, hold, load, program, repeat, store
from tests.sim.random_programs import Shape, random_prices, random_program

CASES = 320
CHUNKS = 16


class Counting:
    """Counts issued operations and skips."""

    def __init__(self) -> None:
        self.issued = 0
        self.skips: list[Skip] = []

    def listeners(self) -> Listeners:
        return Listeners(issue=self._issue, skip=self.skips.append)

    def _issue(self, p: Process, op: PricedOp, at: int, served: list[tuple[str, int, int]]) -> None:
        self.issued += 1


def skipping(given: Program, prices: Prices) -> tuple[int, Counting]:
    counting = Counting()
    return simulate(build_schedule(given, prices), listeners=counting.listeners()), counting


def in_full(given: Program, prices: Prices) -> int:
    return simulate(build_schedule(given, prices), skip_ahead=False)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_skipping_changes_no_latency(chunk: int) -> None:
    """Nested loops, ragged tails, holds at several depths, one and two slots, shared ports."""
    programs_with_skips = 0
    for seed in range(chunk, CASES, CHUNKS):
        rng = np.random.default_rng(seed)
        prices = random_prices(rng)
        shape = Shape(loops=int(rng.integers(1, 5)), count=int(rng.choice([6, 20, 60])))
        given = random_program(rng, shape)
        if sum(count for count, _ in given.tile_ops()) > 4000:
            continue
        latency, counting = skipping(given, prices)
        assert latency == in_full(given, prices), f"seed {seed}"
        programs_with_skips += bool(counting.skips)
    assert programs_with_skips >= CASES // CHUNKS // 4


def million() -> Program:
    tile = hold(0, hold(2, compute(7), store=store(3)), load=load(5))
    return program(repeat(10**6, tile))


def nested_million() -> Program:
    inner = repeat(1000, hold(0, hold(2, compute(7), store=store(3)), load=load(5)))
    return program(repeat(1000, hold(1, inner, load=load(1111))))


@pytest.mark.parametrize("make", [million, nested_million])
def test_a_million_iterations_cost_no_more_than_a_few(make: Callable[[], Program]) -> None:
    latency, counting = skipping(make(), PRICES)
    assert counting.issued < 2000
    assert latency > 7 * 10**6


def test_the_latency_of_a_million_iterations_is_the_closed_form() -> None:
    assert skipping(million(), PRICES)[0] == 5 + 7 * 10**6 + 3


@pytest.mark.parametrize("slots", [2, 3])
@pytest.mark.parametrize("transfer", [*range(380, 440), 3999, 4000, 4001])
def test_a_long_transfer_that_ends_during_the_loop_ends_then(transfer: int, slots: int) -> None:
    """The next weights arrive, and their loader goes on, while the inner loop is in steady state.

    The transfer ends shortly before, at and after the boundaries of the loop's iterations.
    """
    inner = repeat(60, hold(0, compute(7), load=load(2, "aux")))
    body = hold(1, inner, load=load(transfer), slots=slots)
    other = hold(3, compute(1), load=load(transfer // 3), slots=1)
    given = program(repeat(6, body, other))
    prices = {**PRICES, "aux": PRICES["dram"]}
    latency, counting = skipping(given, prices)
    assert counting.skips
    assert latency == in_full(given, prices)


def test_skips_say_what_they_stand_for() -> None:
    """Iterations simulated and skipped add up; every port's share takes as long as the skip."""
    _, counting = skipping(million(), PRICES)
    (skip,) = counting.skips
    per_iteration = 3
    assert counting.issued == per_iteration * (10**6 - skip.iterations)
    assert skip.span_ps == 7 * skip.iterations
    assert set(skip.port_from_ps) == {"dram.read", "dram.write", "unit"}
    assert len(skip.process_from_ps) == 4


def test_short_loops_are_simulated() -> None:
    _, counting = skipping(program(repeat(3, compute(5))), PRICES)
    assert (counting.issued, counting.skips) == (3, [])


@pytest.mark.parametrize("slots", [1, 2, 7, 40, 300])
def test_a_loop_that_settles_late_is_found_then(slots: int) -> None:
    """The loader gains 1 ps per iteration until its slots are full: after 10 * slots or so."""
    given = program(repeat(20_000, hold(0, compute(11), load=load(10), slots=slots)))
    latency, counting = skipping(given, PRICES)
    assert latency == in_full(given, PRICES)
    assert counting.issued < 2 * (13 * slots + 200)


@pytest.mark.parametrize("speeds", [(5, 6), (7, 11), (10, 1), (3, 8)])
def test_loaders_of_unrelated_speed_on_one_port(speeds: tuple[int, int]) -> None:
    fast, slow = (load(bits) for bits in speeds)
    inner = hold(1, compute(9), load=slow, slots=3)
    given = program(repeat(3000, hold(0, repeat(5, inner), load=fast)))
    assert skipping(given, PRICES)[0] == in_full(given, PRICES)

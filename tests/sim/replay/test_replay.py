"""Is the compiled engine the readable one, to the picosecond, and does it skip as exactly?"""

from __future__ import annotations

import numpy as np
import pytest

from mapper.cost import Price
from mapper.program import Program
from sim.deadlock import DeadlockError
from sim.engine import simulate
from sim.replay.engine import Replayed, replay
from sim.schedule import build_schedule, busy_ps
from tests.sim.programs import PRICES, compute, hold, load, program, repeat, store
from tests.sim.random_programs import Shape, random_prices, random_program
from tests.sim.reference import reference_latency_ps

CASES = 400
CHUNKS = 8
#: Larger programs are not simulated in full.
MOST_OPERATIONS = 4000


def random_case(seed: int) -> tuple[Program, dict[str, Price]]:
    rng = np.random.default_rng(seed)
    prices = random_prices(rng)
    shape = Shape(loops=int(rng.integers(1, 5)), count=int(rng.choice([6, 20, 60])))
    return random_program(rng, shape), prices


def operations(given: Program) -> int:
    return sum(count for count, _ in given.tile_ops())


def check_equal(seed: int) -> None:
    given, prices = random_case(seed)
    if operations(given) > MOST_OPERATIONS:
        return
    schedule = build_schedule(given, prices)
    expected = simulate(schedule)
    assert replay(schedule).latency_ps == expected, f"seed {seed}"
    assert replay(schedule, skip_ahead=False).latency_ps == expected, f"seed {seed}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_replay_equals_simpy(chunk: int) -> None:
    for seed in range(chunk, CASES, CHUNKS):
        check_equal(seed)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(16))
def test_replay_equals_simpy_on_ten_thousand_programs(chunk: int) -> None:
    for seed in range(CASES + chunk, CASES + 14_000, 16):
        check_equal(seed)


@pytest.mark.parametrize("seed", range(60))
def test_replay_equals_the_unrolled_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices = random_prices(rng)
    given = random_program(rng, Shape(loops=int(rng.integers(1, 4)), count=5))
    expected = reference_latency_ps(given, prices)
    assert replay(build_schedule(given, prices)).latency_ps == expected


def ten_million() -> Program:
    tile = hold(0, hold(2, compute(7), store=store(3)), load=load(5))
    return program(repeat(10**7, tile))


def test_ten_million_iterations_are_skipped_exactly() -> None:
    """Load 5 ps, then the compute unit is the bottleneck, then the last store: closed form."""
    done = replay(build_schedule(ten_million(), PRICES))
    assert done.latency_ps == 5 + 7 * 10**7 + 3
    assert done.events < 100


def test_every_operation_is_an_event_if_nothing_is_skipped() -> None:
    given = program(repeat(50, hold(0, hold(2, compute(7), store=store(3)), load=load(5))))
    assert replay(build_schedule(given, PRICES), skip_ahead=False).events == operations(given)


def test_a_deadlock_says_who_waits_for_what() -> None:
    """One slot, but a tile inside a tile of the same stage needs two."""
    given = program(hold(0, hold(0, compute(1), load=load(1), slots=1), load=load(1), slots=1))
    with pytest.raises(DeadlockError, match="compute waits for tile of operand 0 in gbuf"):
        replay(build_schedule(given, PRICES))


def test_an_empty_program_takes_no_time() -> None:
    assert replay(build_schedule(program(), PRICES)).latency_ps == 0


@pytest.mark.parametrize("seed", range(150))
def test_idle_time_is_accounted_for_alike_with_and_without_skipping(seed: int) -> None:
    given, prices = random_case(seed)
    schedule = build_schedule(given, prices)
    if operations(given) > MOST_OPERATIONS:
        return
    for port in schedule.ports:
        skipped = replay(schedule, watched_port=port)
        in_full = replay(schedule, watched_port=port, skip_ahead=False)
        assert _accounted(skipped) == _accounted(in_full)
        assert 0 <= _accounted(skipped) <= skipped.latency_ps - busy_ps(schedule.body)[port]


def _accounted(done: Replayed) -> int:
    assert min(done.lost_ps) >= 0
    return sum(done.lost_ps)

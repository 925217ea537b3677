"""Units on several cores: exact against all assignments, bounds, and what tiles wait for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from arch.load import load_architecture
from mapper.core_tasks import Task, check_homes, tasks_of
from mapper.placement_cores import best_placement
from mapper.plan import Plan
from mapper.workload.graph import Workload
from tests.mapper.fusion.cases import device, network, random_fused


def random_tasks(rng: np.random.Generator, count: int) -> tuple[Task, ...]:
    tasks: list[Task] = []
    for number in range(count):
        tiles = int(rng.integers(1, 5))
        needs = []
        for unit in range(number):
            if rng.random() < 0.5:
                last = tasks[unit].tiles - 1
                waits = sorted(int(w) for w in rng.integers(-1, last + 1, tiles))
                needs.append((unit, tuple(waits)))
        tasks.append(
            Task(
                name=f"u{number}",
                tiles=tiles,
                tile_ps=int(rng.integers(1, 20)),
                needs=tuple(needs),
            )
        )
    return tuple(tasks)


def simulated(tasks: tuple[Task, ...], cores: tuple[int, ...]) -> int:
    """Time step by time step: every core works on the first tile of its first unfinished unit
    as soon as what it waits for is done."""
    done = [0] * len(tasks)
    left = [0] * len(tasks)
    now = 0
    while any(done[u] < t.tiles for u, t in enumerate(tasks)):
        before = list(done)
        for core in set(cores):
            mine = [u for u, c in enumerate(cores) if c == core and before[u] < tasks[u].tiles]
            if not mine:
                continue
            unit = mine[0]
            task = tasks[unit]
            ready = all(before[p] > waits[before[unit]] for p, waits in task.needs)
            if left[unit] == 0 and ready:
                left[unit] = task.tile_ps
            if left[unit] > 0:
                left[unit] -= 1
                if left[unit] == 0:
                    done[unit] += 1
        now += 1
    return now


@pytest.mark.parametrize("seed", range(12))
def test_equals_the_best_of_all_assignments(seed: int) -> None:
    tasks = random_tasks(np.random.default_rng(seed), 5)
    for cores in (1, 2, 3):
        found = best_placement(tasks, cores, shared_ps=0)
        everything = itertools.product(range(cores), repeat=len(tasks))
        assert found.latency_ps == min(simulated(tasks, given) for given in everything)
        assert found.optimal
        assert found.latency_ps == simulated(tasks, found.cores)


@pytest.mark.parametrize("seed", range(6))
def test_a_short_search_keeps_an_honest_bound(seed: int) -> None:
    tasks = random_tasks(np.random.default_rng(50 + seed), 7)
    exact = best_placement(tasks, 3, shared_ps=40)
    short = best_placement(tasks, 3, shared_ps=40, most_nodes=8)
    assert short.lower_bound_ps <= exact.latency_ps <= short.latency_ps
    assert exact.latency_ps >= 40


def test_more_cores_are_never_slower_and_one_core_adds_up() -> None:
    tasks = random_tasks(np.random.default_rng(3), 6)
    latencies = [best_placement(tasks, cores, 0).latency_ps for cores in (1, 2, 3, 4)]
    assert latencies == sorted(latencies, reverse=True)
    assert latencies[0] == sum(task.busy_ps for task in tasks)


def test_a_pipeline_of_equal_stages_has_the_known_length() -> None:
    """Three stages of eight tiles: eight intervals and two to fill."""
    follow = tuple(range(8))
    tasks = tuple(
        Task(name=f"s{n}", tiles=8, tile_ps=5, needs=((n - 1, follow),) if n else ())
        for n in range(3)
    )
    assert best_placement(tasks, 3, 0).latency_ps == 5 * (8 + 2)
    assert best_placement(tasks, 1, 0).latency_ps == 5 * 8 * 3


def halves(name: str) -> tuple[Workload, Plan]:
    """A plan of one fused group."""
    workload = network(name)
    fused = random_fused(workload, device(), np.random.default_rng(0))
    return workload, Plan(units=(fused,))


def test_a_fused_plan_has_one_task_per_unit_and_its_tiles() -> None:
    workload, plan = halves("conv conv")
    (task,) = tasks_of(workload, device(), plan, [999])
    assert task.needs == ()
    assert task.busy_ps >= 999


def test_tensors_on_one_core_cannot_be_read_by_another() -> None:
    workload, plan = halves("conv conv")
    read, *_ = workload.operators[0].inputs
    twice = Plan(units=plan.units * 2, homes={read.tensor: "buffer"})
    check_homes(workload, twice, [1, 1])
    with pytest.raises(ValueError, match="others cannot read it"):
        check_homes(workload, twice, [0, 1])


def test_cores_multiply_area_and_leakage_but_not_the_memory_outside() -> None:
    one = load_architecture("quad_core", {"cores": 1})
    four = load_architecture("quad_core")
    assert four.cores == 4
    assert four.area_mm2 == pytest.approx(4 * one.area_mm2)
    dram = one.component("dram").leakage_w
    assert four.leakage_w - dram == pytest.approx(4 * (one.leakage_w - dram))

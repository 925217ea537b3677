"""Cores that share a port: known lengths, bounds, and what waits for what."""

from __future__ import annotations

import numpy as np
import pytest

from mapper.placement_cores import best_placement
from sim.multicore import CoreUnit, simulate_cores
from tests.mapper.test_placement_cores import random_tasks


def unit(core: int, tiles: int, tile_ps: int, port_ps: int, **needs: object) -> CoreUnit:
    given = needs.get("needs", ())
    assert isinstance(given, tuple)
    return CoreUnit(core=core, tiles=tiles, tile_ps=tile_ps, port_ps=port_ps, needs=given)


def test_one_core_takes_as_long_as_its_tiles() -> None:
    """Closed form: alone, traffic hides behind a tile's time."""
    run = simulate_cores([unit(0, 3, 100, 60), unit(0, 2, 50, 50)])
    assert run.latency_ps == 3 * 100 + 2 * 50
    assert run.spans_ps == ((0, 300), (300, 400))
    assert run.waited_ps == (0, 0)


def test_cores_without_traffic_do_not_disturb_each_other() -> None:
    run = simulate_cores([unit(0, 4, 100, 0), unit(1, 3, 70, 0)])
    assert run.spans_ps == ((0, 400), (0, 210))


@pytest.mark.parametrize("cores", [2, 3, 4])
def test_cores_that_only_move_data_share_the_port(cores: int) -> None:
    """Closed form: the port is busy all the time, and no longer."""
    run = simulate_cores([unit(core, 5, 80, 80) for core in range(cores)])
    assert run.latency_ps == cores * 5 * 80
    assert sum(run.waited_ps) > 0


def test_a_pipeline_waits_for_its_first_tile() -> None:
    """Closed form: three stages of four equal tiles take six tiles' time."""
    follows = tuple(range(4))
    stages = [unit(0, 4, 10, 0)]
    stages += [unit(n, 4, 10, 0, needs=((n - 1, follows),)) for n in (1, 2)]
    assert simulate_cores(stages).latency_ps == (4 + 2) * 10


@pytest.mark.parametrize("seed", range(8))
def test_it_is_never_below_the_analytical_placement(seed: int) -> None:
    """Bounds: equal without traffic, else at least the placement and the port's busy time."""
    rng = np.random.default_rng(seed)
    tasks = random_tasks(rng, 6)
    placed = best_placement(tasks, 3, shared_ps=0)

    def units(ports: list[int]) -> list[CoreUnit]:
        return [
            CoreUnit(core=core, tiles=t.tiles, tile_ps=t.tile_ps, port_ps=port, needs=t.needs)
            for t, core, port in zip(tasks, placed.cores, ports, strict=True)
        ]

    assert simulate_cores(units([0] * len(tasks))).latency_ps == placed.latency_ps
    ports = [int(rng.integers(0, task.tile_ps + 1)) for task in tasks]
    loaded = simulate_cores(units(ports))
    busy = sum(task.tiles * port for task, port in zip(tasks, ports, strict=True))
    assert loaded.latency_ps >= max(placed.latency_ps, busy)
    assert loaded == simulate_cores(units(ports))

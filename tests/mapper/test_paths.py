"""What no way can beat: against all cuts and assignments of small graphs, and closed forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from mapper.search.cut_choices import Choice, Cuts
from mapper.search.paths import least_latency_ps, least_value, longest_latency_ps, within
from tests.mapper.test_joint_cut import OBJECTIVES, random_cuts, tasks, values, ways
from tests.mapper.test_placement_cores import simulated


def latencies(cuts: Cuts) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Of every way on every assignment, simulated time step by time step."""
    for way in ways(cuts):
        shared = sum(cuts.choices[number].shared_ps for number in way)
        for cores in itertools.product(range(cuts.cores), repeat=len(way)):
            yield max(simulated(tasks(cuts, way), cores), shared), way


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(8))
def test_no_way_is_below_the_bounds(seed: int, objective: str) -> None:
    cuts = random_cuts(np.random.default_rng([seed, len(objective)]), 4, 1 + seed % 3, objective)
    assert least_value(cuts) <= min(values(cuts)) * (1 + 1e-12)
    assert least_latency_ps(cuts) <= min(latency for latency, _ in latencies(cuts))


@pytest.mark.parametrize("seed", range(8))
def test_what_is_within_a_limit_is_kept_with_its_ends_and_rests(seed: int) -> None:
    """Both sides: every way in time is kept whole; below the least time nothing is."""
    cuts = random_cuts(np.random.default_rng(50 + seed), 4, 2, "latency")
    everything = list(latencies(cuts))
    best = min(latency for latency, _ in everything)
    for limit in (best, best + 10):
        found = within(cuts, limit)
        assert found is not None
        for latency, way in everything:
            if latency <= limit:
                assert set(way) <= found.kept
                assert all(found.ends[n][-1] + found.tails[n][-1] <= latency for n in way)
    assert within(cuts, least_latency_ps(cuts) - 1) is None


@pytest.mark.parametrize("seed", range(4))
def test_what_takes_longer_than_the_longest_is_no_better(seed: int) -> None:
    cuts = random_cuts(np.random.default_rng(80 + seed), 4, 2, "edp")
    value = min(values(cuts)) * 1.1
    longest = longest_latency_ps(cuts, value)
    assert longest_latency_ps(cuts, math.inf) == math.inf
    for latency, way in latencies(cuts):
        dynamic = sum(cuts.choices[number].dynamic_pj for number in way)
        assert cuts.value(latency, dynamic) > value or latency <= longest


def pipeline(stages: int, tiles: int, cores: int, shared_ps: int = 0) -> Cuts:
    choices = tuple(
        Choice(start=n, end=n + 1, tiles=tiles, tile_ps=10, shared_ps=shared_ps, dynamic_pj=1.0)
        for n in range(stages)
    )
    waits = {(n, n + 1): tuple(range(tiles)) for n in range(stages - 1)}
    return Cuts(
        operators=stages,
        choices=choices,
        waits=waits,
        cores=cores,
        leakage_w=0.0,
        objective="latency",
    )


def test_a_pipeline_is_as_long_as_its_first_tiles_and_one_stage() -> None:
    """Closed form, on as many cores as stages; on one, all the work; behind a port, its time."""
    assert least_latency_ps(pipeline(4, 8, cores=4)) == 10 * (8 + 3)
    assert least_latency_ps(pipeline(4, 8, cores=1)) == 4 * 8 * 10
    assert least_latency_ps(pipeline(4, 8, cores=4, shared_ps=300)) == 1200

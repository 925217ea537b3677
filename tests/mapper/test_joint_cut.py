"""Cut and placement decided together: exact against all ways, bounds, and what they hold for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from mapper.core_tasks import Task
from mapper.search.cut_choices import Choice, Cuts
from mapper.search.joint import best_cut
from tests.mapper.test_placement_cores import simulated

OBJECTIVES = ("latency", "energy", "edp")


def random_cuts(rng: np.random.Generator, operators: int, cores: int, objective: str) -> Cuts:
    """Operators that read from some earlier ones; one or two ways to run any three in a row."""
    reads = {
        (a, b)
        for b in range(operators)
        for a in range(b)
        if rng.random() < (0.7 if a == b - 1 else 0.25)
    }
    choices = [
        Choice(
            start=start,
            end=end,
            tiles=int(rng.integers(1, 4)),
            tile_ps=int(rng.integers(1, 20)),
            shared_ps=int(rng.integers(0, 12)),
            dynamic_pj=float(rng.integers(1, 30)),
        )
        for start in range(operators)
        for end in range(start + 1, min(start + 3, operators) + 1)
        for _ in range(int(rng.integers(1, 3)))
    ]
    waits = {}
    for (a, before), (b, after) in itertools.product(enumerate(choices), repeat=2):
        pairs = itertools.product(range(before.start, before.end), range(after.start, after.end))
        if before.end <= after.start and any(pair in reads for pair in pairs):
            waits[a, b] = tuple(sorted(int(w) for w in rng.integers(-1, before.tiles, after.tiles)))
    return Cuts(
        operators=operators,
        choices=tuple(choices),
        waits=waits,
        cores=cores,
        leakage_w=0.3,
        objective=objective,
    )


def ways(cuts: Cuts, at: int = 0) -> Iterator[tuple[int, ...]]:
    """All ways to take choices one after the other."""
    if at == cuts.operators:
        yield ()
    for number in cuts.starting.get(at, []):
        for rest in ways(cuts, cuts.choices[number].end):
            yield (number, *rest)


def tasks(cuts: Cuts, way: tuple[int, ...]) -> tuple[Task, ...]:
    return tuple(
        Task(
            name=str(number),
            tiles=cuts.choices[number].tiles,
            tile_ps=cuts.choices[number].tile_ps,
            needs=tuple(
                (earlier, cuts.waits[before, number])
                for earlier, before in enumerate(way[:at])
                if (before, number) in cuts.waits
            ),
        )
        for at, number in enumerate(way)
    )


def values(cuts: Cuts) -> Iterator[float]:
    """Of every way on every assignment, simulated time step by time step."""
    for way in ways(cuts):
        dynamic = sum(cuts.choices[number].dynamic_pj for number in way)
        shared = sum(cuts.choices[number].shared_ps for number in way)
        for cores in itertools.product(range(cuts.cores), repeat=len(way)):
            yield cuts.value(max(simulated(tasks(cuts, way), cores), shared), dynamic)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_best_of_all_cuts_and_assignments(seed: int, objective: str) -> None:
    rng = np.random.default_rng([seed, len(objective)])
    cuts = random_cuts(rng, 4, 1 + seed % 3, objective)
    found, bound = best_cut(cuts)
    assert found is not None
    assert found.value == pytest.approx(min(values(cuts)), rel=1e-12)
    assert bound == found.value
    chosen = tasks(cuts, found.chosen)
    shared = sum(cuts.choices[number].shared_ps for number in found.chosen)
    assert found.latency_ps == max(simulated(chosen, found.cores), shared)
    assert found.dynamic_pj == sum(cuts.choices[number].dynamic_pj for number in found.chosen)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(6))
def test_few_labels_keep_an_honest_bound(seed: int, objective: str) -> None:
    cuts = random_cuts(np.random.default_rng(100 + seed), 7, 3, objective)
    exact, floor = best_cut(cuts, most_labels=10**6)
    short, bound = best_cut(cuts, most_labels=2)
    assert exact is not None
    assert short is not None
    assert exact.value == floor
    assert bound <= exact.value <= short.value


def test_only_what_is_better_than_known_is_returned() -> None:
    cuts = random_cuts(np.random.default_rng(3), 5, 2, "latency")
    best, _ = best_cut(cuts)
    assert best is not None
    assert best_cut(cuts, best.value) == (None, best.value)
    again, bound = best_cut(cuts, math.nextafter(best.value, math.inf))
    assert again is not None
    assert again.value == bound == best.value


def test_more_cores_and_more_choices_are_never_worse() -> None:
    cuts = random_cuts(np.random.default_rng(9), 6, 1, "latency")
    latencies = []
    for cores in (1, 2, 3):
        found, _ = best_cut(
            Cuts(
                operators=cuts.operators,
                choices=cuts.choices,
                waits=cuts.waits,
                cores=cores,
                leakage_w=cuts.leakage_w,
                objective=cuts.objective,
            )
        )
        assert found is not None
        latencies.append(found.latency_ps)
    assert latencies == sorted(latencies, reverse=True)


def chain(batches: int, stages: int, joined_ps: int) -> Cuts:
    """Stages that pass on one batch after the other; any two can also run as one unit, in one go
    for all batches."""
    alone = [
        Choice(start=n, end=n + 1, tiles=batches, tile_ps=10, shared_ps=0, dynamic_pj=1.0)
        for n in range(stages)
    ]
    joined = [
        Choice(start=n, end=n + 2, tiles=1, tile_ps=joined_ps, shared_ps=0, dynamic_pj=1.0)
        for n in range(stages - 1)
    ]
    choices = (*alone, *joined)
    waits = {
        (a, b): tuple(range(batches)) if x.tiles == y.tiles == batches else (x.tiles - 1,) * y.tiles
        for a, x in enumerate(choices)
        for b, y in enumerate(choices)
        if x.end == y.start
    }
    return Cuts(
        operators=stages,
        choices=choices,
        waits=waits,
        cores=stages,
        leakage_w=0.0,
        objective="latency",
    )


def test_a_pipeline_over_batches_has_the_known_length() -> None:
    """Closed form: batches and stages less one. Joined stages would save work, but not time."""
    found, bound = best_cut(chain(batches=6, stages=4, joined_ps=90))
    assert found is not None
    assert found.latency_ps == bound == 10 * (6 + 4 - 1)
    assert sorted(found.cores) == [0, 1, 2, 3]


def test_with_one_batch_joined_stages_are_faster() -> None:
    """Closed form: both sides of what a joined unit may cost."""
    faster, _ = best_cut(chain(batches=1, stages=4, joined_ps=19))
    slower, _ = best_cut(chain(batches=1, stages=4, joined_ps=21))
    assert faster is not None
    assert slower is not None
    assert (faster.latency_ps, slower.latency_ps) == (38, 40)

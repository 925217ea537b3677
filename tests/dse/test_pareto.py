"""Are the front and its volume right, against closed forms, brute force and another library?"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import toy_problem
from hypothesis import given
from hypothesis import strategies as st
from optuna._hypervolume import compute_hypervolume

from dse.pareto import (
    MARGIN,
    dominated_share,
    hypervolume,
    hypervolume_history,
    non_dominated,
    scale_of,
)
from dse.trial import Trial, TrialState

KEYS = ("latency_ps", "energy_pj", "area_mm2")

rows = st.lists(st.tuples(*(st.integers(1, 9) for _ in KEYS)), min_size=1, max_size=20)


def trial(number: int, row: tuple[float, ...], state: TrialState = TrialState.COMPLETE) -> Trial:
    return Trial(
        number=number,
        overrides={},
        state=state,
        reason="",
        objectives=dict(zip(KEYS, row, strict=True)),
        constraints={},
        metrics=None,
        fidelity="analytical",
        seed=1,
        cost_model_calls=1,
        seconds=0.0,
        config_hash="",
        version="",
        sampler_state={},
    )


@given(rows)
def test_front_is_what_brute_force_says(points: list[tuple[int, ...]]) -> None:
    front = non_dominated([trial(i, row) for i, row in enumerate(points)], KEYS)
    expected = {
        p
        for p in points
        if not any(all(x <= y for x, y in zip(q, p, strict=True)) and q != p for q in points)
    }
    assert [t.number for t in front] == sorted(points.index(p) for p in expected)


def test_front_of_nothing_is_empty() -> None:
    assert non_dominated([], KEYS) == ()


def test_volume_of_one_point_is_its_box() -> None:
    assert hypervolume([(1, 2, 3)], (4, 4, 5)) == 3 * 2 * 2


def test_volume_of_two_overlapping_boxes_counts_the_overlap_once() -> None:
    assert hypervolume([(0, 2), (1, 0)], (3, 3)) == 3 * 1 + 2 * 3 - 2 * 1


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_volume_equals_that_of_optuna(dimensions: int, seed: int) -> None:
    points = np.random.default_rng(seed).random((30, dimensions))
    ours = hypervolume(points.tolist(), [0.9] * dimensions)
    inside = points[(points < 0.9).all(axis=1)]
    theirs = compute_hypervolume(inside, np.full(dimensions, 0.9))
    assert ours == pytest.approx(theirs, rel=1e-12)


@given(rows)
def test_more_trials_never_dominate_less(points: list[tuple[int, ...]]) -> None:
    trials = [trial(i, row) for i, row in enumerate(points)]
    scale = scale_of(non_dominated(trials, KEYS), KEYS)
    history = hypervolume_history(trials, KEYS, scale)
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(history))
    assert 0 < history[-1] <= 1


@given(rows)
def test_infeasible_trials_dominate_nothing(points: list[tuple[int, ...]]) -> None:
    trials = [trial(i, row) for i, row in enumerate(points)]
    scale = scale_of(trials, KEYS)
    barred = [trial(i, row, TrialState.INFEASIBLE) for i, row in enumerate(points)]
    assert dominated_share(barred, KEYS, scale) == 0


def test_share_ignores_units() -> None:
    """Scaling an objective (ps to ns) moves no trial relative to another."""
    points = [(1.0, 9.0, 2.0), (3.0, 4.0, 1.0), (8.0, 2.0, 1.5)]
    trials = [trial(i, row) for i, row in enumerate(points)]
    scaled = [trial(i, (a * 1e-3, b, c * 7)) for i, (a, b, c) in enumerate(points)]
    shares = [dominated_share(t, KEYS, scale_of(t, KEYS)) for t in (trials, scaled)]
    assert shares[0] == pytest.approx(shares[1], rel=1e-9)


def test_the_ideal_point_alone_dominates_everything() -> None:
    front = [trial(0, (1, 10, 1)), trial(1, (10, 1, 1))]
    scale = scale_of(front, KEYS)
    assert dominated_share([trial(2, (1, 1, 1))], KEYS, scale) == pytest.approx(1)
    worst = dominated_share([trial(2, (10, 10, 1))], KEYS, scale)
    assert worst == pytest.approx(MARGIN**2 * (1 + MARGIN) / (1 + MARGIN) ** 3)


def test_the_toy_problem_has_real_trade_offs() -> None:
    """Otherwise the sampler tests that stand on it would say nothing."""
    found = [toy_problem.totals(toy_problem.SPACE.overrides(p)) for p in toy_problem.SPACE.points()]
    front = non_dominated([trial(i, tuple(f[k] for k in KEYS)) for i, f in enumerate(found)], KEYS)
    assert len(front) > 10
    best = {min(front, key=lambda t, k=key: t.objectives[k]).number for key in KEYS}
    assert len(best) == len(KEYS)

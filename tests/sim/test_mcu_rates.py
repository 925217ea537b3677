"""Does the model of published cycles find rates, and is its evidence what it says?"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import mcu_rates
from benchmarks.mcu_cycles import PRUNED, RATES, prior, work
from benchmarks.mcu_rates import Runs, Sizes, fit, most_evident, predicted

GROUPS, KINDS = 3, 2


def synthetic(rng: np.random.Generator, count: int = 24) -> Runs:
    """Runs of four libraries on two cores; rates are products of one factor of each, and of three
    for kernels that are known to be slow."""
    library, core = rng.integers(0, 4, count), rng.integers(0, 2, count)
    logs = rng.normal(0, 0.5, (4, KINDS))[library] + rng.normal(0, 0.5, (2, 1))[core]
    amounts = rng.uniform(1e5, 1e7, (count, KINDS))
    prior = np.log([2.0, 5.0]) + np.log(3.0) * rng.integers(0, 2, (count, 1))
    cycles = (np.exp(prior + logs) * amounts).sum(axis=1) * rng.normal(1, 0.01, count)
    same = [np.ones((count, count)), *((g[:, None] == g).astype(float) for g in (library, core))]
    return Runs(amounts, np.full(count, 1e3), np.log(cycles), prior, np.array(same))


def test_a_run_that_was_not_seen_is_predicted() -> None:
    runs = synthetic(np.random.default_rng(0))
    everything = np.arange(len(runs.fixed))
    errors = []
    for run in range(6):
        others = everything[everything != run]
        found = fit(runs, others, most_evident(runs, others))
        errors.append(abs(np.log(predicted(runs, found, run)) - runs.log_cycles[run]))
    assert float(np.median(errors)) < 0.05


def test_the_slope_of_the_evidence_is_that_of_its_values() -> None:
    """Central differences in the logarithm of every size, at fixed shares of time."""
    runs = synthetic(np.random.default_rng(1))
    known = np.arange(20)
    logs = np.log(np.linspace(0.2, 0.6, 2 * GROUPS + 2 * KINDS + 1))
    at = fit(runs, known, Sizes.of(logs, GROUPS, KINDS))

    def value(x: mcu_rates.Floats) -> float:
        sizes = Sizes.of(x, GROUPS, KINDS)
        own, common = at.shares * sizes.kinds, at.shares @ sizes.loadings
        each = np.tensordot(sizes.each**2, runs.same[:, known][:, :, known], 1)
        shared = np.tensordot(sizes.shared**2, runs.same[:, known][:, :, known], 1)
        spread = each * (own @ own.T) + shared * np.outer(common, common)
        spread += sizes.error**2 * np.eye(len(known))
        fitted = at.residuals @ np.linalg.solve(spread, at.residuals)
        return float(0.5 * fitted + 0.5 * np.linalg.slogdet(spread)[1])

    found, slope = mcu_rates._minus_log_evidence(runs, known, Sizes.of(logs, GROUPS, KINDS), at)
    assert found == pytest.approx(value(logs))
    for i in range(len(logs)):
        step = np.zeros(len(logs))
        step[i] = 1e-5
        difference = (value(logs + step) - value(logs - step)) / 2e-5
        assert slope[i] == pytest.approx(difference, rel=1e-3, abs=1e-4)


def test_half_of_the_visual_wake_words_network_is_dead() -> None:
    whole, pruned = work(PRUNED)[0], work(PRUNED, pruned=True)[0]
    assert whole[[0, 2]].sum() == 7_489_152
    assert pruned[[0, 2]].sum() / whole[[0, 2]].sum() == pytest.approx(0.5, abs=0.01)


def test_known_kernels_are_expected_to_take_what_their_instructions_take() -> None:
    """Closed form: ten dense layers, 264,192 multiply-accumulates and 1,672 values."""
    expected = dict(zip(RATES, np.exp(prior("mlperf_ad", "cmsis-nn 2021")), strict=True))
    assert expected["dense mac"] == pytest.approx(2.812 + 101.1 * 1672 / 264_192)
    assert np.exp(prior("mlperf_ad", "bosch")) == pytest.approx(list(RATES.values()))


def test_small_code_costs_convolutions_more_than_dense_layers() -> None:
    """CMSIS-NN of 2020 for size against that of 2022 for speed, on image classification."""
    small, fast = (prior("mlperf_ic", name) for name in ("cmsis-nn 2021", "microtvm cmsis-nn"))
    times = dict(zip(RATES, np.exp(small - fast), strict=True))
    assert times["conv2d mac"] > 1.6
    assert times["dense mac"] < 1.3

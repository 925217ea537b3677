"""Cycles per unit of work of int8 kernels, for every library and core, from whole networks.

The cycles of a run are the sum over kinds of work (multiply-accumulates of convolutions, values
that they make, ...) of amount times rate. The logarithm of a rate is a prior value (that of its
kernels, where they are known: ``mcu_kernels``) plus one contribution from each group that the run
belongs to: whose kernels they are, which version, which core, which board, and combinations.
Contributions are normal with mean zero; in a group each kind has one of its own and all kinds share
one (a library is faster in general, or at one thing).

How large contributions are is not chosen by hand: it is the maximum of the evidence, the
probability of the runs that are known. Linearised around the best rates it has a closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

#: Standard deviation of contributions (natural logarithm) before anything is known, of the error
#: of a run, and how far the evidence may move each of them (also in logarithms).
TYPICAL, ERROR = 0.2, 0.03
SPREAD = {"size": 1.0, "kind": 0.7, "loading": 0.5, "error": 0.5}
REACH = (3.0, 2.5)
ITERATIONS, STEPS, TOLERANCE = 30, 40, 1e-6


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs x kinds of work (``amounts``, and ``prior`` logarithms of their rates); ``same``
    (groups x runs x runs) is 1 where two runs share a group."""

    amounts: Floats
    fixed: Floats
    log_cycles: Floats
    prior: Floats
    same: Floats


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large contributions are: per group for each kind and for all kinds at once; factors per
    kind for both; the error of a run."""

    each: Floats
    shared: Floats
    kinds: Floats
    loadings: Floats
    error: float

    @classmethod
    def of(cls, logs: Floats, groups: int, kinds: int) -> Sizes:
        ends = np.cumsum([groups, groups, kinds, kinds])
        each, shared, factors, loadings, error = np.split(np.exp(logs), ends)
        return cls(each, shared, factors, loadings, float(error[0]))


@dataclass(frozen=True, slots=True)
class Fit:
    """Log rates of all runs (runs x kinds) given some; what the evidence is computed from."""

    rates: Floats
    shares: Floats
    weights: Floats
    covariance: Floats
    residuals: Floats


def fit(runs: Runs, known: Numbers, sizes: Sizes, start: Floats | None = None) -> Fit:
    """The most probable rates: Gauss-Newton, each step a linear regression on shares of time."""
    each = np.tensordot(sizes.each**2, runs.same[:, :, known], 1)
    shared = np.tensordot(sizes.shared**2, runs.same[:, :, known], 1)
    rates = runs.prior if start is None else start
    for _ in range(STEPS):
        parts = np.exp(rates[known]) * runs.amounts[known]
        total = parts.sum(axis=1) + runs.fixed[known]
        shares = parts / total[:, None]
        at_prior = (shares * (rates[known] - runs.prior[known])).sum(axis=1)
        residuals = runs.log_cycles[known] - np.log(total) + at_prior
        own, common = shares * sizes.kinds, shares @ sizes.loadings
        covariance = each[known] * (own @ own.T) + shared[known] * np.outer(common, common)
        covariance += sizes.error**2 * np.eye(len(known))
        weights = np.linalg.solve(covariance, residuals)
        new = runs.prior + ((each * weights) @ own) * sizes.kinds
        new += np.outer((shared * weights) @ common, sizes.loadings)
        change = np.abs(new - rates).max()
        rates = rates + (new - rates) * min(1.0, 1.0 / change) if change > 1.0 else new
        if change < TOLERANCE:
            break
    return Fit(rates, shares, weights, covariance, residuals)


def predicted(runs: Runs, found: Fit, run: int) -> float:
    """Cycles of a run, known or not."""
    return float(np.exp(found.rates[run]) @ runs.amounts[run] + runs.fixed[run])


def most_evident(runs: Runs, known: Numbers, fixed_group: int = 0) -> Sizes:
    """Sizes of contributions that make the known runs most probable.

    The first group (all runs) has a size of 1: the prior values are rough.
    """
    groups, kinds = len(runs.same), runs.amounts.shape[1]
    start = _start(groups, kinds)
    spread = np.repeat(
        [SPREAD["size"], SPREAD["kind"], SPREAD["loading"], SPREAD["error"]],
        [2 * groups, kinds, kinds, 1],
    )
    bounds = [(x - REACH[0], x + REACH[1]) for x in start]
    for held in (fixed_group, groups + fixed_group, 2 * groups + kinds):
        bounds[held] = (0.0, 0.0)
    last: list[Floats | None] = [None]

    def loss(logs: Floats) -> tuple[float, Floats]:
        sizes = Sizes.of(logs, groups, kinds)
        found = fit(runs, known, sizes, last[0])
        last[0] = found.rates
        away = (logs - start) / spread
        value, slope = _minus_log_evidence(runs, known, sizes, found)
        return value + 0.5 * float(away @ away), slope + away / spread

    options = {"maxiter": ITERATIONS}
    solved = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return Sizes.of(solved.x, groups, kinds)


def _start(groups: int, kinds: int) -> Floats:
    sizes = np.full(2 * groups, np.log(TYPICAL))
    sizes[[0, groups]] = 0.0
    return np.concatenate([sizes, np.zeros(2 * kinds), [np.log(ERROR)]])


def _minus_log_evidence(
    runs: Runs, known: Numbers, sizes: Sizes, found: Fit
) -> tuple[float, Floats]:
    """And its slope in the logarithms of the sizes (shares of time held)."""
    sign_and_log: tuple[float, float] = np.linalg.slogdet(found.covariance)
    value = 0.5 * float(found.residuals @ found.weights) + 0.5 * sign_and_log[1]
    inverse = np.linalg.inv(found.covariance)
    slope = 0.5 * (inverse - np.outer(found.weights, found.weights))
    same = runs.same[:, known][:, :, known]
    own, common = found.shares * sizes.kinds, found.shares @ sizes.loadings
    per_each = np.einsum("gij,ij->g", same, slope * (own @ own.T))
    per_shared = np.einsum("gij,ij->g", same, slope * np.outer(common, common))
    each = slope * np.tensordot(sizes.each**2, same, 1)
    shared = slope * np.tensordot(sizes.shared**2, same, 1)
    per_kind = np.einsum("ir,ij,jr->r", found.shares, each, found.shares)
    per_loading = found.shares.T @ shared @ common
    parts: Sequence[Floats] = (
        2 * sizes.each**2 * per_each,
        2 * sizes.shared**2 * per_shared,
        2 * sizes.kinds**2 * per_kind,
        2 * sizes.loadings * per_loading,
        np.array([2 * sizes.error**2 * np.trace(slope)]),
    )
    return value, np.concatenate(parts)

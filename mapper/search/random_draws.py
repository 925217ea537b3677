"""Mappings drawn at random, priced in batches: the control that other searches must beat."""

from __future__ import annotations

import numpy as np

from mapper.batch import BatchCost
from mapper.batch_model import batch_model
from mapper.search import pricing
from mapper.search.candidates import Candidate, Candidates
from mapper.search.pricing import FloatArray, IntArray

#: Mappings drawn at once: some times the calls that are left, as many do not fit.
_DRAWN_PER_CALL, _FEWEST, _MOST = 2, 256, 1 << 16
#: Batches in a row without a mapping that fits until the search is over.
_VAIN = 50


def draw(space: Candidates, rng: np.random.Generator) -> None:
    """Uniform over orders of stages and over each dimension's tilings, independently.

    What does not fit is not counted; what is drawn twice is.
    """
    vain = 0
    while space.calls < space.budget and vain < _VAIN:
        wanted = _DRAWN_PER_CALL * (space.budget - space.calls)
        count = min(max(wanted, _FEWEST), _MOST)
        orders = rng.integers(len(space.orders), size=count)
        rows = np.empty((count, len(space.dims)), dtype=np.int64)
        values = np.empty(count)
        for order in np.unique(orders):
            at = np.flatnonzero(orders == order)
            rows[at], values[at] = _drawn(space, int(order), len(at), rng)
        fitting = np.flatnonzero(values < np.inf)[: space.budget - space.calls]
        _record(space, orders[fitting], rows[fitting], values[fitting])
        vain = 0 if len(fitting) else vain + 1


def _drawn(
    space: Candidates, number: int, count: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Rows of tilings and what is minimised, infinite where it does not fit."""
    order = space.orders[number]
    rows = {dim: rng.integers(len(order.tilings(dim)), size=count) for dim in space.dims}
    tables = [
        order.factors(group, {dim: rows[dim] for dim in group}) for group in space.run.counts.groups
    ]
    costs = batch_model(order, space.models[number], tables).costs([np.arange(count)] * len(tables))
    values = np.where(costs.broken == 0, _value(costs, space.objective), np.inf)
    return np.stack([rows[dim] for dim in space.dims], axis=1), values


def _value(costs: BatchCost, objective: int) -> FloatArray:
    factors: FloatArray = np.ones(costs.latency_ps.shape)
    if objective != pricing.ENERGY:
        factors = factors * costs.latency_ps
    if objective != pricing.LATENCY:
        factors = factors * costs.energy_pj
    return factors


def _record(space: Candidates, orders: IntArray, rows: IntArray, values: FloatArray) -> None:
    """Count them all, and note those that were the best so far when they were drawn."""
    before = np.minimum.accumulate(np.concatenate([[space.best_value], values]))[:-1]
    first = space.calls
    for at in np.flatnonzero(values < before):
        space.calls = first + int(at) + 1
        space.note(Candidate(int(orders[at]), tuple(int(row) for row in rows[at])))
        if space.calls == space.budget:
            return
    space.calls = first + len(values)

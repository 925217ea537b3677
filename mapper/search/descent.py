"""Coordinate descent over tables of factors, and what is still worth looking at, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import compiled
from mapper.search.pricing import (
    ANSWERS,
    EXCESS,
    TRAFFIC_FIELDS,
    FloatArray,
    IntArray,
    Model,
    acceptable,
    better,
    cost,
)


@compiled
def descend(
    table: FloatArray,
    first: IntArray,
    chosen: IntArray,
    model: Model,
    best: FloatArray,
) -> int:
    """Improve ``chosen`` (a row per group), one group at a time, until no row is better.

    ``table[first[g]:first[g + 1]]`` are the rows of group ``g``. Fills ``best`` with the cost of
    where it ends; returns evaluations. While nothing fits, rows that exceed less are better.
    """
    others = np.empty(table.shape[1])
    calls = 0
    improved = True
    while improved:
        improved = False
        for g in range(len(first) - 1):
            _multiply_others(table, chosen, g, others)
            calls += first[g + 1] - first[g]
            row = _best_row(table, first[g], first[g + 1], others, model, best)
            if row >= 0:
                chosen[g] = row
                improved = True
    return calls


@compiled
def _multiply_others(table: FloatArray, at: IntArray, group: int, others: FloatArray) -> None:
    for c in range(len(others)):
        others[c] = 1.0
    for h in range(len(at)):
        if h != group:
            for c in range(len(others)):
                others[c] *= table[at[h], c]


@compiled
def _best_row(
    table: FloatArray, begin: int, end: int, others: FloatArray, model: Model, best: FloatArray
) -> int:
    """The row that improves ``best`` most (then also filled in), -1 if none does."""
    volumes = np.empty(len(others))
    traffic = np.empty((model.memories.shape[0], TRAFFIC_FIELDS))
    answer = np.empty(ANSWERS)
    found = -1
    for r in range(begin, end):
        for c in range(len(others)):
            volumes[c] = others[c] * table[r, c]
        cost(volumes, model, traffic, answer)
        if _closer(model.objective, answer, best):
            for i in range(ANSWERS):
                best[i] = answer[i]
            found = r
    return found


@compiled
def _closer(objective: int, answer: FloatArray, best: FloatArray) -> bool:
    if answer[EXCESS] == best[EXCESS]:
        return answer[EXCESS] < np.inf and better(objective, answer, best)
    return bool(answer[EXCESS] < best[EXCESS])


@compiled
def promising(
    rows: FloatArray, others: FloatArray, model: Model, best: FloatArray
) -> NDArray[np.bool_]:
    """Mask of the rows whose lower bound with ``others`` fits and is better than ``best``."""
    traffic = np.empty((model.memories.shape[0], TRAFFIC_FIELDS))
    answer = np.empty(ANSWERS)
    volumes = np.empty(rows.shape[1])
    mask = np.empty(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        for c in range(rows.shape[1]):
            volumes[c] = others[c] * rows[r, c]
        cost(volumes, model, traffic, answer)
        mask[r] = acceptable(model.objective, answer) and better(model.objective, answer, best)
    return mask

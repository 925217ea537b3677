"""Coordinate descent over tables of factors, and what is still worth looking at, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import compiled, kernel
from mapper.search.costs import (
    ANSWERS,
    EXCESS,
    TOTAL_PJ,
    TOTAL_PS,
    acceptable,
    better,
    cost,
    worthwhile,
)
from mapper.search.flows import Flows
from mapper.search.pricing import FloatArray, IntArray


@compiled
def descend(
    table: FloatArray,
    first: IntArray,
    chosen: IntArray,
    flows: Flows,
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
            row = _best_row(table, first[g], first[g + 1], others, flows, best)
            if row >= 0:
                chosen[g] = row
                improved = True
    return calls


@kernel
def _multiply_others(table: FloatArray, at: IntArray, group: int, others: FloatArray) -> None:
    for c in range(len(others)):
        others[c] = 1.0
    for h in range(len(at)):
        if h != group:
            for c in range(len(others)):
                others[c] *= table[at[h], c]


@compiled
def _best_row(
    table: FloatArray, begin: int, end: int, others: FloatArray, flows: Flows, best: FloatArray
) -> int:
    """The row that improves ``best`` most (then also filled in), -1 if none does."""
    volumes = np.empty(len(others))
    scratch = np.empty(flows.ports.shape[0])
    answer = np.empty(ANSWERS)
    found = -1
    for r in range(begin, end):
        for c in range(len(others)):
            volumes[c] = others[c] * table[r, c]
        cost(volumes, flows, scratch, answer)
        if _closer(flows.objective, answer, best):
            for i in range(ANSWERS):
                best[i] = answer[i]
            found = r
    return found


@kernel
def _closer(objective: int, answer: FloatArray, best: FloatArray) -> bool:
    if answer[EXCESS] == best[EXCESS]:
        return answer[EXCESS] < np.inf and better(objective, answer, best)
    return bool(answer[EXCESS] < best[EXCESS])


@compiled
def promising(
    rows: FloatArray, others: FloatArray, flows: Flows, slack: float, best: FloatArray
) -> NDArray[np.bool_]:
    """Mask of the rows whose lower bound with ``others`` fits and may be better than ``best``."""
    scratch = np.empty(flows.ports.shape[0])
    answer = np.empty(ANSWERS)
    volumes = np.empty(rows.shape[1])
    mask = np.empty(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        for c in range(rows.shape[1]):
            volumes[c] = others[c] * rows[r, c]
        cost(volumes, flows, scratch, answer)
        fits = acceptable(flows.objective, answer)
        mask[r] = fits and worthwhile(flows.objective, answer, best, slack)
    return mask


@compiled
def sensitivities(volumes: FloatArray, flows: Flows) -> FloatArray:
    """By how much the logarithm of the objective grows with that of each volume.

    Where doubling a volume no longer fits, one: it decides what fits.
    """
    scratch, answer = np.empty(flows.ports.shape[0]), np.empty(ANSWERS)
    cost(volumes, flows, scratch, answer)
    at_start = answer[TOTAL_PS] * answer[TOTAL_PJ]
    found = np.ones(len(volumes))
    if answer[EXCESS] > 0.0 or at_start == 0.0:
        return found
    changed = volumes.copy()
    for c in range(len(volumes)):
        changed[c] = 2.0 * volumes[c]
        cost(changed, flows, scratch, answer)
        changed[c] = volumes[c]
        if answer[EXCESS] == 0.0:
            found[c] = np.log2(answer[TOTAL_PS] * answer[TOTAL_PJ] / at_start)
    return found


@compiled
def undominated(rows: FloatArray, most: int) -> NDArray[np.bool_]:
    """Mask of rows that no earlier row is at most as large as, in every column.

    Each is compared with the first ``most`` of those that were kept.
    """
    mask = np.empty(len(rows), dtype=np.bool_)
    front = np.empty(most, dtype=np.int64)
    size = 0
    for r in range(len(rows)):
        mask[r] = not _is_dominated(rows, r, front, size)
        if mask[r] and size < most:
            front[size] = r
            size += 1
    return mask


@kernel
def _is_dominated(rows: FloatArray, r: int, front: IntArray, size: int) -> bool:
    for i in range(size):
        above = False
        for c in range(rows.shape[1]):
            if rows[front[i], c] > rows[r, c]:
                above = True
                break
        if not above:
            return True
    return False

"""Coordinate descent over tables of factors, and what is still worth looking at, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import compiled, kernel
from mapper.search.canonical import PAIRS
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


class Rows(NamedTuple):
    """Rows of all groups: ``table[first[g]:first[g + 1]]`` are those of group ``g``; what each of
    them lacks, and the pairs of stages that are late (see ``mapper.search.canonical``)."""

    table: FloatArray
    first: IntArray
    lacks: IntArray
    late: int


@compiled
def narrow(
    rows: Rows, flows: Flows, slack: float, best: FloatArray, mask: NDArray[np.bool_]
) -> int:
    """Clear in ``mask`` the rows that cannot be part of a better mapping, until nothing changes
    or a group has no rows left. Returns the number of evaluations.

    With all other groups as small as can be, such a row does not fit, or is not better than
    ``best`` by more than the share ``slack``.
    """
    groups, columns = len(rows.first) - 1, rows.table.shape[1]
    smallest, lacks = np.empty((groups, columns)), np.empty(groups, dtype=np.int64)
    others, volumes = np.empty(columns), np.empty(columns)
    scratch, answer = np.empty(flows.ports.shape[0]), np.empty(ANSWERS)
    task = _Narrowing(rows, flows, slack, best, others, volumes, scratch, answer)
    for g in range(groups):
        lacks[g] = _summed_up(rows, g, mask, smallest[g])
    calls, quiet, g = 0, 0, 0
    while quiet < groups:
        before = _count(mask, rows.first[g], rows.first[g + 1])
        _multiply_smallest(smallest, g, others)
        _narrow_group(task, g, _lacking(lacks, g, rows.late), mask)
        left = _count(mask, rows.first[g], rows.first[g + 1])
        calls += before
        quiet += 1
        if left == 0:
            break
        if left < before:
            lacks[g] = _summed_up(rows, g, mask, smallest[g])
            quiet = 1
        g = (g + 1) % groups
    return calls


class _Narrowing(NamedTuple):
    """What stays the same while rows are looked at, and scratch space."""

    rows: Rows
    flows: Flows
    slack: float
    best: FloatArray
    others: FloatArray
    volumes: FloatArray
    scratch: FloatArray
    answer: FloatArray


@kernel
def _narrow_group(
    task: _Narrowing, group: int, lacking: tuple[int, int], mask: NDArray[np.bool_]
) -> None:
    rows, flows, volumes = task.rows, task.flows, task.volumes
    nothing, something = lacking
    for r in range(rows.first[group], rows.first[group + 1]):
        if not mask[r]:
            continue
        lacks = rows.lacks[r]
        if nothing & lacks & (something | lacks >> PAIRS) != 0:
            mask[r] = False
            continue
        for c in range(len(volumes)):
            volumes[c] = task.others[c] * rows.table[r, c]
        cost(volumes, flows, task.scratch, task.answer)
        fits = acceptable(flows.objective, task.answer)
        mask[r] = fits and worthwhile(flows.objective, task.answer, task.best, task.slack)


@kernel
def _count(mask: NDArray[np.bool_], begin: int, end: int) -> int:
    found = 0
    for r in range(begin, end):
        found += mask[r]
    return found


@kernel
def _summed_up(rows: Rows, group: int, mask: NDArray[np.bool_], smallest: FloatArray) -> int:
    """Fills the ``smallest`` of each column of a group; returns what all of its rows lack."""
    lacks = -1
    for c in range(len(smallest)):
        smallest[c] = np.inf
    for r in range(rows.first[group], rows.first[group + 1]):
        if mask[r]:
            lacks &= rows.lacks[r]
            for c in range(len(smallest)):
                smallest[c] = min(smallest[c], rows.table[r, c])
    return lacks


@kernel
def _multiply_smallest(smallest: FloatArray, group: int, others: FloatArray) -> None:
    for c in range(len(others)):
        others[c] = 1.0
    for h in range(smallest.shape[0]):
        if h != group:
            for c in range(len(others)):
                others[c] *= smallest[h, c]


@kernel
def _lacking(lacks: IntArray, group: int, late: int) -> tuple[int, int]:
    """What all groups but one lack together, and what one of them has too much of."""
    nothing, something = (1 << PAIRS) - 1, late
    for h in range(len(lacks)):
        if h != group:
            nothing &= lacks[h]
            something |= lacks[h] >> PAIRS
    return nothing, something


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
def undominated(rows: FloatArray, lacks: IntArray, most: int) -> NDArray[np.bool_]:
    """Mask of rows that no earlier row is at most as large as in every column, lacking nothing
    that they do not lack.

    Each is compared with the first ``most`` of those that were kept.
    """
    mask = np.empty(len(rows), dtype=np.bool_)
    front = np.empty(most, dtype=np.int64)
    size = 0
    for r in range(len(rows)):
        mask[r] = not _is_dominated(rows, lacks, r, front, size)
        if mask[r] and size < most:
            front[size] = r
            size += 1
    return mask


@kernel
def _is_dominated(rows: FloatArray, lacks: IntArray, r: int, front: IntArray, size: int) -> bool:
    for i in range(size):
        above = lacks[front[i]] & ~lacks[r] != 0
        c = 0
        while not above and c < rows.shape[1]:
            above = rows[front[i], c] > rows[r, c]
            c += 1
        if not above:
            return True
    return False

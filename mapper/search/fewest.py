"""Simulated annealing over what mappings count, compiled: tiles, unrolling and order at once.

A step changes the order of stages, or the tiling of one or two dimensions: two, so that one can
take the room (or the part of the array) that the other gives up. What does not fit is allowed on
the way, at a price that rises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import compiled, kernel
from mapper.search.costs import ANSWERS, TOTAL_PJ, TOTAL_PS, excess, spend
from mapper.search.counts import Counts, count_alone, count_joint
from mapper.search.flows import Flows
from mapper.search.pricing import ENERGY, FloatArray, IntArray

#: How often the order changes, and how often one dimension alone.
_REORDER, _ONE = 0.15, 0.5
#: Temperatures (of logarithms of what is minimised) and prices of a memory that is too small by a
#: factor of e, at the beginning and at the end.
_HOT, _COLD = 0.3, 0.003
_CHEAP, _DEAR = 1.0, 8.0
#: The nearest of up to two to this power random tilings is taken.
_CONTEST = 6.0
#: Steps between two changes of temperature.
_BATCH = 64


class Walk(NamedTuple):
    """Where annealing is, where it may go next and what was best: ``rows`` per dimension, and what
    each dimension and each group contributes to the volumes, ``factors[dim or group, column]``."""

    rows: IntArray
    next_rows: IntArray
    best_rows: IntArray
    factors: FloatArray
    next_factors: FloatArray
    movable: IntArray
    volumes: FloatArray
    scratch: FloatArray
    answer: FloatArray
    random: NDArray[np.uint64]


@compiled
def anneal(
    counts: Counts, flows: Flows, rows: IntArray, seed: int, steps: int
) -> tuple[int, float]:
    """From the ``rows`` under the first order to the best that was met, which replaces them.

    Returns its order (-1 if nothing that fits was met) and what is minimised, as a logarithm.
    """
    walk = _walk(counts, flows, rows, seed)
    order, best_order, best = 0, -1, np.inf
    _count(counts, order, walk, True)
    _go(walk)
    value, missing = _cost(flows, walk)
    temperature, dear = _HOT, _CHEAP
    for step in range(steps):
        if step % _BATCH == 0:
            temperature = _HOT * (_COLD / _HOT) ** (step / steps)
            dear = _CHEAP * (_DEAR / _CHEAP) ** (step / steps)
        next_order = _moved(counts, order, walk)
        _count(counts, next_order, walk, next_order != order)
        now, too_small = _cost(flows, walk)
        worse = now - value + dear * (too_small - missing)
        if worse <= 0.0 or _random(walk.random) < np.exp(-worse / temperature):
            order, value, missing = next_order, now, too_small
            _go(walk)
            if missing == 0.0 and value < best:
                best_order, best = order, value
                _copy(walk.rows, walk.best_rows)
    _copy(walk.best_rows, rows)
    return best_order, best


@compiled
def _walk(counts: Counts, flows: Flows, rows: IntArray, seed: int) -> Walk:
    random = np.empty(1, dtype=np.uint64)
    random[0] = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    movable = np.empty(len(rows), dtype=np.int64)
    some = 0
    for d in range(len(rows)):
        if counts.first[d + 1] - counts.first[d] > 1:
            movable[some] = d
            some += 1
    parts, columns = len(rows) + len(counts.joint_first), counts.places.shape[1]
    return Walk(
        rows.copy(),
        rows.copy(),
        rows.copy(),
        np.empty((parts, columns)),
        np.empty((parts, columns)),
        movable[:some].copy(),
        np.empty(columns),
        np.empty(flows.ports.shape[0]),
        np.empty(ANSWERS),
        random,
    )


@kernel
def _go(walk: Walk) -> None:
    """To where it may go next."""
    for d in range(len(walk.rows)):
        walk.rows[d] = walk.next_rows[d]
    for part in range(walk.factors.shape[0]):
        for c in range(walk.factors.shape[1]):
            walk.factors[part, c] = walk.next_factors[part, c]


@kernel
def _copy(rows: IntArray, to: IntArray) -> None:
    for d in range(len(rows)):
        to[d] = rows[d]


@kernel
def _random(state: NDArray[np.uint64]) -> float:
    """Below one (Marsaglia, Xorshift RNGs, 2003)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return float(np.float64(x >> np.uint64(11)) / 9007199254740992.0)


@kernel
def _count(counts: Counts, order: int, walk: Walk, every: bool) -> None:
    """The volumes of where it may go next; counts ``every`` dimension, or those that change."""
    dims = len(walk.rows)
    for c in range(len(walk.volumes)):
        walk.volumes[c] = 1.0
    for part in range(walk.factors.shape[0]):
        factors = walk.next_factors[part]
        if part < dims and (every or walk.rows[part] != walk.next_rows[part]):
            count_alone(counts, order, part, walk.next_rows[part], factors)
        elif part >= dims and (every or _has_moved(counts, part - dims, walk)):
            count_joint(counts, order, part - dims, walk.next_rows, factors)
        else:
            for c in range(len(factors)):
                factors[c] = walk.factors[part, c]
        for c in range(len(factors)):
            walk.volumes[c] *= factors[c]


@kernel
def _has_moved(counts: Counts, group: int, walk: Walk) -> bool:
    for i in range(counts.members.shape[1]):
        d = counts.members[group, i]
        if d >= 0 and walk.rows[d] != walk.next_rows[d]:
            return True
    return False


@kernel
def _cost(flows: Flows, walk: Walk) -> tuple[float, float]:
    """Logarithms of what is minimised and of how much too small memories are."""
    missing = excess(walk.volumes, flows, walk.scratch)
    spend(walk.volumes, flows, walk.scratch, walk.answer)
    least = np.log(walk.answer[TOTAL_PJ])
    if flows.objective != ENERGY:
        least += np.log(max(walk.answer[TOTAL_PS], 1.0))
    return least, np.log(1.0 + missing) if missing > 0.0 else 0.0


@kernel
def _moved(counts: Counts, order: int, walk: Walk) -> int:
    """Fills in where to go next; returns its order."""
    _copy(walk.rows, walk.next_rows)
    kind = _random(walk.random)
    if kind < _REORDER or len(walk.movable) == 0:
        return int(_random(walk.random) * counts.places.shape[0])
    for _ in range(1 if kind < _ONE else 2):
        d = walk.movable[int(_random(walk.random) * len(walk.movable))]
        walk.next_rows[d] = _near(counts, d, walk.rows[d], walk.random)
    return order


@kernel
def _near(counts: Counts, d: int, row: int, random: NDArray[np.uint64]) -> int:
    """Another tiling of the dimension: the nearest of some."""
    first, size = counts.first[d], counts.first[d + 1] - counts.first[d]
    nearest, least = row, np.inf
    for _ in range(int(2.0 ** (_random(random) * _CONTEST))):
        other = first + int(_random(random) * size)
        distance = 0.0
        for i in range(counts.logs.shape[1]):
            distance += abs(counts.logs[other, i] - counts.logs[row, i])
        if 0.0 < distance < least:
            nearest, least = other, distance
    return int(nearest)


@compiled
def settle(counts: Counts, flows: Flows, order: int, rows: IntArray) -> float:
    """Change one dimension's tiles (not how it is unrolled) after the other, as long as that is
    better; returns what is minimised, as a logarithm."""
    walk = _walk(counts, flows, rows, 0)
    _count(counts, order, walk, True)
    _go(walk)
    best, _ = _cost(flows, walk)
    improved = True
    while improved:
        improved = False
        for d in walk.movable:
            found = walk.rows[d]
            for row in range(counts.first[d], counts.first[d + 1]):
                if not _unrolled_alike(counts, row, found):
                    continue
                walk.next_rows[d] = row
                _count(counts, order, walk, False)
                value, missing = _cost(flows, walk)
                if missing == 0.0 and value < best:
                    best, improved, found = value, True, row
            walk.next_rows[d] = found
            _count(counts, order, walk, False)
            _go(walk)
    _copy(walk.rows, rows)
    return best


@kernel
def _unrolled_alike(counts: Counts, row: int, other: int) -> bool:
    for i in range(counts.tiles, counts.logs.shape[1]):
        if counts.logs[row, i] != counts.logs[other, i]:
            return False
    return True

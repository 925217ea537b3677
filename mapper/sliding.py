"""Compiled counts on one tensor axis that several loops share (sliding windows, padding).

An axis is an int64 array ``[offset, size, coefficient of each loop...]``; position of a point
is ``offset + sum(coefficient * index)``, and only ``0 <= position < size`` exists.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@njit(cache=True)
def distinct_positions(axis: IntArray, starts: IntArray, stops: IntArray) -> int:
    """Distinct existing positions of the box ``starts <= index < stops``."""
    low = axis[0]
    for i in range(len(starts)):
        low += axis[2 + i] * starts[i]
    return _distinct(axis, low, stops - starts, 0, axis[1])


@njit(cache=True)
def distinct_clear(axis: IntArray, sizes: IntArray) -> int:
    """Distinct positions of a box of these sizes that lies clear of the padding."""
    return min(int(axis[1]), _distinct(axis, 0, sizes, 0, 1 << 62))


@njit(cache=True)
def _distinct(axis: IntArray, low: int, counts: IntArray, floor: int, ceiling: int) -> int:
    """An interval where the loops' strides leave no gap, otherwise counted by enumeration."""
    length = 1
    used = np.zeros(len(counts), dtype=np.bool_)
    for _ in range(len(counts)):
        pick = -1
        for i in range(len(counts)):
            if not used[i] and (pick < 0 or axis[2 + i] < axis[2 + pick]):
                pick = i
        used[pick] = True
        if counts[pick] > 1:
            if axis[2 + pick] > length:
                return _enumerated(axis, low, counts, floor, ceiling)
            length += axis[2 + pick] * (counts[pick] - 1)
    return max(0, min(low + length, ceiling) - max(low, floor))


@njit(cache=True)
def _enumerated(axis: IntArray, low: int, counts: IntArray, floor: int, ceiling: int) -> int:
    positions = np.array([low], dtype=np.int64)
    for i in range(len(counts)):
        grown = np.empty(len(positions) * counts[i], dtype=np.int64)
        for step in range(counts[i]):
            for j in range(len(positions)):
                grown[step * len(positions) + j] = positions[j] + step * axis[2 + i]
        positions = np.unique(grown)
    count = 0
    for position in positions:
        if floor <= position < ceiling:
            count += 1
    return count


@njit(cache=True)
def axis_moved(
    axis: IntArray, starts: IntArray, stops: IntArray, tiles: IntArray, parallel: IntArray
) -> IntArray:
    """Positions moved when the box is visited tile by tile; one answer per row of ``tiles``.

    With ``parallel`` all ones, overlapping needs within a tile count once and padding is not
    moved. Otherwise each active instance receives its own contiguous share of the tile.
    """
    answers = np.empty(len(tiles), dtype=np.int64)
    for row in range(len(tiles)):
        answers[row] = _moved(axis, starts, stops, tiles[row], parallel[row])
    return answers


@njit(cache=True)
def _moved(
    axis: IntArray, starts: IntArray, stops: IntArray, tile: IntArray, parallel: IntArray
) -> int:
    shared = np.all(parallel == 1)
    at = starts.copy()
    total = 0
    while True:
        ends = np.minimum(at + tile, stops)
        if shared:
            total += distinct_positions(axis, at, ends)
        else:
            sizes = ends - at
            active = np.minimum(sizes, parallel)
            share = -(-sizes // parallel)
            total += np.prod(active) * distinct_clear(axis, share)
        dim = len(at) - 1
        at[dim] += tile[dim]
        while at[dim] >= stops[dim]:
            at[dim] = starts[dim]
            dim -= 1
            if dim < 0:
                return total
            at[dim] += tile[dim]

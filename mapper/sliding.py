"""Compiled counts on one tensor axis that several loops share (sliding windows, padding).

An axis is an int64 array ``[offset, size, coefficient of each loop...]``; position of a point
is ``offset + sum(coefficient * index)``, and only ``0 <= position < size`` exists.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import compiled

IntArray = NDArray[np.int64]


@compiled
def distinct_positions(axis: IntArray, starts: IntArray, stops: IntArray) -> int:
    """Distinct existing positions of the box ``starts <= index < stops``."""
    low = axis[0]
    counts = np.empty(len(starts), dtype=np.int64)
    for i in range(len(starts)):
        counts[i] = stops[i] - starts[i]
        low += axis[2 + i] * (starts[i] if axis[2 + i] > 0 else stops[i] - 1)
    length = _interval(axis, counts)
    if length > 0:
        return int(max(0, min(low + length, axis[1]) - max(low, 0)))
    found = 0
    for at, is_met in enumerate(_met(axis, counts)):
        found += is_met and 0 <= low + at < axis[1]
    return found


@compiled
def distinct_clear(axis: IntArray, counts: IntArray) -> int:
    """Distinct positions of a box of these sizes that lies clear of the padding."""
    length = _interval(axis, counts)
    if length == 0:
        for is_met in _met(axis, counts):
            length += is_met
    return int(min(length, axis[1]))


@compiled
def _interval(axis: IntArray, counts: IntArray) -> int:
    """Length of the interval that a box covers, 0 if the loops' strides leave gaps."""
    length = 1
    used = np.zeros(len(counts), dtype=np.bool_)
    for _ in range(len(counts)):
        pick = -1
        for i in range(len(counts)):
            if not used[i] and (pick < 0 or abs(axis[2 + i]) < abs(axis[2 + pick])):
                pick = i
        used[pick] = True
        if counts[pick] > 1:
            if abs(axis[2 + pick]) > length:
                return 0
            length += abs(axis[2 + pick]) * (counts[pick] - 1)
    return length


@compiled
def _met(axis: IntArray, counts: IntArray) -> NDArray[np.bool_]:
    """Which positions a box meets, counted from its lowest."""
    length = 1
    for i in range(len(counts)):
        length += abs(axis[2 + i]) * (counts[i] - 1)
    met = np.zeros(length, dtype=np.bool_)
    met[0] = True
    for i in range(len(counts)):
        stride = abs(axis[2 + i])
        for at in range(length - 1, -1, -1):
            if met[at]:
                for step in range(1, counts[i]):
                    met[at + step * stride] = True
    return met


@compiled
def tiles_moved(
    axis: IntArray, starts: IntArray, stops: IntArray, tile: IntArray, parallel: IntArray
) -> int:
    """Positions moved when the box is visited tile by tile.

    With ``parallel`` all ones, overlapping needs within a tile count once and padding is not
    moved. Otherwise each active instance receives its own contiguous share of the tile.
    """
    shared = True
    for instances in parallel:
        shared = shared and instances == 1
    at, ends, sizes = starts.copy(), starts.copy(), starts.copy()
    total = 0
    while True:
        for i in range(len(at)):
            ends[i] = min(at[i] + tile[i], stops[i])
            sizes[i] = ends[i] - at[i]
        if shared:
            total += distinct_positions(axis, at, ends)
        else:
            total += _shares(axis, sizes, parallel)
        dim = len(at) - 1
        at[dim] += tile[dim]
        while at[dim] >= stops[dim]:
            at[dim] = starts[dim]
            dim -= 1
            if dim < 0:
                return total
            at[dim] += tile[dim]


@compiled
def _shares(axis: IntArray, sizes: IntArray, parallel: IntArray) -> int:
    """Positions that all instances receive; along a loop some shares are longer by one."""
    share = np.empty(len(sizes), dtype=np.int64)
    total = 0
    for longer in range(1 << len(sizes)):
        instances = 1
        for i in range(len(sizes)):
            active = min(sizes[i], parallel[i])
            is_longer = (longer >> i) & 1
            share[i] = sizes[i] // active + is_longer
            rest = sizes[i] % active
            instances *= rest if is_longer else active - rest
        if instances > 0:
            total += instances * distinct_clear(axis, share)
    return total

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
    for instances in parallel:
        if instances != 1:
            return _moved_in_shares(axis, starts, stops, tile, parallel)
    at, ends = starts.copy(), starts.copy()
    clear = np.full(1 << len(at), -1, dtype=np.int64)
    total = 0
    while True:
        low, high, ragged = axis[0], axis[0], 0
        for i in range(len(at)):
            ends[i] = min(at[i] + tile[i], stops[i])
            low += min(axis[2 + i] * at[i], axis[2 + i] * (ends[i] - 1))
            high += max(axis[2 + i] * at[i], axis[2 + i] * (ends[i] - 1))
            ragged |= int(ends[i] - at[i] < tile[i]) << i
        if low < 0 or high >= axis[1]:
            total += distinct_positions(axis, at, ends)
        else:
            # Clear of the padding, boxes of the same shape are all alike.
            if clear[ragged] < 0:
                clear[ragged] = distinct_positions(axis, at, ends)
            total += clear[ragged]
        dim = len(at) - 1
        at[dim] += tile[dim]
        while at[dim] >= stops[dim]:
            at[dim] = starts[dim]
            dim -= 1
            if dim < 0:
                return total
            at[dim] += tile[dim]


@compiled
def _moved_in_shares(
    axis: IntArray, starts: IntArray, stops: IntArray, tile: IntArray, parallel: IntArray
) -> int:
    """Tiles differ only in whether they are the ragged last one of each loop."""
    sizes = np.empty(len(tile), dtype=np.int64)
    total = 0
    for ragged in range(1 << len(tile)):
        visits = 1
        for i in range(len(tile)):
            full, rest = divmod(stops[i] - starts[i], tile[i])
            is_last = (ragged >> i) & 1
            sizes[i] = rest if is_last else tile[i]
            visits *= min(rest, 1) if is_last else full
        if visits > 0:
            total += visits * _shares(axis, sizes, parallel)
    return total


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

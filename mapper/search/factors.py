"""Factors that the tilings of one group of dimensions contribute to each volume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mapper.compiled import compiled
from mapper.footprint import axis_record
from mapper.hierarchy import Execution
from mapper.search.pricing import FloatArray
from mapper.search.tilings import IntArray, Tilings
from mapper.sliding import distinct_clear, tiles_moved

MOVED, HELD, VISITS, REVISITS, FRESH, USED = range(6)
KINDS = {
    "moved": MOVED,
    "held": HELD,
    "visits": VISITS,
    "steps": VISITS,
    "revisits": REVISITS,
    "fresh": FRESH,
    "used": USED,
}

# Fields of a column in the compiled table.
KIND, OPERAND, LEVEL, AXES, LIFTED = range(5)

#: Memo of counts on shared axes: 2**12 slots, multiplicative hashing (Knuth, TAOCP 3, 6.4).
_MEMO = 1 << 12
_GOLDEN, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(64 - 12)


@dataclass(frozen=True, slots=True)
class Column:
    """One volume: what is counted, of which operand, at which stage.

    ``kind`` is ``moved`` (elements moved, one copy per instance along ``over``), ``held``
    (elements that an instance keeps), ``visits`` (tiles that pass through), ``fresh`` (first
    visits of an output), ``revisits`` (visits of the same output), ``steps`` or ``used`` (of
    the axis in ``over``). ``stage`` is a position in the order of stages; -1 is one step of
    the compute unit. A ``lifted`` column is multiplied by the contended axes used.
    """

    kind: str
    operand: int = -1
    stage: int = -1
    over: tuple[str, ...] = ()
    lifted: bool = False


#: Tilings of a dimension, and which of them each row has.
Options = tuple[Tilings, IntArray]


class Group(NamedTuple):
    """One group of dimensions, as the compiled code reads it.

    ``contended`` is the mask of the axes that lift. ``indexes[operand, dim]``,
    ``separate[operand, dim]`` (not on a shared axis), ``reduction[dim]`` and ``picked[dim]`` are
    flags. Each shared axis has its record in ``records`` (see ``mapper.sliding``), the numbers of
    its dimensions in ``on_axis`` (padded with -1), and in ``axis_operand`` whose it is.
    """

    contended: int
    extents: IntArray
    indexes: IntArray
    reduction: IntArray
    picked: IntArray
    separate: IntArray
    records: IntArray
    on_axis: IntArray
    axis_operand: IntArray


def group_factors(shape: Group, columns: IntArray, picked: list[Options | None]) -> FloatArray:
    """``[row, column]``: the factor that each row of tilings contributes to each volume.

    ``picked`` are, for each dimension of the group, its tilings and which of them each row has.
    A dimension that is not picked counts as little as any of its tilings would, so that the
    factors are lower bounds.
    """
    given = [options for options in picked if options is not None]
    some, rows = given[0][0], len(given[0][1])
    levels = np.ones((len(picked), rows, some.levels.shape[1]), dtype=np.int64)
    spatial = np.ones((len(picked), rows, some.spatial.shape[1]), dtype=np.int64)
    for d, options in enumerate(picked):
        if options is not None:
            levels[d] = options[0].levels[options[1]]
            spatial[d] = options[0].spatial[options[1]]
    answer: FloatArray = _fill(shape, columns, levels, spatial)
    return answer


def column_table(run: Execution, columns: tuple[Column, ...]) -> IntArray:
    """One row of fields per column, ``AXES`` being a bit mask."""
    bit = _axis_bits(run)
    return np.array(
        [
            (KINDS[c.kind], c.operand, c.stage, sum(bit[name] for name in c.over), c.lifted)
            for c in columns
        ],
        dtype=np.int64,
    )


def _axis_bits(run: Execution) -> dict[str, int]:
    return {axis.name: 1 << i for i, axis in enumerate(run.intrinsic.axes)}


def group_shape(
    run: Execution, group: tuple[str, ...], contended: tuple[str, ...], picked: frozenset[str]
) -> Group:
    """The group with some of its dimensions picked."""
    extents = run.operator.extents
    bit = _axis_bits(run)
    operands = run.counts.operands
    reduced = run.operator.reduction_dims()
    # With dimensions missing, a shared axis counts once: with its longest dimension.
    axes = [
        (i, axis)
        for i, operand in enumerate(operands)
        for axis in operand.coupled_axes(group)
        if max(axis.dims, key=lambda dim: extents[dim]) in picked
    ]
    width = max((len(axis.dims) for _, axis in axes), default=1)
    records = np.zeros((len(axes), 2 + width), dtype=np.int64)
    on_axis = np.full((len(axes), width), -1, dtype=np.int64)
    for k, (_, axis) in enumerate(axes):
        records[k, : 2 + len(axis.dims)] = axis_record(axis)
        on_axis[k, : len(axis.dims)] = [group.index(dim) for dim in axis.dims]
    shared = [
        {d for axis in operand.coupled_axes(group) for d in axis.dims} for operand in operands
    ]
    return Group(
        contended=sum(bit[name] for name in contended),
        extents=np.array([extents[dim] for dim in group], dtype=np.int64),
        indexes=np.array([[dim in o.dims for dim in group] for o in operands], dtype=np.int64),
        reduction=np.array([dim in reduced for dim in group], dtype=np.int64),
        picked=np.array([dim in picked for dim in group], dtype=np.int64),
        separate=np.array([[dim not in dims for dim in group] for dims in shared], dtype=np.int64),
        records=records,
        on_axis=on_axis,
        axis_operand=np.array([i for i, _ in axes], dtype=np.int64),
    )


def are_alike(one: Group, other: Group) -> bool:
    """Do the same tilings contribute the same factors to both?"""
    return all(
        np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True)
    )


class _Rows(NamedTuple):
    """One column in the making: tile and spatial factor ``[dim, row]``, and the product so far."""

    tile: IntArray
    parallel: IntArray
    factor: IntArray


# Compiled code below loops over elements: operations on whole arrays take numba ten times
# longer to compile, and whoever uses the tool for the first time waits for that.


@compiled
def _fill(group: Group, columns: IntArray, levels: IntArray, spatial: IntArray) -> FloatArray:
    """The factors; ``levels[dim, row]`` ends with the tile of one step (level -1)."""
    dims, rows, _ = levels.shape
    answer = np.empty((rows, len(columns)))
    scratch = _Rows(
        np.empty((dims, rows), dtype=np.int64),
        np.empty((dims, rows), dtype=np.int64),
        np.empty(rows, dtype=np.int64),
    )
    for c in range(len(columns)):
        for row in range(rows):
            scratch.factor[row] = 1
        if columns[c, LIFTED]:
            _unroll(spatial, group.contended, scratch.parallel)
            _times_used(scratch)
        _unroll(spatial, columns[c, AXES], scratch.parallel)
        _pick_tiles(group, columns[c, KIND], columns[c, LEVEL], levels, scratch.tile)
        _times_column(group, columns[c, KIND], columns[c, OPERAND], scratch)
        for row in range(rows):
            answer[row, c] = scratch.factor[row]
    return answer


@compiled
def _unroll(spatial: IntArray, axes: int, factors: IntArray) -> None:
    """Spatial factor of each dimension over the axes of the mask."""
    for d in range(factors.shape[0]):
        for row in range(factors.shape[1]):
            factors[d, row] = 1
            for axis in range(spatial.shape[2]):
                if axes >> axis & 1:
                    factors[d, row] *= spatial[d, row, axis]


@compiled
def _pick_tiles(group: Group, kind: int, level: int, levels: IntArray, tile: IntArray) -> None:
    """The tile of each dimension; of one that is not picked, the one that counts least."""
    level %= levels.shape[2]
    for d in range(tile.shape[0]):
        least = 1 if kind == HELD else group.extents[d]
        for row in range(tile.shape[1]):
            tile[d, row] = levels[d, row, level] if group.picked[d] else least


@compiled
def _times_column(group: Group, kind: int, operand: int, rows: _Rows) -> None:
    if kind == USED:
        _times_used(rows)
    elif kind > HELD:
        _times_chunks(group, kind, rows)
    else:
        for d in range(len(group.extents)):
            if group.picked[d] and group.separate[operand, d]:
                _times_separate(group, kind, operand, d, rows)
        for k in range(len(group.axis_operand)):
            if group.axis_operand[k] == operand:
                _times_axis(group, kind, k, rows)


@compiled
def _times_used(rows: _Rows) -> None:
    for d in range(rows.parallel.shape[0]):
        for row in range(len(rows.factor)):
            rows.factor[row] *= rows.parallel[d, row]


@compiled
def _times_chunks(group: Group, kind: int, rows: _Rows) -> None:
    for d in range(len(group.extents)):
        if kind == VISITS or (group.reduction[d] != 0) == (kind == REVISITS):
            for row in range(len(rows.factor)):
                rows.factor[row] *= -(-group.extents[d] // rows.tile[d, row])


@compiled
def _times_separate(group: Group, kind: int, operand: int, dim: int, rows: _Rows) -> None:
    """What one dimension contributes that is on no shared axis."""
    extent, is_indexed = group.extents[dim], group.indexes[operand, dim]
    for row in range(len(rows.factor)):
        size, instances = rows.tile[dim, row], rows.parallel[dim, row]
        if kind == HELD:
            if is_indexed:
                rows.factor[row] *= -(-size // instances)
        elif is_indexed:
            rows.factor[row] *= extent
        else:
            full = extent // size
            served = full * min(instances, size) + min(instances, extent - full * size)
            rows.factor[row] *= served


@compiled
def _times_axis(group: Group, kind: int, number: int, rows: _Rows) -> None:
    """What is counted on a shared axis; rows repeat each other, so counts are remembered."""
    dims = 0
    while dims < group.on_axis.shape[1] and group.on_axis[number, dims] >= 0:
        dims += 1
    record = np.empty(2 + dims, dtype=np.int64)
    for i in range(2 + dims):
        record[i] = group.records[number, i]
    start, stop = np.empty(dims, dtype=np.int64), np.empty(dims, dtype=np.int64)
    tile, parallel = np.empty(dims, dtype=np.int64), np.empty(dims, dtype=np.int64)
    for i in range(dims):
        start[i], stop[i] = 0, group.extents[group.on_axis[number, i]]
    keys, values = np.empty(_MEMO, dtype=np.int64), np.empty(_MEMO, dtype=np.int64)
    for i in range(_MEMO):
        keys[i] = -1
    for row in range(len(rows.factor)):
        for i in range(dims):
            tile[i] = rows.tile[group.on_axis[number, i], row]
            parallel[i] = rows.parallel[group.on_axis[number, i], row]
        key = _axis_key(tile, parallel)
        slot = np.int64(np.uint64(key) * _GOLDEN >> _SHIFT)
        if key < 0 or keys[slot] != key:
            keys[slot] = key
            if kind == HELD:
                for i in range(dims):
                    tile[i] = -(-tile[i] // parallel[i])
                values[slot] = distinct_clear(record, tile)
            else:
                values[slot] = tiles_moved(record, start, stop, tile, parallel)
        rows.factor[row] *= values[slot]


@compiled
def _axis_key(tile: IntArray, parallel: IntArray) -> int:
    """Equal only where counts are equal; -1 if the numbers do not fit."""
    key = np.int64(0)
    for i in range(len(tile)):
        if i > 1 or tile[i] >= 1 << 18 or parallel[i] >= 1 << 12:
            return -1
        key = key << 30 | tile[i] << 12 | parallel[i]
    return int(key)

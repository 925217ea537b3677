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
from mapper.sliding import axis_moved, distinct_clear

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


class Group(NamedTuple):
    """One group of dimensions and the columns to fill, as the compiled code reads them.

    ``columns`` has one row of fields per column, ``AXES`` being a bit mask; ``contended`` is
    the mask of the axes that lift. ``indexes[operand, dim]``, ``separate[operand, dim]`` (not
    on a shared axis), ``reduction[dim]`` and ``picked[dim]`` are flags. Each shared axis has
    its record in ``records`` (see ``mapper.sliding``), the numbers of its dimensions in
    ``on_axis`` (padded with -1), and in ``axis_operand`` whose it is.
    """

    columns: IntArray
    contended: int
    extents: IntArray
    indexes: IntArray
    reduction: IntArray
    picked: IntArray
    separate: IntArray
    records: IntArray
    on_axis: IntArray
    axis_operand: IntArray


def group_factors(
    run: Execution,
    group: tuple[str, ...],
    columns: tuple[Column, ...],
    contended: tuple[str, ...],
    picked: dict[str, tuple[Tilings, IntArray]],
) -> FloatArray:
    """``[row, column]``: the factor that each row of tilings contributes to each volume.

    ``picked[dim]`` are the tilings of a dimension and which of them each row has. A dimension
    of the group that is not picked counts as little as any of its tilings would, so that the
    factors are lower bounds.
    """
    rows = len(next(iter(picked.values()))[1])
    some = next(iter(picked.values()))[0]
    levels = np.ones((len(group), rows, some.levels.shape[1]), dtype=np.int64)
    spatial = np.ones((len(group), rows, some.spatial.shape[1]), dtype=np.int64)
    for d, dim in enumerate(group):
        if dim in picked:
            options, chosen = picked[dim]
            levels[d] = options.levels[chosen]
            spatial[d] = options.spatial[chosen]
    table = _group(run, group, columns, contended, frozenset(picked))
    answer: FloatArray = _fill(table, levels, spatial)
    return answer


def _group(
    run: Execution,
    group: tuple[str, ...],
    columns: tuple[Column, ...],
    contended: tuple[str, ...],
    picked: frozenset[str],
) -> Group:
    extents = run.operator.extents
    bit = {axis.name: 1 << i for i, axis in enumerate(run.intrinsic.axes)}
    operands = run.counts.operands
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
        columns=np.array(
            [
                (KINDS[c.kind], c.operand, c.stage, sum(bit[name] for name in c.over), c.lifted)
                for c in columns
            ],
            dtype=np.int64,
        ),
        contended=sum(bit[name] for name in contended),
        extents=np.array([extents[dim] for dim in group], dtype=np.int64),
        indexes=np.array([[dim in o.dims for dim in group] for o in operands], dtype=np.int64),
        reduction=np.array([dim in run.operator.reduction_dims() for dim in group], dtype=np.int64),
        picked=np.array([dim in picked for dim in group], dtype=np.int64),
        separate=np.array([[dim not in dims for dim in group] for dims in shared], dtype=np.int64),
        records=records,
        on_axis=on_axis,
        axis_operand=np.array([i for i, _ in axes], dtype=np.int64),
    )


@compiled
def _fill(group: Group, levels: IntArray, spatial: IntArray) -> FloatArray:
    """The factors; ``levels[dim, row]`` ends with the tile of one step (level -1)."""
    dims, rows, depth = levels.shape
    answer = np.empty((rows, len(group.columns)))
    tile = np.empty((dims, rows), dtype=np.int64)
    parallel = np.empty((dims, rows), dtype=np.int64)
    count = np.empty(rows, dtype=np.int64)
    lift = np.ones(rows, dtype=np.int64)
    _unroll(spatial, group.contended, parallel)
    for d in range(dims):
        lift *= parallel[d]
    for c in range(len(group.columns)):
        column = group.columns[c]
        kind, operand = column[KIND], column[OPERAND]
        _unroll(spatial, column[AXES], parallel)
        for d in range(dims):
            if group.picked[d]:
                tile[d] = levels[d, :, column[LEVEL] % depth]
            else:
                tile[d] = 1 if kind == HELD else group.extents[d]
        count[:] = 1
        _times_separate(group, kind, operand, tile, parallel, count)
        if kind <= HELD:
            _times_axes(group, kind, operand, tile, parallel, count)
        answer[:, c] = count * lift if column[LIFTED] else count
    return answer


@compiled
def _times_separate(
    group: Group, kind: int, operand: int, tile: IntArray, parallel: IntArray, count: IntArray
) -> None:
    """What each dimension contributes on its own."""
    if kind == MOVED:
        _times_moved(group, operand, tile, parallel, count)
    elif kind == HELD:
        _times_held(group, operand, tile, parallel, count)
    elif kind == USED:
        for d in range(len(parallel)):
            count *= parallel[d]
    else:
        _times_chunks(group, kind, tile, count)


@compiled
def _unroll(spatial: IntArray, axes: int, factors: IntArray) -> None:
    """Spatial factor of each dimension over the axes of the mask."""
    factors[:] = 1
    for axis in range(spatial.shape[2]):
        if axes >> axis & 1:
            for d in range(len(factors)):
                factors[d] *= spatial[d, :, axis]


@compiled
def _times_chunks(group: Group, kind: int, tile: IntArray, count: IntArray) -> None:
    for d in range(len(tile)):
        if kind == VISITS or (group.reduction[d] != 0) == (kind == REVISITS):
            for row in range(len(count)):
                count[row] *= -(-group.extents[d] // tile[d, row])


@compiled
def _times_moved(
    group: Group, operand: int, tile: IntArray, parallel: IntArray, count: IntArray
) -> None:
    """All but what is counted on a shared axis."""
    for d in range(len(tile)):
        extent = group.extents[d]
        if not group.picked[d] or not group.separate[operand, d]:
            continue
        if group.indexes[operand, d]:
            count *= extent
            continue
        for row in range(len(count)):
            size, instances = tile[d, row], parallel[d, row]
            full = extent // size
            served = full * min(instances, size) + min(instances, extent - full * size)
            count[row] *= served


@compiled
def _times_held(
    group: Group, operand: int, tile: IntArray, parallel: IntArray, count: IntArray
) -> None:
    """All but what is counted on a shared axis."""
    for d in range(len(tile)):
        if group.indexes[operand, d] and group.separate[operand, d]:
            for row in range(len(count)):
                count[row] *= -(-tile[d, row] // parallel[d, row])


@compiled
def _times_axes(
    group: Group, kind: int, operand: int, tile: IntArray, parallel: IntArray, count: IntArray
) -> None:
    for k in range(len(group.axis_operand)):
        if group.axis_operand[k] == operand:
            dims = group.on_axis[k][group.on_axis[k] >= 0]
            record = group.records[k, : 2 + len(dims)]
            _times_axis(
                record, group.extents[dims], tile[dims], parallel[dims], kind == HELD, count
            )


@compiled
def _times_axis(
    record: IntArray,
    extents: IntArray,
    tile: IntArray,
    parallel: IntArray,
    held: bool,
    count: IntArray,
) -> None:
    """What is counted on a shared axis; rows repeat each other, so counts are remembered."""
    keys = np.full(_MEMO, -1, dtype=np.int64)
    values = np.empty(_MEMO, dtype=np.int64)
    start = np.zeros(len(extents), dtype=np.int64)
    for row in range(len(count)):
        key = _axis_key(tile, parallel, row)
        slot = np.int64(np.uint64(key) * _GOLDEN >> _SHIFT)
        if key < 0 or keys[slot] != key:
            tiles = tile[:, row].copy().reshape((1, -1))
            instances = parallel[:, row].copy().reshape((1, -1))
            keys[slot] = key
            if held:
                values[slot] = distinct_clear(record, -(-tiles[0] // instances[0]))
            else:
                values[slot] = axis_moved(record, start, extents, tiles, instances)[0]
        count[row] *= values[slot]


@compiled
def _axis_key(tile: IntArray, parallel: IntArray, row: int) -> int:
    """Equal only for rows with equal counts; -1 if the numbers do not fit."""
    key = np.int64(0)
    for i in range(len(tile)):
        if i > 1 or tile[i, row] >= 1 << 18 or parallel[i, row] >= 1 << 12:
            return -1
        key = key << 30 | tile[i, row] << 12 | parallel[i, row]
    return int(key)

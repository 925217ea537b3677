"""Factors that the tilings of one group of dimensions contribute to each volume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mapper.compiled import compiled, kernel
from mapper.footprint import axis_record
from mapper.hierarchy import Execution
from mapper.search.pricing import FloatArray
from mapper.search.tilings import Blocks, IntArray, Tilings
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
    return _filled(shape, columns, (levels, levels, spatial))


def block_factors(shape: Group, columns: IntArray, blocks: Blocks) -> FloatArray:
    """``[block, column]``: what the block's rows contribute at least, of a group of one dimension
    that is on no shared axis.

    There the elements moved and the visits shrink as tiles grow, the elements held grow.
    """
    cut = blocks.largest[None], blocks.smallest[None], blocks.spatial[None]
    return _filled(shape, columns, cut)


def _filled(
    shape: Group, columns: IntArray, cut: tuple[IntArray, IntArray, IntArray]
) -> FloatArray:
    masks, columns = _masks(shape.contended, columns)
    answer: FloatArray = _fill(shape, columns, masks, cut)
    return answer


def _masks(contended: int, columns: IntArray) -> tuple[IntArray, IntArray]:
    """The masks of axes that occur, that of the contended ones first; columns name them by
    number."""
    masks = dict.fromkeys([contended, *columns[:, AXES].tolist()])
    numbers = {mask: number for number, mask in enumerate(masks)}
    numbered = columns.copy()
    numbered[:, AXES] = [numbers[mask] for mask in columns[:, AXES].tolist()]
    return np.array(list(masks), dtype=np.int64), numbered


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
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


# Compiled code below loops over elements: operations on whole arrays take numba ten times
# longer to compile, and whoever uses the tool for the first time waits for that.


class _Block(NamedTuple):
    """Rows in the making. By dimension, level and row: the tile (for what is held, the
    smallest), how many tiles are whole, what is left over, how many tiles there are; by mask of
    axes, dimension and row: the instances."""

    tile: FloatArray
    smallest: FloatArray
    whole: FloatArray
    rest: FloatArray
    chunks: FloatArray
    parallel: FloatArray
    factor: FloatArray


#: Rows made at a time: as many as stay in the cache.
_BLOCK = 256


@compiled
def _fill(
    group: Group, columns: IntArray, masks: IntArray, cut: tuple[IntArray, IntArray, IntArray]
) -> FloatArray:
    """The factors. ``cut`` are the tiles, those that count for what is held (the same, unless
    a row stands for several), both ending with the tile of one step (level -1), and the
    spatial factors. Of the masks of axes the first is that of the contended ones.
    """
    levels, smallest, spatial = cut
    dims, rows, depth = levels.shape
    answer = np.empty((rows, len(columns)))
    shape = dims, depth, _BLOCK
    block = _Block(
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
        np.empty((len(masks), dims, _BLOCK)),
        np.empty(_BLOCK),
    )
    for begin in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - begin)
        _cut(group, (levels, smallest), begin, count, block)
        _unroll(masks, spatial, begin, count, block.parallel)
        for c in range(len(columns)):
            _multiply(group, columns[c], count, block)
            for i in range(count):
                answer[begin + i, c] = block.factor[i]
    if len(group.axis_operand) > 0:
        _times_axes(group, columns, masks, (levels, spatial), answer)
    return answer


@kernel
def _cut(
    group: Group, tiles: tuple[IntArray, IntArray], begin: int, count: int, block: _Block
) -> None:
    """How tiles cut each dimension; one that is not picked stays whole.

    Extents are below 2**52, so that quotients of floats are exact when cut off.
    """
    levels, smallest = tiles
    for d in range(levels.shape[0]):
        extent, picked = np.float64(group.extents[d]), group.picked[d] != 0
        for level in range(levels.shape[2]):
            tile, least = block.tile[d, level], block.smallest[d, level]
            whole = block.whole[d, level]
            rest, chunks = block.rest[d, level], block.chunks[d, level]
            for i in range(count):
                tile[i] = levels[d, begin + i, level] if picked else extent
                least[i] = smallest[d, begin + i, level]
                whole[i] = np.floor(extent / tile[i])
                rest[i] = extent - whole[i] * tile[i]
                chunks[i] = np.ceil(extent / tile[i])


@kernel
def _unroll(
    masks: IntArray, spatial: IntArray, begin: int, count: int, parallel: FloatArray
) -> None:
    """Spatial factor of each dimension over the axes of each mask."""
    for m in range(masks.shape[0]):
        for d in range(spatial.shape[0]):
            for i in range(count):
                parallel[m, d, i] = 1.0
            for axis in range(spatial.shape[2]):
                if masks[m] >> axis & 1:
                    for i in range(count):
                        parallel[m, d, i] *= spatial[d, begin + i, axis]


@kernel
def _multiply(group: Group, column: IntArray, count: int, block: _Block) -> None:
    """Fills in the factors of one column, but for what is counted on shared axes."""
    kind, operand, factor = column[KIND], column[OPERAND], block.factor
    level = column[LEVEL] % block.tile.shape[1]
    for i in range(count):
        factor[i] = 1.0
    for d in range(group.extents.shape[0]):
        if column[LIFTED] != 0:
            _times(factor, block.parallel[0, d], count)
        if kind == USED:
            _times(factor, block.parallel[column[AXES], d], count)
        elif kind > HELD:
            if kind == VISITS or (group.reduction[d] != 0) == (kind == REVISITS):
                _times(factor, block.chunks[d, level], count)
        elif group.picked[d] != 0 and group.separate[operand, d] != 0:
            _times_separate(group, column, d, count, block)


@kernel
def _times(factor: FloatArray, other: FloatArray, count: int) -> None:
    for i in range(count):
        factor[i] *= other[i]


@kernel
def _times_separate(group: Group, column: IntArray, d: int, count: int, block: _Block) -> None:
    """What one dimension contributes that is on no shared axis."""
    level, extent = column[LEVEL] % block.tile.shape[1], np.float64(group.extents[d])
    is_indexed = group.indexes[column[OPERAND], d] != 0
    factor, instances = block.factor, block.parallel[column[AXES], d]
    tile, whole, rest = block.tile[d, level], block.whole[d, level], block.rest[d, level]
    if column[KIND] == HELD:
        if is_indexed:
            tile = block.smallest[d, level]
            for i in range(count):
                factor[i] *= np.ceil(tile[i] / instances[i])
    elif is_indexed:
        for i in range(count):
            factor[i] *= extent
    else:
        for i in range(count):
            served = min(instances[i], tile[i])
            factor[i] *= whole[i] * served + min(instances[i], rest[i])


@compiled
def _times_axes(
    group: Group,
    columns: IntArray,
    masks: IntArray,
    tilings: tuple[IntArray, IntArray],
    answer: FloatArray,
) -> None:
    """What is counted on shared axes; columns and rows repeat each other, so counts are
    remembered."""
    keys = np.full((2 * len(group.axis_operand), _MEMO), -1, dtype=np.int64)
    counts = np.empty(keys.shape, dtype=np.int64)
    for c in range(len(columns)):
        kind, operand, level, axes = columns[c, 0], columns[c, 1], columns[c, 2], columns[c, 3]
        for k in range(len(group.axis_operand)):
            if kind <= HELD and group.axis_operand[k] == operand:
                place = 2 * k + int(kind == HELD)
                which = k, level % tilings[0].shape[2], masks[axes], kind
                _times_axis(group, which, tilings, (keys[place], counts[place]), answer[:, c])


@compiled
def _times_axis(
    group: Group,
    which: tuple[int, int, int, int],
    tilings: tuple[IntArray, IntArray],
    memo: tuple[IntArray, IntArray],
    factors: FloatArray,
) -> None:
    number, level, mask, kind = which
    is_held = kind == HELD
    levels, spatial = tilings
    keys, counts = memo
    dims = 0
    while dims < group.on_axis.shape[1] and group.on_axis[number, dims] >= 0:
        dims += 1
    record = group.records[number, : 2 + dims].copy()
    tile, parallel = np.empty(dims, dtype=np.int64), np.empty(dims, dtype=np.int64)
    stop = np.empty(dims, dtype=np.int64)
    for i in range(dims):
        stop[i] = group.extents[group.on_axis[number, i]]
    for row in range(len(factors)):
        for i in range(dims):
            d = group.on_axis[number, i]
            least = 1 if is_held else group.extents[d]
            tile[i] = levels[d, row, level] if group.picked[d] else least
            parallel[i] = 1
            for axis in range(spatial.shape[2]):
                if mask >> axis & 1:
                    parallel[i] *= spatial[d, row, axis]
        key = _axis_key(tile, parallel)
        slot = np.int64(np.uint64(key) * _GOLDEN >> _SHIFT)
        if key < 0 or keys[slot] != key:
            keys[slot] = key
            counts[slot] = _count(record, stop, is_held, (tile, parallel))
        factors[row] *= counts[slot]


@compiled
def _count(record: IntArray, stop: IntArray, is_held: bool, cut: tuple[IntArray, IntArray]) -> int:
    """Elements that tiles hold or move along a shared axis."""
    tile, parallel = cut
    if is_held:
        for i in range(len(tile)):
            tile[i] = -(-tile[i] // parallel[i])
        return int(distinct_clear(record, tile))
    return int(tiles_moved(record, np.zeros(len(tile), dtype=np.int64), stop, tile, parallel))


@compiled
def _axis_key(tile: IntArray, parallel: IntArray) -> int:
    """Equal only where counts are equal; -1 if the numbers do not fit."""
    key = np.int64(0)
    for i in range(len(tile)):
        if i > 1 or tile[i] >= 1 << 18 or parallel[i] >= 1 << 12:
            return -1
        key = key << 30 | tile[i] << 12 | parallel[i]
    return int(key)

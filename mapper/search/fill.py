"""Tables of factors, compiled: what tiles and spatial factors contribute to each volume."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapper.compiled import compiled, kernel
from mapper.search.pricing import FloatArray, IntArray
from mapper.sliding import distinct_clear, tiles_moved

MOVED, HELD, VISITS, REVISITS, FRESH, USED = range(6)

# Fields of a column in the compiled table.
KIND, OPERAND, LEVEL, AXES, LIFTED = range(5)

#: Memo of counts on shared axes: so many slots at most, multiplicative hashing (Knuth, TAOCP 3,
#: 6.4).
_MEMO = 1 << 12
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


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
def fill(
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
    slots = 64
    while slots < min(answer.shape[0], _MEMO):
        slots *= 2
    places, width = 2 * len(group.axis_operand), 2 * group.on_axis.shape[1]
    keys = np.zeros((places, slots, width), dtype=np.int64)
    counts = np.empty((places, slots), dtype=np.int64)
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
            least = 1 if kind == HELD else group.extents[d]
            tile[i] = levels[d, row, level] if group.picked[d] else least
            parallel[i] = 1
            for axis in range(spatial.shape[2]):
                if mask >> axis & 1:
                    parallel[i] *= spatial[d, row, axis]
        slot = _slot(tile, parallel, len(counts))
        if not _is_known(keys[slot], tile, parallel):
            counts[slot] = _count(record, stop, kind == HELD, (tile, parallel))
        factors[row] *= counts[slot]


@kernel
def _slot(tile: IntArray, parallel: IntArray, slots: int) -> int:
    """Where the counts of such tiles are remembered; ``slots`` is a power of two."""
    key = np.uint64(0)
    for i in range(tile.shape[0]):
        key = (key ^ np.uint64(tile[i] << 20 | parallel[i])) * _GOLDEN
        key ^= key >> np.uint64(29)
    return int(key & np.uint64(slots - 1))


@kernel
def _is_known(key: IntArray, tile: IntArray, parallel: IntArray) -> bool:
    """Are these the tiles that are remembered? From now on they are."""
    known = True
    for i in range(tile.shape[0]):
        known = known and key[2 * i] == tile[i] and key[2 * i + 1] == parallel[i]
        key[2 * i], key[2 * i + 1] = tile[i], parallel[i]
    return known


@compiled
def _count(record: IntArray, stop: IntArray, is_held: bool, cut: tuple[IntArray, IntArray]) -> int:
    """Elements that tiles hold or move along a shared axis."""
    tile, parallel = cut
    if is_held:
        for i in range(len(tile)):
            tile[i] = -(-tile[i] // parallel[i])
        return int(distinct_clear(record, tile))
    return int(tiles_moved(record, np.zeros(len(tile), dtype=np.int64), stop, tile, parallel))

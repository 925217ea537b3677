"""Factors that the tilings of one group of dimensions contribute to each volume."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapper.footprint import axis_record
from mapper.hierarchy import Execution
from mapper.search.fill import AXES, FRESH, HELD, MOVED, REVISITS, USED, VISITS, Group, fill
from mapper.search.pricing import FloatArray
from mapper.search.tilings import Blocks, IntArray, Tilings

KINDS = {
    "moved": MOVED,
    "held": HELD,
    "visits": VISITS,
    "steps": VISITS,
    "revisits": REVISITS,
    "fresh": FRESH,
    "used": USED,
}


class Column(NamedTuple):
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


def group_factors(shape: Group, columns: IntArray, picked: list[Options | None]) -> FloatArray:
    """``[row, column]``: the factor that each row of tilings contributes to each volume.

    ``picked`` are, for each dimension of the group, its tilings and which of them each row has.
    A dimension that is not picked counts as little as any of its tilings would, so that the
    factors are lower bounds.
    """
    given = [options for options in picked if options is not None]
    some, rows = given[0][0], len(given[0][1])
    levels = np.ones((len(picked), rows, len(some.depth) + 1), dtype=np.int64)
    spatial = np.ones((len(picked), rows, some.spatial.shape[1]), dtype=np.int64)
    for d, options in enumerate(picked):
        if options is not None:
            tilings, numbers = options
            levels[d] = tilings.chains.sizes[numbers[:, None], (*tilings.depth, -1)]
            spatial[d] = tilings.spatial[numbers]
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
    answer: FloatArray = fill(shape, columns, masks, cut)
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
    masks = {over: sum(bit[name] for name in over) for over in {c.over for c in columns}}
    rows = [(KINDS[c.kind], c.operand, c.stage, masks[c.over], c.lifted) for c in columns]
    return np.array(rows, dtype=np.int64)


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

"""What all mappings under many orders of stages count: tables of all tilings at once.

An order of stages only decides after how many splits a stage has its tile. So one table per
dimension (factors of each tiling after so many splits) serves all orders with the same tilings.
Where dimensions share an axis of an operand, a table of their combinations of tiles does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mapper.compiled import kernel
from mapper.search.factors import Options, group_factors
from mapper.search.fill import HELD, KIND, LEVEL, LIFTED, OPERAND, Group
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import StageOrder
from mapper.search.tilings import Chains, Tilings

#: Tilings of a dimension that are looked at; of more, evenly spaced ones.
_MOST_ROWS = 1 << 14
#: Combinations of tiles of dimensions that share an axis; of more, fewer tilings are looked at.
_MOST_COMBINATIONS = 1 << 16


class Counts(NamedTuple):
    """Rows are tilings, those of dimension ``d`` from ``first[d]`` on.

    ``factors[row, place]`` is what one contributes to a volume, ``places[order, column, dim]``
    depends on how often the dimension is split there. ``joint[number, which]`` are counts on
    shared axes: for group ``g`` the number is the sum of ``joint_first[g]`` and, of each of its
    ``members`` (padded with -1), ``strides[g, i]`` times ``cuts[row, depths[order, column, dim]]``;
    ``whiches[column, g]`` is negative if a column counts nothing there. ``logs`` are logarithms of
    so many ``tiles`` and of spatial factors.
    """

    first: IntArray
    factors: FloatArray
    places: IntArray
    depths: IntArray
    joint: FloatArray
    joint_first: IntArray
    members: IntArray
    strides: IntArray
    cuts: IntArray
    whiches: IntArray
    logs: FloatArray
    tiles: int


@kernel
def count_alone(counts: Counts, order: int, d: int, row: int, factors: FloatArray) -> None:
    """What a tiling of a dimension contributes to each volume, shared axes aside."""
    for c in range(len(factors)):
        factors[c] = counts.factors[row, counts.places[order, c, d]]


@kernel
def count_joint(
    counts: Counts, order: int, group: int, rows: IntArray, factors: FloatArray
) -> None:
    """What the dimensions of a group contribute on shared axes."""
    for c in range(len(factors)):
        factors[c] = 1.0
        if counts.whiches[c, group] >= 0:
            at = counts.joint_first[group]
            for i in range(counts.members.shape[1]):
                d = counts.members[group, i]
                if d >= 0:
                    cut = counts.cuts[rows[d], counts.depths[order, c, d]]
                    at += counts.strides[group, i] * cut
            factors[c] = counts.joint[at, counts.whiches[c, group]]


@dataclass(frozen=True, eq=False)
class Counted:
    """The tables, and which tilings their rows are."""

    counts: Counts
    tilings: tuple[IntArray, ...]


def counted(orders: Sequence[StageOrder], columns: IntArray) -> Counted:
    """Of orders with the same tilings; ``columns`` say what is counted, stages by their numbers
    in ``StageOrder.listed``."""
    return _Counting(orders, columns).counted()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Joint:
    """Counts of one group: its table, dimensions, and which column of it volumes have."""

    table: FloatArray
    members: list[int]
    strides: list[int]
    which: list[int]


class _Counting:
    def __init__(self, orders: Sequence[StageOrder], columns: IntArray) -> None:
        self.orders = orders
        self.columns = columns
        order = orders[0]
        self.dims = tuple(order.run.operator.extents)
        self.chains = [order.tilings(dim).chains for dim in self.dims]
        self.depth = max(one.sizes.shape[1] for one in self.chains)
        alike = columns.copy()
        alike[:, [LEVEL, LIFTED]] = 0
        self.kinds, bases = np.unique(alike, axis=0, return_inverse=True)
        self.bases = bases.ravel().astype(np.int64)
        self.groups = [g for g in order.run.counts.groups if len(self._shape(g).axis_operand)]
        self.tilings = [_spaced(len(one.sizes), _MOST_ROWS) for one in self.chains]
        for group in self.groups:
            self._thin(group)

    def _shape(self, group: tuple[str, ...]) -> Group:
        return self.orders[0].shape(group, frozenset(group))

    def _thin(self, group: tuple[str, ...]) -> None:
        """Fewer tilings, until their combinations are few enough."""
        at = [self.dims.index(dim) for dim in group]
        while np.prod([len(self._cuts(d)[0]) for d in at]) > _MOST_COMBINATIONS:
            longest = max(at, key=lambda d: len(self.tilings[d]))
            self.tilings[longest] = self.tilings[longest][::2]

    def _sizes(self, d: int) -> IntArray:
        """``[row, depth]``: after more splits than there are a tile is as after the last one."""
        sizes = self.chains[d].sizes[self.tilings[d]]
        last = np.repeat(sizes[:, -1:], self.depth - sizes.shape[1], axis=1)
        return np.concatenate([sizes, last], axis=1)

    def _cuts(self, d: int) -> tuple[IntArray, IntArray, IntArray]:
        """Distinct tiles and spatial factors, and ``[row, depth]`` which of them."""
        sizes, spatial = self._sizes(d), self.chains[d].spatial[self.tilings[d]]
        axes = [axis.size + 1 for axis in self.orders[0].run.intrinsic.axes]
        code = np.zeros(len(spatial), dtype=np.int64)
        for axis, size in enumerate(axes):
            code = code * size + spatial[:, axis]
        keys = (sizes * int(np.prod(axes)) + code[:, None]).ravel()
        _, where, which = np.unique(keys, return_index=True, return_inverse=True)
        row = where // self.depth
        return sizes.ravel()[where], spatial[row], which.reshape(sizes.shape)

    def counted(self) -> Counted:
        first = np.cumsum([0, *map(len, self.tilings)], dtype=np.int64)
        joints = list(self._joints())
        ends = np.cumsum([0, *(len(one.table) for one in joints)], dtype=np.int64)
        widest = max((one.table.shape[1] for one in joints), default=1)
        joint = np.ones((ends[-1], widest))
        longest = max((len(one.members) for one in joints), default=1)
        members = np.full((len(joints), longest), -1, dtype=np.int64)
        strides = np.zeros((len(joints), longest), dtype=np.int64)
        whiches = np.full((len(self.columns), len(joints)), -1, dtype=np.int64)
        cuts = np.zeros((first[-1], self.depth), dtype=np.int64)
        for g, one in enumerate(joints):
            joint[ends[g] : ends[g + 1], : one.table.shape[1]] = one.table
            members[g, : len(one.members)] = one.members
            strides[g, : len(one.members)] = one.strides
            whiches[:, g] = one.which
            for d in one.members:
                cuts[first[d] : first[d + 1]] = self._cuts(d)[2]
        depths = self._depths()
        counts = Counts(
            first=first,
            factors=np.concatenate([self._factors(d) for d in range(len(self.dims))]),
            places=depths * len(self.kinds) + self.bases[:, None],
            depths=depths,
            joint=joint,
            joint_first=ends[:-1],
            members=members,
            strides=strides,
            cuts=cuts,
            whiches=whiches,
            logs=self._logs(),
            tiles=self.depth,
        )
        return Counted(counts, tuple(self.tilings))

    def _depths(self) -> IntArray:
        found = np.empty((len(self.orders), len(self.columns), len(self.dims)), dtype=np.int64)
        for n, order in enumerate(self.orders):
            for d, dim in enumerate(self.dims):
                depths = np.array([*order.listed_tilings(dim).depth, self.depth - 1])
                found[n, :, d] = depths[self.columns[:, LEVEL]]
        return found

    def _factors(self, d: int) -> FloatArray:
        """What a dimension contributes, shared axes aside."""
        dim = self.dims[d]
        group = next(g for g in self.orders[0].run.counts.groups if dim in g)
        shape, at = self._shape(group), group.index(dim)
        alone = shape._replace(
            extents=shape.extents[[at]],
            indexes=shape.indexes[:, [at]],
            reduction=shape.reduction[[at]],
            picked=shape.picked[[at]],
            separate=shape.separate[:, [at]],
            records=shape.records[:0],
            on_axis=shape.on_axis[:0],
            axis_operand=shape.axis_operand[:0],
        )
        columns = np.repeat(self.kinds[None], self.depth, axis=0)
        columns[:, :, LEVEL] = np.arange(self.depth)[:, None]
        chains = Chains(
            self.chains[d].extent, self.chains[d].spatial[self.tilings[d]], self._sizes(d)
        )
        every = Tilings(chains, tuple(range(self.depth)))
        rows = np.arange(len(self.tilings[d]))
        return group_factors(alone, columns.reshape(-1, columns.shape[-1]), [(every, rows)])

    def _joints(self) -> Iterator[_Joint]:
        for group in self.groups:
            shape = self._shape(group)
            at = [self.dims.index(dim) for dim in group]
            cuts = [self._cuts(d) for d in at]
            lengths = [len(tiles) for tiles, *_ in cuts]
            grids = np.indices(lengths).reshape(len(group), -1)
            options: list[Options | None] = [
                (Tilings(Chains(self.chains[d].extent, spatial, tiles[:, None]), (0,)), grid)
                for d, (tiles, spatial, _), grid in zip(at, cuts, grids, strict=True)
            ]
            some = [
                b
                for b, kind in enumerate(self.kinds)
                if kind[KIND] <= HELD and kind[OPERAND] in shape.axis_operand
            ]
            shared = shape._replace(separate=np.zeros_like(shape.separate))
            yield _Joint(
                table=group_factors(shared, self.kinds[some], options),
                members=at,
                strides=[math.prod(lengths[i + 1 :]) for i in range(len(at))],
                which=[some.index(b) if b in some else -1 for b in self.bases.tolist()],
            )

    def _logs(self) -> FloatArray:
        parts = [
            np.concatenate([self._sizes(d), self.chains[d].spatial[rows]], axis=1)
            for d, rows in enumerate(self.tilings)
        ]
        logs: FloatArray = np.log2(np.concatenate(parts))
        return logs


def _spaced(count: int, most: int) -> IntArray:
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))

"""Factors that the tilings of one group of dimensions contribute to each volume."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mapper.footprint import Axis, axis_record
from mapper.hierarchy import Execution
from mapper.search.tilings import IntArray, Tilings
from mapper.sliding import axis_moved, distinct_clear

#: (axis record, extents, distinct rows of tiles and instances) -> count per row
AxisCount = Callable[[IntArray, IntArray, IntArray], IntArray]


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


class Rows:
    """Factors of all rows of one group, column by column."""

    def __init__(
        self,
        run: Execution,
        group: tuple[str, ...],
        contended: tuple[str, ...],
        picked: dict[str, tuple[Tilings, IntArray]],
    ) -> None:
        """``picked[dim]`` are the tilings of a dimension and which of them each row has.

        A dimension of the group that is not picked counts as little as any of its tilings
        would, so that the factors are lower bounds.
        """
        self._run = run
        self._group = group
        self._contended = contended
        self._extents = [run.operator.extents[dim] for dim in group]
        self._rows = len(next(iter(picked.values()))[1])
        self._picked = [picked.get(dim) for dim in group]

    def factor(self, column: Column) -> IntArray:
        factor = _FACTORS[column.kind](self, column)
        if column.lifted:
            return factor * self.used(Column("used", over=self._contended))
        return factor

    def _tiles(self, stage: int, otherwise: list[int]) -> list[IntArray]:
        """The tile of each dimension at a stage; ``otherwise`` where none is picked."""
        return [
            np.full(self._rows, default) if pick is None else pick[0].at(stage)[pick[1]]
            for pick, default in zip(self._picked, otherwise, strict=True)
        ]

    def _parallel(self, over: tuple[str, ...]) -> list[IntArray]:
        axes = [i for i, axis in enumerate(self._run.intrinsic.axes) if axis.name in over]
        return [
            np.ones(self._rows, dtype=np.int64)
            if pick is None
            else np.prod(pick[0].spatial[:, axes], axis=1, dtype=np.int64)[pick[1]]
            for pick in self._picked
        ]

    def _is_counted(self, axis: Axis) -> bool:
        """With dimensions missing, the axis counts once: with the longest of its dimensions."""
        longest = max(axis.dims, key=lambda dim: self._run.operator.extents[dim])
        return self._picked[self._group.index(longest)] is not None

    def moved(self, column: Column) -> IntArray:
        operand = self._run.counts.operands[column.operand]
        axes = operand.coupled_axes(self._group)
        tiles, parallel = self._tiles(column.stage, self._extents), self._parallel(column.over)
        count = np.ones(self._rows, dtype=np.int64)
        for i in self._separate(axes):
            extent = self._extents[i]
            if self._group[i] in operand.dims:
                count *= extent
            else:
                full, rest = np.divmod(extent, tiles[i])
                count *= full * np.minimum(parallel[i], tiles[i]) + np.minimum(parallel[i], rest)
        for axis in filter(self._is_counted, axes):
            count *= self._on_axis(axis, tiles, parallel, _axis_moved)
        return count

    def held(self, column: Column) -> IntArray:
        operand = self._run.counts.operands[column.operand]
        axes = operand.coupled_axes(self._group)
        tiles = self._tiles(column.stage, [1] * len(self._group))
        parallel = self._parallel(column.over)
        count = np.ones(self._rows, dtype=np.int64)
        for i in self._separate(axes):
            if self._group[i] in operand.dims:
                count *= -(-tiles[i] // parallel[i])
        for axis in filter(self._is_counted, axes):
            count *= self._on_axis(axis, tiles, parallel, _axis_held)
        return count

    def _separate(self, axes: tuple[Axis, ...]) -> list[int]:
        """Positions of the picked dimensions that run along none of the axes."""
        together = {dim for axis in axes for dim in axis.dims}
        return [
            i
            for i, dim in enumerate(self._group)
            if dim not in together and self._picked[i] is not None
        ]

    def _on_axis(
        self, axis: Axis, tiles: list[IntArray], parallel: list[IntArray], count: AxisCount
    ) -> IntArray:
        """Counts on a shared axis, computed once per distinct combination of tiles."""
        at = [self._group.index(dim) for dim in axis.dims]
        shares = [tiles[i] for i in at] + [parallel[i] for i in at]
        key = np.zeros(self._rows, dtype=np.int64)
        for values in shares:
            _, position = np.unique(values, return_inverse=True)
            key = key * (position.max() + 1) + position
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        distinct = np.stack([values[first] for values in shares], axis=1)
        extents = np.array([self._run.operator.extents[d] for d in axis.dims], dtype=np.int64)
        answers: IntArray = count(axis_record(axis), extents, distinct)
        return answers[inverse]

    def visits(self, column: Column) -> IntArray:
        return self._chunks(column, frozenset(self._group))

    def revisits(self, column: Column) -> IntArray:
        return self._chunks(column, self._run.operator.reduction_dims())

    def fresh(self, column: Column) -> IntArray:
        return self._chunks(column, self._run.operator.output.dims)

    def _chunks(self, column: Column, dims: frozenset[str]) -> IntArray:
        count = np.ones(self._rows, dtype=np.int64)
        tiles = self._tiles(column.stage, self._extents)
        for dim, extent, tile in zip(self._group, self._extents, tiles, strict=True):
            if dim in dims:
                count *= -(-extent // tile)
        return count

    def used(self, column: Column) -> IntArray:
        factors = self._parallel(column.over)
        product: IntArray = np.prod(np.stack(factors), axis=0, dtype=np.int64)
        return product


_FACTORS = {
    "moved": Rows.moved,
    "held": Rows.held,
    "visits": Rows.visits,
    "revisits": Rows.revisits,
    "fresh": Rows.fresh,
    "steps": Rows.visits,
    "used": Rows.used,
}


def _axis_moved(record: IntArray, extents: IntArray, distinct: IntArray) -> IntArray:
    tiles, parallel = np.hsplit(distinct, 2)
    moved: IntArray = axis_moved(
        record,
        np.zeros_like(extents),
        extents,
        np.ascontiguousarray(tiles),
        np.ascontiguousarray(parallel),
    )
    return moved


def _axis_held(record: IntArray, extents: IntArray, distinct: IntArray) -> IntArray:
    tiles, parallel = np.hsplit(distinct, 2)
    shares = -(-tiles // parallel)
    return np.array([distinct_clear(record, share) for share in shares], dtype=np.int64)

"""The mapspace of one operator, as tables of factors that multiply to volumes.

For a given order of stages every volume that the cost depends on (traffic of a stage, room
that a tile needs, steps of the compute unit) is a product over independent groups of
dimensions. A group's row in a table holds its factor of each volume for one choice of tiles
and spatial factors; one row per group is a mapping. The order of stages respects the memory
hierarchy: shared memories from the outermost inwards, then the replicated ones in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from arch.spec import Memory
from mapper.footprint import Axis, axis_record
from mapper.hierarchy import Execution
from mapper.mapping import Loop, Mapping, Spatial, Stage
from mapper.search.tilings import Room, Tilings, tilings
from mapper.sliding import axis_moved, distinct_clear

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Column:
    """One volume: what is counted, of which operand, at which stage.

    ``kind`` is ``moved`` (elements moved, one copy per instance along ``over``), ``held``
    (elements that an instance keeps), ``visits`` (tiles that pass through), ``revisits``
    (visits of the same output), ``steps`` or ``used`` (of the axis in ``over``). ``stage``
    is a position in the order of stages; -1 is one step of the compute unit. A ``lifted``
    column is multiplied by the contended axes used.
    """

    kind: str
    operand: int = -1
    stage: int = -1
    over: tuple[str, ...] = ()
    lifted: bool = False


@dataclass(frozen=True, eq=False)
class StageOrder:
    """One order of stages and the tables of its mappings."""

    run: Execution
    stages: tuple[tuple[int, Memory], ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(dict.fromkeys(self._columns()))

    def _columns(self) -> Iterator[Column]:
        output = self.run.output
        for stage, (operand, memory) in enumerate(self.stages):
            yield self.at_parent(stage)
            yield self.at_child(stage)
            yield Column("held", operand, stage, memory.replicated_over)
            yield Column("visits", stage=stage)
            if operand == output:
                yield self.revisits_below(stage)
        for operand in range(len(self.run.paths)):
            yield self.at_datapath(operand)
            yield self.lifted(self.at_datapath(operand))
        yield Column("revisits", stage=-1)
        yield Column("steps")
        yield self.lifted(Column("steps"))
        for axis in self.contended:
            yield Column("used", over=(axis,))

    @cached_property
    def contended(self) -> tuple[str, ...]:
        """Axes that more than one dimension may be unrolled over."""
        operator = self.run.operator
        wanting = {
            axis.name: sum(
                extent > 1 and operator.dim_class(dim) in axis.dim_classes
                for dim, extent in operator.extents.items()
            )
            for axis in self.run.intrinsic.axes
        }
        return tuple(name for name, dims in wanting.items() if dims > 1)

    def parent(self, stage: int) -> Memory:
        operand, memory = self.stages[stage]
        path = self.run.paths[operand]
        return path[path.index(memory) - 1]

    def at_parent(self, stage: int) -> Column:
        over = self.parent(stage).replicated_over
        return Column("moved", self.stages[stage][0], stage, over)

    def at_child(self, stage: int) -> Column:
        operand, memory = self.stages[stage]
        return Column("moved", operand, stage, memory.replicated_over)

    def lifted(self, column: Column) -> Column:
        """``column`` times the contended axes used (see ``kernel.Model``)."""
        return replace(column, lifted=bool(self.contended))

    def at_datapath(self, operand: int) -> Column:
        return Column("moved", operand, -1, self.run.paths[operand][-1].replicated_over)

    def revisits_below(self, stage: int) -> Column:
        """Visits of the same output at the next stage inwards of the output."""
        output = self.run.output
        inner = [i for i in range(stage + 1, len(self.stages)) if self.stages[i][0] == output]
        return Column("revisits", stage=inner[0] if inner else -1)

    def group_tilings(self, dim: str) -> Tilings:
        """All tilings of one dimension under this order of stages."""
        dim_class = self.run.operator.dim_class(dim)
        rooms = tuple(
            Room(axis.size if dim_class in axis.dim_classes else 1, axis.name in self.contended)
            for axis in self.run.intrinsic.axes
        )
        splits = tuple(dim in self.run.counts.operands[op].dims for op, _ in self.stages)
        return tilings(self.run.operator.extents[dim], rooms, splits)

    def group_table(self, group: tuple[str, ...]) -> tuple[IntArray, IntArray]:
        """``(factors[row, column], choice[row, dim])``: every combination of the dims' tilings.

        ``choice`` numbers the tiling of each dimension of the group.
        """
        options = [self.group_tilings(dim) for dim in group]
        counts = [np.arange(len(option)) for option in options]
        choice = np.stack([g.ravel() for g in np.meshgrid(*counts, indexing="ij")], axis=1)
        rows = _GroupRows(self.run, group, options, choice, self.contended)
        factors = np.stack([rows.factor(column) for column in self.columns], axis=1)
        return factors, choice

    def mapping(self, chosen: dict[str, int], made_by: str) -> Mapping:
        """The mapping with the chosen tiling (its number) of each dimension."""
        extents = self.run.operator.extents
        options = {dim: self.group_tilings(dim) for dim in extents}
        tiles = {dim: options[dim].tiles[chosen[dim]] for dim in extents}
        factors = {dim: options[dim].spatial[chosen[dim]] for dim in extents}
        nest: list[Loop | Stage] = []
        current = dict(extents)
        for stage, (operand, memory) in enumerate(self.stages):
            nest += _loops(current, {dim: int(tiles[dim][stage]) for dim in extents})
            nest.append(Stage(operand, memory.name))
        nest += _loops(current, {dim: int(np.prod(factors[dim])) for dim in extents})
        return Mapping(
            operator=self.run.operator.name,
            compute=self.run.compute.name,
            intrinsic=self.run.intrinsic.name,
            nest=tuple(nest),
            spatial=tuple(
                Spatial(dim, axis.name, int(factors[dim][i]))
                for i, axis in enumerate(self.run.intrinsic.axes)
                for dim in extents
                if factors[dim][i] > 1
            ),
            made_by=made_by,
        )


def _loops(current: dict[str, int], tiles: dict[str, int]) -> list[Loop]:
    """The loops that cut ``current`` down to ``tiles`` (and ``current`` is updated)."""
    loops = [Loop(dim, tile) for dim, tile in tiles.items() if tile < current[dim]]
    current.update({loop.dim: loop.tile for loop in loops})
    return loops


def stage_orders(run: Execution) -> Iterator[StageOrder]:
    """Every order of stages that respects the hierarchy."""
    shared: dict[str, list[tuple[int, Memory]]] = {}
    private: list[tuple[int, Memory]] = []
    for operand, path in enumerate(run.paths):
        for memory in path[1:]:
            if memory.replicated_over:
                private.append((operand, memory))
            else:
                shared.setdefault(memory.name, []).append((operand, memory))
    levels = [shared[m.name] for m in run.memories if m.name in shared]
    orders = [list(itertools.permutations(level)) for level in levels]
    orders.append([o for o in itertools.permutations(private) if _outer_first(run, o)])
    for choice in itertools.product(*orders):
        yield StageOrder(run, tuple(itertools.chain.from_iterable(choice)))


def _outer_first(run: Execution, order: tuple[tuple[int, Memory], ...]) -> bool:
    for operand, path in enumerate(run.paths):
        placed = [path.index(memory) for op, memory in order if op == operand]
        if placed != sorted(placed):
            return False
    return True


class _GroupRows:
    """Factors of all rows of one group, column by column."""

    def __init__(
        self,
        run: Execution,
        group: tuple[str, ...],
        options: list[Tilings],
        choice: IntArray,
        contended: tuple[str, ...],
    ) -> None:
        self._contended = contended
        self._run = run
        self._group = group
        self._spatial = [option.spatial[choice[:, i]] for i, option in enumerate(options)]
        self._tiles = [option.tiles[choice[:, i]] for i, option in enumerate(options)]
        self._units = [option.units()[choice[:, i]] for i, option in enumerate(options)]
        self._rows = len(choice)

    def factor(self, column: Column) -> IntArray:
        factor = _FACTORS[column.kind](self, column)
        if column.lifted:
            return factor * self.used(Column("used", over=self._contended))
        return factor

    def _at(self, stage: int) -> list[IntArray]:
        if stage < 0:
            return [
                np.minimum(unit, self._run.operator.extents[dim])
                for dim, unit in zip(self._group, self._units, strict=True)
            ]
        return [tiles[:, stage] for tiles in self._tiles]

    def _parallel(self, over: tuple[str, ...]) -> list[IntArray]:
        axes = [i for i, axis in enumerate(self._run.intrinsic.axes) if axis.name in over]
        return [np.prod(s[:, axes], axis=1, dtype=np.int64) for s in self._spatial]

    def moved(self, column: Column) -> IntArray:
        operand = self._run.counts.operands[column.operand]
        axis = operand.coupled_axis(self._group)
        tiles, parallel = self._at(column.stage), self._parallel(column.over)
        count = np.ones(self._rows, dtype=np.int64)
        for i, dim in enumerate(self._group):
            if axis and dim in axis.dims:
                continue
            extent = self._run.operator.extents[dim]
            if dim in operand.dims:
                count *= extent
            else:
                full, rest = np.divmod(extent, tiles[i])
                count *= full * np.minimum(parallel[i], tiles[i]) + np.minimum(parallel[i], rest)
        if axis:
            count *= self._on_axis(axis, tiles, parallel, _axis_moved)
        return count

    def held(self, column: Column) -> IntArray:
        operand = self._run.counts.operands[column.operand]
        axis = operand.coupled_axis(self._group)
        tiles, parallel = self._at(column.stage), self._parallel(column.over)
        count = np.ones(self._rows, dtype=np.int64)
        for i, dim in enumerate(self._group):
            if dim in operand.dims and not (axis and dim in axis.dims):
                count *= -(-tiles[i] // parallel[i])
        if axis:
            count *= self._on_axis(axis, tiles, parallel, _axis_held)
        return count

    def _on_axis(
        self, axis: Axis, tiles: list[IntArray], parallel: list[IntArray], count
    ) -> IntArray:  # type: ignore[no-untyped-def]
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
        count = np.ones(self._rows, dtype=np.int64)
        for dim, tile in zip(self._group, self._at(column.stage), strict=True):
            count *= -(-self._run.operator.extents[dim] // tile)
        return count

    def revisits(self, column: Column) -> IntArray:
        count = np.ones(self._rows, dtype=np.int64)
        reduction = self._run.operator.reduction_dims()
        for dim, tile in zip(self._group, self._at(column.stage), strict=True):
            if dim in reduction:
                count *= -(-self._run.operator.extents[dim] // tile)
        return count

    def used(self, column: Column) -> IntArray:
        factors = self._parallel(column.over)
        product: IntArray = np.prod(np.stack(factors), axis=0, dtype=np.int64)
        return product


_FACTORS = {
    "moved": _GroupRows.moved,
    "held": _GroupRows.held,
    "visits": _GroupRows.visits,
    "revisits": _GroupRows.revisits,
    "steps": _GroupRows.visits,
    "used": _GroupRows.used,
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

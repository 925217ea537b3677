"""The mapspace of one operator, as tables of factors that multiply to volumes.

For a given order of stages every volume that the cost depends on (traffic of a stage, room
that a tile needs, steps of the compute unit) is a product over independent groups of
dimensions. A group's row in a table holds its factor of each volume for one choice of tiles
and spatial factors; one row per group is a mapping. Stages stand in any order in which each
operand comes from the outermost memory inwards: sums may stay in an accumulator while others
stream through a buffer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from arch.spec import Axis, Memory
from mapper.hierarchy import Execution
from mapper.mapping import Loop, Mapping, Spatial, Stage
from mapper.search.constraints import FREE, Constraint
from mapper.search.factors import (
    Column,
    block_factors,
    column_table,
    group_factors,
    group_shape,
)
from mapper.search.fill import Group
from mapper.search.pricing import FloatArray
from mapper.search.tilings import IntArray, Room, Tilings, tilings

Stages = tuple[tuple[int, Memory], ...]


@dataclass(slots=True)
class Common:
    """What orders of stages of the same operator on the same unit have in common, made when first
    needed: groups of which some dimensions are picked; of each dimension its class, the operands
    that it indexes, how far it may be unrolled; contended axes."""

    shapes: dict[tuple[tuple[str, ...], frozenset[str]], Group] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    dependent: dict[str, frozenset[int]] = field(default_factory=dict)
    rooms: dict[str, tuple[Room, ...]] = field(default_factory=dict)
    contended: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class StageOrder:
    """One order of stages and the tables of its mappings."""

    run: Execution
    stages: Stages
    common: Common = field(default_factory=Common)
    constraint: Constraint = FREE
    _tilings: dict[str, Tilings] = field(default_factory=dict, init=False)
    _listed_tilings: dict[str, Tilings] = field(default_factory=dict, init=False)

    @cached_property
    def listed(self) -> tuple[int, ...]:
        """The positions of the stages operand by operand, from the outermost.

        Columns follow this order, so that they mean the same in all orders of the same stages.
        """
        paths = self.run.paths
        places = ((operand, paths[operand].index(memory)) for operand, memory in self.stages)
        return tuple(at for _, at in sorted((place, at) for at, place in enumerate(places)))

    @cached_property
    def held(self) -> frozenset[int]:
        """The stages (by number in ``listed``) whose tiles arrive one at a time, each waited for.

        These are the ones down to the last one in a shared memory; below it, tiles move while the
        unit computes, as part of what it does.
        """
        last = self.last_shared
        return frozenset(number for number, at in enumerate(self.listed) if at <= last)

    @cached_property
    def is_by_level(self) -> bool:
        """Are shared memories filled before others, and outer ones before inner ones?"""
        return _out_of_level(self.run, self.stages) == 0

    @cached_property
    def last_shared(self) -> int:
        """The position of the last stage in a shared memory; -1 if there is none."""
        shared = [at for at, (_, memory) in enumerate(self.stages) if not memory.replicated_over]
        return max(shared, default=-1)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(dict.fromkeys(self._columns()))

    def _columns(self) -> Iterator[Column]:
        output = self.run.output
        for stage in self.listed:
            operand, memory = self.stages[stage]
            yield self.at_parent(stage)
            yield self.at_child(stage)
            yield Column("held", operand, stage, memory.replicated_over)
            yield Column("visits", stage=stage)
            if operand == output:
                yield self.revisits_below(stage)
                yield self.fresh(stage)
                yield Column("revisits", stage=stage)
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
        if self.common.contended is None:
            wanting = {
                axis.name: sum(
                    extent > 1 and self._dim_class(dim) in axis.dim_classes
                    for dim, extent in self.run.operator.extents.items()
                )
                for axis in self.run.intrinsic.axes
            }
            self.common.contended = tuple(name for name, dims in wanting.items() if dims > 1)
        return self.common.contended

    def _dim_class(self, dim: str) -> str:
        known = self.common.classes
        if dim not in known:
            known[dim] = self.run.operator.dim_class(dim)
        return known[dim]

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

    def fresh(self, stage: int) -> Column:
        """First visits of output tiles."""
        return Column("fresh", stage=stage)

    def lifted(self, column: Column) -> Column:
        """``column`` times the contended axes used (see ``pricing.Model``)."""
        return column._replace(lifted=bool(self.contended))

    def at_datapath(self, operand: int) -> Column:
        return Column("moved", operand, -1, self.run.paths[operand][-1].replicated_over)

    def revisits_below(self, stage: int) -> Column:
        """Visits of the same output at the next stage inwards of the output."""
        output = self.run.output
        inner = [i for i in range(stage + 1, len(self.stages)) if self.stages[i][0] == output]
        return Column("revisits", stage=inner[0] if inner else -1)

    def tilings(self, dim: str) -> Tilings:
        """All tilings of one dimension under this order of stages."""
        if dim not in self._tilings:
            self._tilings[dim] = self._make_tilings(dim)
        return self._tilings[dim]

    def listed_tilings(self, dim: str) -> Tilings:
        """The same in the same order, with the stages as ``listed``: many orders of stages share
        them."""
        if dim not in self._listed_tilings:
            self._listed_tilings[dim] = self.tilings(dim).listed(self.listed)
        return self._listed_tilings[dim]

    def _make_tilings(self, dim: str) -> Tilings:
        dependent = self._dependent(dim)
        is_whole = dim in self.run.operator.whole_dims
        # What stays whole in shared memories is cut below the last of them.
        splits = tuple(
            operand in dependent and not (is_whole and at <= self.last_shared)
            for at, (operand, _) in enumerate(self.stages)
        )
        steps = tuple(memory.is_latch and operand in dependent for operand, memory in self.stages)
        every = tilings(self.run.operator.extents[dim], self._rooms(dim), splits, steps)
        if self.constraint is FREE:
            return every
        return self.constraint.among(dim, self.run, self.stages, every)

    def _dependent(self, dim: str) -> frozenset[int]:
        """The operands that the dimension indexes."""
        known, operands = self.common.dependent, self.run.counts.operands
        if dim not in known:
            known[dim] = frozenset(i for i, operand in enumerate(operands) if dim in operand.dims)
        return known[dim]

    def _rooms(self, dim: str) -> tuple[Room, ...]:
        known = self.common.rooms
        if dim not in known or self.constraint is not FREE:
            known[dim] = tuple(
                Room(axis.size if self._takes(axis, dim) else 1, axis.name in self.contended)
                for axis in self.run.intrinsic.axes
            )
        return known[dim]

    def _takes(self, axis: Axis, dim: str) -> bool:
        may = self.constraint.may_unroll(dim, axis.name)
        return may and self._dim_class(dim) in axis.dim_classes

    def factors(self, group: tuple[str, ...], picked: dict[str, IntArray]) -> FloatArray:
        """``[row, column]``: the group's factor of each volume.

        ``picked[dim][row]`` numbers the tiling of a dimension; where dimensions of the group
        are missing, the factors are lower bounds.
        """
        return self.factors_of(column_table(self.run, self.columns), group, picked)

    def factors_of(
        self, columns: IntArray, group: tuple[str, ...], picked: dict[str, IntArray]
    ) -> FloatArray:
        """As ``factors``, of these columns alone."""
        options = [(self.tilings(d), picked[d]) if d in picked else None for d in group]
        return group_factors(self.shape(group, frozenset(picked)), columns, options)

    def blocks_of(self, columns: IntArray, group: tuple[str, ...], dim: str) -> FloatArray | None:
        """What each block of the dimension's tilings contributes at least; ``None`` if it is on
        an axis that others share, where there are no such bounds."""
        shape = self.shape(group, frozenset((dim,)))
        if len(group) > 1 or len(shape.axis_operand):
            return None
        return block_factors(shape, columns, self.tilings(dim).blocks)

    def shape(self, group: tuple[str, ...], picked: frozenset[str]) -> Group:
        """The group with some of its dimensions picked; the same for every order of stages."""
        key, known = (group, picked), self.common.shapes
        if key not in known:
            known[key] = group_shape(self.run, group, self.contended, picked)
        return known[key]

    def mapping(self, chosen: dict[str, int], made_by: str) -> Mapping:
        """The mapping with the chosen tiling (its number) of each dimension."""
        extents = self.run.operator.extents
        options = {dim: self.tilings(dim) for dim in extents}
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
    """Every order of stages, past any memories that allow it; of each choice of memories first
    those that fill shared memories before others, and outer ones before inner ones."""
    common = Common()
    for chosen in _bypasses(run):
        for stages in _stages_in_order(chosen):
            yield StageOrder(chosen, stages, common)


def distinct_orders(run: Execution) -> Iterator[StageOrder]:
    """``stage_orders`` without those whose every mapping another order has, at most as costly."""
    return (order for order in stage_orders(run) if not _is_dominated(order.run, order.stages))


def constrained_orders(run: Execution, constraint: Constraint) -> Iterator[StageOrder]:
    """``stage_orders`` with only the mappings that are as asked for."""
    for order in stage_orders(run):
        if constraint.allows(order.stages):
            yield replace(order, constraint=constraint)


def _is_dominated(run: Execution, stages: Stages) -> bool:
    """Is there a latch above a neighbour that might as well come first?

    Below a latch all dimensions of its operand are down to one step. If the next stage's operand
    depends on no other dimension that is not, nothing can loop between the two: its tiles
    change as often as the latch's. Placed first they change less often, or as often where
    both depend on the same, and of two latches then one order stands for both.
    """
    operands, extents = run.counts.operands, run.operator.extents
    left = {dim for dim, extent in extents.items() if extent > 1}
    for (one, memory), (other, below) in itertools.pairwise(stages):
        ours, theirs = operands[one].dims & left, operands[other].dims & left
        if memory.is_latch:
            may_swap = one != other and (bool(memory.replicated_over) or not below.replicated_over)
            alike = ours == theirs and below.is_latch
            if may_swap and theirs <= ours and (not alike or other < one):
                return True
            left -= ours
    return False


def _bypasses(run: Execution) -> Iterator[Execution]:
    """The execution with every choice of memories that operands are led past."""
    choices = [
        [
            [memory.name for memory in path if memory not in passed]
            for count in range(len(path))
            for passed in itertools.combinations(_passable(run, operand), count)
        ]
        for operand, path in enumerate(run.paths)
    ]
    for kept in itertools.product(*choices):
        yield run.bypassing(kept)


def _passable(run: Execution, operand: int) -> list[Memory]:
    role = run.operator.role(operand)
    return [memory for memory in run.paths[operand] if role in memory.may_bypass]


def _stages_in_order(run: Execution) -> list[Stages]:
    """Every way to merge the operands' own stages, each from its outermost inwards."""
    paths = [
        tuple((operand, memory) for memory in path[1:]) for operand, path in enumerate(run.paths)
    ]
    return sorted(_merged(paths), key=lambda stages: _out_of_level(run, stages))


def _out_of_level(run: Execution, stages: Stages) -> int:
    """Pairs of stages of which the upper one is in a memory further in, replicated ones being the
    innermost level together."""
    names = [memory.name for memory in run.memories]
    placed = [
        len(names) if memory.replicated_over else names.index(memory.name) for _, memory in stages
    ]
    return sum(upper > lower for upper, lower in itertools.combinations(placed, 2))


def _merged(paths: list[Stages]) -> Iterator[Stages]:
    if not any(paths):
        yield ()
    for number, path in enumerate(paths):
        if path:
            rest = [*paths[:number], path[1:], *paths[number + 1 :]]
            for stages in _merged(rest):
                yield (path[0], *stages)

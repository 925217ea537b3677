"""The best way to run a group of operators fused: tiles, what is resident, inner mappings.

Ways to cut a group are ranked by the traffic with the outermost memory that they imply; those
at the top get exact inner mappings (each operator's optimum for the room that the group leaves
it) and are priced by the analytical model of the whole group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace

from arch.datatypes import Bits
from arch.spec import Memory
from mapper.cost import InfeasibleError
from mapper.fusion import FusedMapping, Group, group_of, tile_dims, why_not
from mapper.fusion_lower import GroupPlan, plan_group
from mapper.fusion_regions import Step, elements, reading, steps
from mapper.mapping import Loop
from mapper.placement import Homes, Occupied
from mapper.search.units import Cost, Mapped
from mapper.workload.graph import Workload
from mapper.workload.same_work import same_work

#: Ways to cut a group that get inner mappings.
PRICED_WAYS = 2
#: Tiles of one group at most: programs stay small and searches short.
MOST_TILES = 256
#: Tensors that stay may fill this much of the group's memory; the rest is for tiles.
FILLED = 0.9
#: Dimensions that a group is tiled over: those that shrink most what it holds.
TILED_DIMS = 2


@dataclass(frozen=True, slots=True)
class FusedUnit:
    fused: FusedMapping
    cost: Cost


@dataclass(slots=True)
class Walked:
    """Tiles of a group with everything from outside resident, from which those of any residents
    follow; ``points`` are computed in all, ``streamed`` elements read if nothing is resident."""

    steps: tuple[Step, ...]
    points: int
    streamed: dict[str, int]


#: Operators, tiles, and whether what overlaps is kept.
WalkKey = tuple[tuple[str, ...], tuple[Loop, ...], bool]


#: Finds ways to run a group beside what others keep in memories.
_Ways = Callable[[Group, Homes, Occupied], tuple[FusedUnit, ...]]


@dataclass(slots=True)
class GroupSearch:
    """Finds the best way of each group once, whatever its tensors are called."""

    mapped: Mapped
    memory: Memory
    least_tiles: int = 1
    walks: dict[WalkKey, Walked] = field(default_factory=dict)
    known: dict[Hashable, tuple[Group, tuple[FusedUnit, ...]]] = field(default_factory=dict)

    def best(self, names: tuple[str, ...], homes: Homes, occupied: Occupied) -> FusedUnit | None:
        """``None`` if the operators cannot be a group or do not fit as one."""
        found = self._found(names, homes, occupied, self._searched)
        return found[0] if found else None

    def by_loops(self, names: tuple[str, ...]) -> tuple[FusedUnit, ...]:
        """For each set of loops that the group can be tiled over, the way of least traffic."""
        return self._found(names, {}, {}, self._by_loops)

    def _found(
        self, names: tuple[str, ...], homes: Homes, occupied: Occupied, search: _Ways
    ) -> tuple[FusedUnit, ...]:
        workload = self.mapped.setting.workload
        operators = tuple(workload.operator(name) for name in names)
        if why_not(workload, operators):
            return ()
        group = group_of(workload, names)
        key = search.__name__, self._key(group, homes, occupied)
        if key not in self.known:
            self.known[key] = group, search(group, homes, occupied)
        like, found = self.known[key]
        tensors = _tensors(like)
        return tuple(replace(one, fused=_renamed(one.fused, tensors, group)) for one in found)

    def walked(self, group: Group, tiles: tuple[Loop, ...], retained: bool) -> Walked:
        key = tuple(o.name for o in group.operators), tiles, retained
        if key not in self.walks:
            self.walks[key] = _walked(self.mapped.setting.workload, group, tiles, retained)
        return self.walks[key]

    def _key(self, group: Group, homes: Homes, occupied: Occupied) -> Hashable:
        numbers: dict[str, int] = {}
        workload = self.mapped.setting.workload
        work = tuple(
            (
                operator.kind,
                same_work(workload, operator),
                tuple(numbers.setdefault(a.tensor, len(numbers)) for a in operator.accesses),
            )
            for operator in group.operators
        )
        return (
            work,
            tuple((workload.tensor(t).kind, homes.get(t)) for t in numbers),
            tuple(sorted(occupied.items())),
        )

    def _searched(self, group: Group, homes: Homes, occupied: Occupied) -> tuple[FusedUnit, ...]:
        ways = self._ways(group, homes, occupied)
        priced = (found for way in ways if (found := self._priced(way, homes, occupied)))
        first = list(itertools.islice(priced, PRICED_WAYS))
        return (min(first, key=self._value),) if first else ()

    def _by_loops(self, group: Group, homes: Homes, occupied: Occupied) -> tuple[FusedUnit, ...]:
        found: dict[frozenset[str], FusedUnit] = {}
        for way in self._ways(group, homes, occupied):
            loops = frozenset(loop.dim for loop in way.fused.tiles)
            if loops not in found and (priced := self._priced(way, homes, occupied)):
                found[loops] = priced
        return tuple(found.values())

    def _value(self, found: FusedUnit) -> float:
        return found.cost.value(self.mapped.setting.objective)

    def _priced(self, way: _Way, homes: Homes, occupied: Occupied) -> FusedUnit | None:
        plan = way.plan
        try:
            mappings = tuple(
                self.mapped.mapping(plan.largest_piece(n), plan.homes, plan.occupied[n])
                for n in range(len(plan.group.operators))
            )
            fused = replace(way.fused, mappings=mappings)
            return FusedUnit(fused, self.mapped.price_of(fused, homes, occupied))
        except InfeasibleError:
            return None

    def _ways(self, group: Group, homes: Homes, occupied: Occupied) -> list[_Way]:
        """Ways that leave room for tiles, least traffic with the outermost memory first."""
        cut = _Cutter(self, group, homes, occupied)
        ways: dict[FusedMapping, _Way] = {}
        for tiles in cut.tilings():
            for resident in cut.residents(tiles):
                way = cut.way(tiles, resident, retained=True)
                if way is None and tiles:
                    way = cut.way(tiles, resident, retained=False)
                if way is not None and len(way.plan.steps) >= self.least_tiles:
                    ways[way.fused] = way
        return sorted(ways.values(), key=lambda way: way.rank)


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to cut a group. Its rank: outermost traffic, points computed, tiles."""

    fused: FusedMapping
    plan: GroupPlan
    rank: tuple[float, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Cutter:
    """Generates ways to cut one group."""

    search: GroupSearch
    group: Group
    homes: Homes
    occupied: Occupied
    plans: dict[FusedMapping, GroupPlan | None] = field(default_factory=dict)

    def tilings(self) -> Iterator[tuple[Loop, ...]]:
        """No tiles, then ever more along one dimension, or along two if that is not enough."""
        yield ()
        dims = self._dims()
        one = [(loop,) for dim in dims for loop in self._loops(dim)]
        fitting = [tiles for tiles in one if self._fits(tiles)]
        yield from fitting
        if not fitting and len(dims) > 1:
            for outer in self._loops(dims[0]):
                for inner in self._loops(dims[1]):
                    if self._count((outer, inner)) <= MOST_TILES:
                        yield outer, inner

    def residents(self, tiles: tuple[Loop, ...]) -> Iterator[tuple[str, ...]]:
        """None of the tensors from outside, or as many as there is room for, small ones first."""
        yield ()
        outside = tuple(t for t in self.group.external if t not in self.homes)
        if not tiles:
            outside = tuple(t for t in outside if len(list(self.group.readers(t))) > 1)
        alone, together = self.way(tiles, (), retained=True), self._plan(tiles, outside, True)
        if alone is None or together is None or not outside:
            return
        filled = _filled(alone.plan)
        chosen: list[str] = []
        for tensor in sorted(outside, key=together.room_bits.__getitem__):
            filled += together.room_bits[tensor]
            if filled <= FILLED * 8 * self.search.memory.size_bytes:
                chosen.append(tensor)
        yield tuple(t for t in outside if t in chosen)

    def way(
        self, tiles: tuple[Loop, ...], resident: tuple[str, ...], *, retained: bool
    ) -> _Way | None:
        plan = self._plan(tiles, resident, retained)
        if plan is None or _filled(plan) > FILLED * 8 * self.search.memory.size_bytes:
            return None
        walked = self.search.walked(self.group, tiles, retained)
        outer_bits = float(_outermost_bits(plan, self.homes, walked))
        rank = outer_bits, walked.points, len(plan.steps)
        return _Way(self._fused(tiles, resident, retained), plan, rank)

    def _fused(
        self, tiles: tuple[Loop, ...], resident: tuple[str, ...], retained: bool
    ) -> FusedMapping:
        return FusedMapping(
            operators=tuple(o.name for o in self.group.operators),
            tiles=tiles,
            memory=self.search.memory.name,
            resident=resident,
            retained=retained,
            mappings=(),
        )

    def _plan(
        self, tiles: tuple[Loop, ...], resident: tuple[str, ...], retained: bool
    ) -> GroupPlan | None:
        fused = self._fused(tiles, resident, retained)
        if fused not in self.plans:
            self.plans[fused] = self._planned(fused)
        return self.plans[fused]

    def _planned(self, fused: FusedMapping) -> GroupPlan | None:
        setting = self.search.mapped.setting
        try:
            return plan_group(
                setting.workload,
                fused,
                setting.architecture,
                self.homes,
                self.occupied,
                self._steps(fused),
            )
        except InfeasibleError:
            return None

    def _steps(self, fused: FusedMapping) -> tuple[Step, ...]:
        return self.search.walked(self.group, fused.tiles, fused.retained).steps

    def _fits(self, tiles: tuple[Loop, ...]) -> bool:
        return any(self.way(tiles, (), retained=kept) is not None for kept in (True, False))

    def _dims(self) -> list[str]:
        """Dimensions that shrink most what the group holds when they are cut in four."""
        last = self.group.operators[-1]
        sizes = {}
        for dim in tile_dims(last):
            quarter = Loop(dim, -(-last.extents[dim] // 4))
            sizes[dim] = self._held((quarter,))
        whole = self._held(())
        useful = [dim for dim in sizes if sizes[dim] < whole]
        ranked = sorted(useful, key=lambda dim: (sizes[dim], self._summed_over(dim), dim))
        return ranked[:TILED_DIMS]

    def _summed_over(self, dim: str) -> int:
        """How many operators sum over what ``dim`` runs along in the result, so that they must
        wait for all of it (of rows they need only some)."""
        last = self.group.operators[-1]
        axes = [n for n, index in enumerate(last.output.index) if dim in index.dims]
        return sum(
            not set(access.index[axis].dims) & reader.output.dims
            for reader in self.search.mapped.setting.workload.operators
            for access in reader.inputs
            if access.tensor == self.group.result
            for axis in axes
        )

    def _held(self, tiles: tuple[Loop, ...]) -> float:
        """Bits that pass inside, at most at once, however large the memory may be."""
        setting = self.search.mapped.setting
        roomy = replace(self.search.memory, size_bytes=1 << 50)
        architecture = replace(
            setting.architecture,
            components=tuple(
                roomy if c.name == roomy.name else c for c in setting.architecture.components
            ),
        )
        kinds = {t: setting.workload.tensor(t).kind for t in self.group.external}
        inputs = tuple(t for t, kind in kinds.items() if kind != "weight" and t not in self.homes)
        # One operator passes nothing on: what counts is what a tile needs of its inputs.
        held = () if self.group.internal else inputs
        fused = self._fused(tiles, held, True)
        plan = plan_group(setting.workload, fused, architecture, self.homes, {}, self._steps(fused))
        return float(_filled(plan))

    def _loops(self, dim: str) -> Iterator[Loop]:
        extent = self.group.operators[-1].extents[dim]
        count, before = 2, extent
        while before > 1 and count <= MOST_TILES:
            tile = -(-extent // count)
            if tile < before:
                yield Loop(dim, tile)
            before, count = tile, 2 * count

    def _count(self, tiles: tuple[Loop, ...]) -> int:
        extents = self.group.operators[-1].extents
        return math.prod(-(-extents[loop.dim] // loop.tile) for loop in tiles)


def _filled(plan: GroupPlan) -> Bits:
    return max(occupied[plan.memory.name] for occupied in plan.occupied)


def _walked(workload: Workload, group: Group, tiles: tuple[Loop, ...], retained: bool) -> Walked:
    cut = tuple(steps(workload, group, tiles, group.external, retained))
    points = 0
    streamed = dict.fromkeys(group.external, 0)
    shapes = {tensor: workload.tensor(tensor).shape for tensor in group.external}
    for step in cut:
        for operator, box in zip(group.operators, step.pieces, strict=True):
            if box is None:
                continue
            points += math.prod(stop - start for start, stop in box.values())
            for access in operator.inputs:
                if access.tensor in streamed:
                    region = reading(access, box, shapes[access.tensor])
                    streamed[access.tensor] += elements(region)
    return Walked(steps=cut, points=points, streamed=streamed)


def _outermost_bits(plan: GroupPlan, homes: Homes, walked: Walked) -> Bits:
    """What must be moved between the outermost memory and the chip, at least."""
    total: Bits = 0
    for tensor in (*plan.once, *plan.sliding):
        fresh = [step.fresh[tensor] for step in plan.steps]
        bits = plan.workload.tensor(tensor).bits
        total += sum(elements(region) for region in fresh if region is not None) * bits
    for tensor in plan.group.external:
        if tensor not in plan.homes:
            total += walked.streamed[tensor] * plan.workload.tensor(tensor).bits
    if plan.group.result not in homes:
        result = plan.workload.tensor(plan.group.result)
        total += result.elements * result.bits
    return total


def _tensors(group: Group) -> list[str]:
    return list(dict.fromkeys(a.tensor for o in group.operators for a in o.accesses))


def _renamed(fused: FusedMapping, tensors: list[str], group: Group) -> FusedMapping:
    """The same for another group of equal operators; ``tensors`` are those of the first."""
    names = dict(zip(tensors, _tensors(group), strict=True))
    return replace(
        fused,
        operators=tuple(o.name for o in group.operators),
        resident=tuple(names[tensor] for tensor in fused.resident),
        mappings=tuple(
            replace(mapping, operator=o.name)
            for mapping, o in zip(fused.mappings, group.operators, strict=True)
        ),
    )

"""Lowering: from a mapping to a program of tile operations, loops kept as loops.

Iterations of a loop that do the same work become one ``Repeat``. What makes iterations
differ is small and known: a ragged last tile, tiles that reach into padding, the first visit
of an output tile (nothing to read back) and the last one (final values instead of partial
sums). So the program's size depends on how many such cases there are, not on trip counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from fractions import Fraction

from arch.datatypes import Bits, whole
from arch.spec import Architecture, Memory
from mapper.footprint import Axis, Range
from mapper.hierarchy import Aside, Execution, execution
from mapper.legality import StagedTile, as_mapped, check_capacity, parallel_over, staged_tiles
from mapper.links import carried
from mapper.mapping import Loop, Mapping
from mapper.program import Compute, Hold, Node, Program, Repeat, TileOp, Work
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator

Ranges = MappingABC[str, Range]
Works = tuple[tuple[str, Work], ...]


def lower(
    workload: Workload, operator: Operator, mapping: Mapping, architecture: Architecture
) -> Program:
    """The program of ``mapping``.

    Raises ``InfeasibleError`` if a tile does not fit, ``MappingError`` if the mapping is not
    well formed.
    """
    return lower_execution(execution(workload, operator, architecture), mapping)


def lower_execution(run: Execution, mapping: Mapping) -> Program:
    """As ``lower``, for an operator already placed on its compute unit."""
    run = as_mapped(run, mapping)
    staged = staged_tiles(run, mapping)
    peak = check_capacity(staged)
    everything = {dim: (0, extent) for dim, extent in run.operator.extents.items()}
    lowering = _Lowering(
        run,
        mapping,
        staged={tile.depth: tile for tile in staged},
        reduced=run.operator.reduction_dims(),
        padded={dim: _padded_axes(run, dim, everything) for dim in everything},
    )
    return Program(operator=run.operator.name, body=lowering.body(0, everything), peak_bits=peak)


@dataclass(slots=True)
class _Lowering:
    run: Execution
    mapping: Mapping
    staged: dict[int, StagedTile]
    reduced: frozenset[str]
    padded: dict[str, tuple[Axis, ...]]
    built: dict[tuple[object, ...], tuple[Node, ...]] = field(default_factory=dict)

    @property
    def compute_depth(self) -> int:
        """Depth below which nothing is held in a shared memory: one compute operation."""
        shared = [d for d, tile in self.staged.items() if not tile.memory.replicated_over]
        return max(shared, default=-1) + 1

    @property
    def datapath_bits(self) -> Bits:
        """Width of what the compute unit writes: partial sums, unless each is final at once."""
        extents = self.run.operator.extents
        reduced_in_one_step = all(self.mapping.unit(dim) >= extents[dim] for dim in self.reduced)
        memory = self.run.paths[self.run.output][-1]
        return self.run.final_bits(memory) if reduced_in_one_step else self.run.partial_bits

    def body(self, depth: int, ranges: Ranges) -> tuple[Node, ...]:
        key = (depth, *(self._signature(dim, ranges[dim]) for dim in ranges))
        if key not in self.built:
            self.built[key] = self._build(depth, ranges)
        return self.built[key]

    def _build(self, depth: int, ranges: Ranges) -> tuple[Node, ...]:
        if depth == self.compute_depth:
            return (Compute(self._compute(ranges)),)
        node = self.mapping.nest[depth]
        if isinstance(node, Loop):
            return self._repeats(depth, node, ranges)
        return (self._hold(self.staged[depth], ranges, self.body(depth + 1, ranges)),)

    def _repeats(self, depth: int, loop: Loop, ranges: Ranges) -> tuple[Node, ...]:
        start, stop = ranges[loop.dim]
        runs: list[tuple[object, int, int, int]] = []
        for a in range(start, stop, loop.tile):
            span = (a, min(a + loop.tile, stop))
            signature = self._signature(loop.dim, span)
            if runs and runs[-1][0] == signature:
                runs[-1] = (signature, runs[-1][1] + 1, *runs[-1][2:])
            else:
                runs.append((signature, 1, *span))
        return tuple(
            Repeat(
                count,
                loop.dim,
                a - start,
                b - a,
                self.body(depth + 1, {**ranges, loop.dim: (a, b)}),
            )
            for _, count, a, b in runs
        )

    def _signature(self, dim: str, span: Range) -> tuple[object, ...]:
        """Equal for two ranges of ``dim`` exactly if all work below them is equal."""
        start, stop = span
        edge = self._touches_padding(dim, span)
        reduction = dim in self.reduced
        whole = self.run.operator.extents[dim]
        return (
            stop - start,
            start if edge else -1,
            reduction and start == 0,
            reduction and stop == whole,
        )

    def _touches_padding(self, dim: str, span: Range) -> bool:
        if not self.padded[dim]:
            return False
        ranges = {d: (0, extent) for d, extent in self.run.operator.extents.items()} | {dim: span}
        return any(not axis.contains(ranges) for axis in self.padded[dim])

    def _is_first(self, ranges: Ranges) -> bool:
        return all(ranges[dim][0] == 0 for dim in self.reduced)

    def _is_last(self, ranges: Ranges) -> bool:
        extents = self.run.operator.extents
        return all(ranges[dim][1] == extents[dim] for dim in self.reduced)

    def _hold(self, tile: StagedTile, ranges: Ranges, body: tuple[Node, ...]) -> Hold:
        name = f"{self.run.operator.accesses[tile.operand].tensor}@{tile.memory.name}"
        region = {dim: stop - start for dim, (start, stop) in ranges.items()}
        moved = self._counts(tile, ranges, region)
        load = store = None
        if tile.operand != self.run.output:
            load = TileOp(f"load {name}", self._load_work(tile, moved))
        else:
            refill, drain = self._output_work(tile, ranges, moved, self._outputs(ranges))
            if not self._is_first(ranges):
                load = TileOp(f"load {name}", refill)
            elif any(work != Work() for _, work in refill):
                # Instances of the parent hold sums of the same outputs, and are merged.
                drain += refill
            store = TileOp(f"store {name}", drain)
        return Hold(
            operand=tile.operand,
            memory=tile.memory.name,
            slots=tile.slots,
            size_bits=tile.size_bits * tile.memory.count,
            load=load,
            store=store,
            body=body,
        )

    def _counts(self, tile: StagedTile, ranges: Ranges, tiles: dict[str, int]) -> tuple[int, int]:
        """Elements read from the parent and elements written into the child's instances."""
        counts = self.run.counts
        return (
            counts.moved(tile.operand, ranges, tiles, self._parallel(tile.parent)),
            counts.moved(tile.operand, ranges, tiles, self._parallel(tile.memory)),
        )

    def _parallel(self, memory: Memory) -> dict[str, int]:
        return parallel_over(self.run, self.mapping, memory)

    def _load_work(self, tile: StagedTile, moved: tuple[int, int]) -> Works:
        bits = self.run.bits[tile.operand]
        return (
            (tile.parent.name, Work(read_bits=moved[0] * bits)),
            *self._carried(tile.operand, tile.parent, Work(read_bits=moved[0] * bits)),
            (tile.memory.name, Work(write_bits=moved[1] * bits)),
        )

    def _output_work(
        self, tile: StagedTile, ranges: Ranges, moved: tuple[int, int], elements: int
    ) -> tuple[Works, Works]:
        """Reading partial sums back (refill) and writing results out (drain).

        ``moved`` counts all visits of the tile in ``ranges`` at the parent and at the child,
        ``elements`` the distinct outputs. The first visit has nothing to read back; the last
        one writes final values. The innermost memory accumulates, so all that it holds is as
        wide as its partial sums; outer ones hold final values in their final width.
        """
        at_parent, at_child = moved
        partial, final = self.run.partial_bits, self.run.final_bits(tile.memory)
        at_rest = self.run.final_bits(tile.parent)
        first = elements if self._is_first(ranges) else 0
        last = elements if self._is_last(ranges) else 0
        refill_bits = (at_parent - first) * partial
        if tile.memory is self.run.paths[tile.operand][-1]:
            held_bits = at_child * tile.width_bits
        else:
            held_bits = (at_child - last) * partial + last * final
        refill = (
            (tile.parent.name, Work(read_bits=refill_bits)),
            *self._carried(tile.operand, tile.parent, Work(read_bits=refill_bits)),
            (tile.memory.name, Work(write_bits=refill_bits)),
        )
        drained = Work(write_bits=(at_parent - last) * partial + last * at_rest)
        drain = (
            (tile.memory.name, Work(read_bits=held_bits)),
            *reversed(self._carried(tile.operand, tile.parent, drained)),
            (tile.parent.name, drained),
        )
        return refill, drain

    def _compute(self, ranges: Ranges) -> TileOp:
        """All that happens below the shared memories, as one operation."""
        works: dict[str, Work] = {}
        for depth, tile in self.staged.items():
            if depth >= self.compute_depth:
                _add(works, self._inner_transfer(tile, ranges))
        for operand in range(len(self.run.paths)):
            _add(works, self._datapath(operand, ranges))
        _add(works, ((self.run.compute.name, self._steps(ranges)),))
        _add(works, self._asides(ranges))
        return TileOp(f"compute {self.run.operator.name}", tuple(works.items()))

    def _inner_transfer(self, tile: StagedTile, ranges: Ranges) -> Works:
        moved = self._counts(tile, ranges, tile.tiles)
        if tile.operand != self.run.output:
            return self._load_work(tile, moved)
        refill, drain = self._output_work(tile, ranges, moved, self._outputs(ranges))
        return refill + drain

    def _outputs(self, ranges: Ranges) -> int:
        whole = {dim: stop - start for dim, (start, stop) in ranges.items()}
        once = dict.fromkeys(whole, 1)
        return self.run.counts.moved(self.run.output, ranges, whole, once)

    def _datapath(self, operand: int, ranges: Ranges) -> Works:
        """Operands between the innermost memory and the compute unit, step by step."""
        memory = self.run.paths[operand][-1]
        unit = {dim: self.mapping.unit(dim) for dim in ranges}
        count = self.run.counts.moved(operand, ranges, unit, self._parallel(memory))
        if operand != self.run.output:
            work = Work(read_bits=count * self.run.bits[operand])
            return ((memory.name, work), *self._carried(operand, memory, work))
        first = self._outputs(ranges) if self._is_first(ranges) else 0
        width = self.datapath_bits
        work = Work(read_bits=(count - first) * width, write_bits=count * width)
        return ((memory.name, work), *self._carried(operand, memory, work))

    def _carried(self, operand: int, memory: Memory, work: Work) -> Works:
        """What a network carries of the work of the memory that feeds it."""
        if not self.run.links or self.run.links[0].source != memory.name:
            return ()
        return carried(self.run, self.mapping, operand, work)

    def _steps(self, ranges: Ranges) -> Work:
        steps = points = 1
        for dim, (start, stop) in ranges.items():
            steps *= -(-(stop - start) // self.mapping.unit(dim))
            points *= stop - start
        return Work(
            steps=whole(steps * self.run.issues_per_point),
            operations=whole(points * self.run.ops_per_point),
            folds=self._folds(ranges),
        )

    def _folds(self, ranges: Ranges) -> int:
        """How often the operand that stays in the unit changes there."""
        inner = [t for t in self.staged.values() if t.operand == self.run.stationary]
        if not inner:
            return 0
        tiles = inner[-1].tiles
        return math.prod(-(-(stop - a) // tiles[dim]) for dim, (a, stop) in ranges.items())

    def _asides(self, ranges: Ranges) -> Works:
        return tuple(
            (
                aside.compute.name,
                aside_work(aside, {d: stop - a for d, (a, stop) in ranges.items()}),
            )
            for aside in self.run.asides
        )


def aside_work(aside: Aside, extents: MappingABC[str, int]) -> Work:
    """Side work on a box: full lanes, since neighbouring tiles follow without a pause."""
    points = math.prod(extents[dim] for dim in aside.work.dims)
    return Work(
        steps=whole(Fraction(points, aside.lanes)), operations=points * aside.work.ops_per_point
    )


def _padded_axes(run: Execution, dim: str, everything: Ranges) -> tuple[Axis, ...]:
    """Axes of any operand that ``dim`` runs along and that reach into padding somewhere."""
    return tuple(
        axis
        for operand in run.counts.operands
        for axis in operand.coupled_axes((dim,))
        if not axis.contains(everything)
    )


def _add(works: dict[str, Work], more: Works) -> None:
    for name, work in more:
        works[name] = works.get(name, Work()) + work

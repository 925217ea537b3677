"""Walks a mapping's nest iteration by iteration and counts what each memory moves.

The opposite of lowering: no loop is kept, every tile is a set of tensor positions, and whether
a partial sum exists or is final is known from how many products were added to it so far.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

from arch.spec import Memory
from mapper.hierarchy import Execution
from mapper.legality import as_mapped, parallel_over
from mapper.mapping import Loop, Mapping, Stage
from mapper.program import Work
from mapper.workload.graph import Workload
from tests.mapper.index_sets import Box, Positions, Range, chunks, shares, touched, whole


class Walk:
    def __init__(self, workload: Workload, run: Execution, mapping: Mapping) -> None:
        self.run = as_mapped(run, mapping)
        self.mapping = mapping
        self.accesses = run.operator.accesses
        self.shapes = [workload.tensor(access.tensor).shape for access in self.accesses]
        self.reduced = run.operator.reduction_dims()
        self.products = math.prod(run.operator.extents[dim] for dim in self.reduced)
        self.added: Counter[tuple[int, ...]] = Counter()
        self.work: defaultdict[str, Work] = defaultdict(Work)

    def totals(self) -> dict[str, Work]:
        """Per component, of the whole operator."""
        self._visit(0, whole(self.run.operator))
        assert set(self.added.values()) == {self.products}
        return {name: work for name, work in self.work.items() if work != Work()}

    def _visit(self, depth: int, box: dict[str, Range]) -> None:
        if depth == len(self.mapping.nest):
            self._step(box)
            return
        match self.mapping.nest[depth]:
            case Loop(dim, tile):
                for chunk in chunks(box, {d: tile if d == dim else 1 << 30 for d in box}):
                    self._visit(depth + 1, chunk)
            case Stage(operand, memory):
                path = self.run.paths[operand]
                level = [m.name for m in path].index(memory)
                if operand == self.run.output:
                    self._accumulate(depth, box, path[level - 1], path[level])
                else:
                    bits = self.run.bits[operand]
                    self._add(
                        path[level - 1], read=self._copies(operand, box, path[level - 1]) * bits
                    )
                    self._add(path[level], write=self._copies(operand, box, path[level]) * bits)
                    self._visit(depth + 1, box)

    def _accumulate(self, depth: int, box: dict[str, Range], parent: Memory, child: Memory) -> None:
        elements = self._elements(box)
        partial, at_rest = self.run.partial_bits, self.run.final_bits(parent)
        begun = sum(self.added[e] > 0 for e in elements) * partial
        self._add(parent, read=begun)
        self._add(child, write=begun)
        self._visit(depth + 1, box)
        done = sum(self.added[e] == self.products for e in elements)
        self._add(parent, write=done * at_rest + (len(elements) - done) * partial)
        copies = self._copies(self.run.output, box, child)
        if child is self.run.paths[self.run.output][-1]:
            self._add(child, read=copies * self._accumulator_bits)
        else:
            final = self.run.final_bits(child)
            self._add(child, read=done * final + (copies - done) * partial)

    def _step(self, box: dict[str, Range]) -> None:
        for operand in range(self.run.output):
            memory = self.run.paths[operand][-1]
            self._add(memory, read=self._copies(operand, box, memory) * self.run.bits[operand])
        elements = self._elements(box)
        memory = self.run.paths[self.run.output][-1]
        copies, bits = self._copies(self.run.output, box, memory), self._accumulator_bits
        fresh = sum(self.added[e] == 0 for e in elements)
        self._add(memory, read=(copies - fresh) * bits, write=copies * bits)
        points = math.prod(stop - start for start, stop in box.values())
        for element in elements:
            self.added[element] += points // len(elements)
        operations = points * self.run.operator.ops_per_point
        self.work[self.run.compute.name] += Work(steps=1, operations=operations)

    @property
    def _accumulator_bits(self) -> int:
        """What accumulates is as wide as its partial sums, if there are any."""
        extents = self.run.operator.extents
        at_once = all(self.mapping.unit(dim) >= extents[dim] for dim in self.reduced)
        innermost = self.run.paths[self.run.output][-1]
        return self.run.final_bits(innermost) if at_once else self.run.partial_bits

    def _elements(self, box: Box) -> Positions:
        return touched(self.accesses[self.run.output], box)

    def _copies(self, operand: int, box: Box, memory: Memory) -> int:
        parallel = parallel_over(self.run, self.mapping, memory)
        access, shape = self.accesses[operand], self.shapes[operand]
        return sum(len(touched(access, share, shape)) for share in shares(box, parallel))

    def _add(self, memory: Memory, read: int = 0, write: int = 0) -> None:
        self.work[memory.name] += Work(read_bits=read, write_bits=write)

"""Executes a lowered program on real tensors, tile by tile, with a local copy per hold.

A load copies what the loops below it touch and nothing else; everything else in the local copy
is NaN, so that a footprint that is too small shows in the result. Products are formed from the
innermost copies only, and added to the innermost copy of the output; a store copies back. What
is copied is counted and compared with the work that the program claims for its transfers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from arch.datatypes import Bits
from arch.spec import Memory
from mapper.hierarchy import Execution
from mapper.program import Compute, Hold, Node, Program, Repeat, TileOp, Work
from mapper.workload.graph import Workload
from mapper.workload.operators import Access, Operator
from tests.mapper import semantics
from tests.mapper.index_sets import Range
from tests.mapper.streaming import Stream, hidden_keys

Array = NDArray[np.float64]
Places = tuple[NDArray[np.int64], ...]


@dataclass
class Machine:
    """One run. ``copies[operand]`` are its copies, outermost first; the first is the tensor."""

    run: Execution
    memories: Mapping[str, Memory]
    copies: list[list[Array]]
    added: Counter[int] = field(default_factory=Counter)
    transfers: int = 0
    stream: Stream | None = None

    @property
    def neutral(self) -> float:
        return semantics.neutral(self.run.operator)

    def execute(self, body: tuple[Node, ...], ranges: dict[str, Range]) -> None:
        for node in body:
            match node:
                case Compute():
                    self._compute(ranges)
                case Repeat():
                    for chunk in _chunks(node, ranges[node.dim]):
                        self.execute(node.body, ranges | {node.dim: chunk})
                case Hold():
                    self._hold(node, ranges)

    def _hold(self, hold: Hold, ranges: dict[str, Range]) -> None:
        outer = self.copies[hold.operand][-1]
        inner = np.full_like(outer, np.nan)
        places = self._existing(hold.operand, ranges)
        held_bits = len(places[0]) * self.run.bits[hold.operand]
        assert held_bits <= hold.size_bits
        if hold.load is not None:
            inner[places] = outer[places]
            self._check(hold, hold.load, self._loaded_bits(hold.operand, places))
        else:
            inner[places] = self.neutral
        self.copies[hold.operand].append(inner)
        self.execute(hold.body, ranges)
        self.copies[hold.operand].pop()
        if hold.store is not None:
            outer[places] = inner[places]
            self._check(hold, hold.store, self._stored_bits(hold, places))

    def _loaded_bits(self, operand: int, places: Places) -> int:
        is_partial = operand == self.run.output
        width = self.run.partial_bits if is_partial else self.run.bits[operand]
        return len(places[0]) * width

    def _stored_bits(self, hold: Hold, places: Places) -> Bits:
        """Finished values have the width in which the outer memory keeps them, unfinished ones
        that of a partial sum."""
        assert hold.store is not None
        (parent,) = (name for name, _ in hold.store.work if name != hold.memory)
        operator = self.run.operator
        products = operator.points // self.run.counts.operands[self.run.output].elements
        done = sum(self.added[at] == products for at in self._numbers(places))
        unfinished = len(places[0]) - done
        final = self.run.final_bits(self.memories[parent])
        return done * final + unfinished * self.run.partial_bits

    def _check(self, hold: Hold, op: TileOp, bits: int) -> None:
        """The outer memory moves exactly this; so does the inner one unless it has instances.

        The innermost memory of the output is read at the width that it accumulates in.
        """
        works = dict(op.work)
        inner = works.pop(hold.memory)
        ((parent, outer),) = works.items()
        self.transfers += 1
        if self.memories[parent].replicated_over:
            return  # each of its instances moves its own part, some of it more than once
        if op is hold.store:
            assert outer == Work(write_bits=bits)
        else:
            assert outer == Work(read_bits=bits)
            if not self.memories[hold.memory].replicated_over:
                assert inner == Work(write_bits=bits)

    def _compute(self, ranges: dict[str, Range]) -> None:
        operator = self.run.operator
        reduced = tuple(at for at, dim in enumerate(ranges) if dim not in operator.output.dims)
        inner = self.copies[self.run.output][-1]
        places = tuple(np.squeeze(p, axis=reduced) for p in _places(operator.output, ranges))
        if operator.kind in semantics.STREAMING:
            self._stream(ranges, inner, places)
        else:
            values = [self._operand_values(i, ranges) for i in range(self.run.output)]
            points = semantics.points(operator, values, ranges)
            inner[places] = semantics.accumulate(
                operator, inner[places], semantics.reduce(operator, points, reduced)
            )
        each = math.prod(stop - start for start, stop in ranges.values()) // inner[places].size
        for at in self._numbers(places):
            self.added[at] += each

    def _stream(self, ranges: dict[str, Range], inner: Array, places: Places) -> None:
        """Attention over the keys of the box; the last keys of a query finish its values."""
        if self.stream is None:
            self.stream = Stream(self.copies[self.run.output][0].shape)
        values = [self._operand_values(i, ranges) for i in range(self.run.output)]
        hidden = hidden_keys(self.run.operator, [c[0].shape for c in self.copies], ranges)
        self.stream.add(inner, places, values, hidden)
        keys = 2 * self.run.operator.extents["L"]
        before = keys - 2 * (ranges["L"][1] - ranges["L"][0])
        last = [self.added[at] == before for at in self._numbers(places)]
        assert all(last) or not any(last)
        if all(last):
            self.stream.finish(inner, places)

    def _operand_values(self, operand: int, ranges: dict[str, Range]) -> Array:
        array = self.copies[operand][-1]
        places = _places(self.run.operator.accesses[operand], ranges)
        inside, clipped = _clip(places, array.shape)
        return np.where(inside, array[clipped], self.neutral)

    def _existing(self, operand: int, ranges: dict[str, Range]) -> Places:
        """Distinct positions that the operand has in a box."""
        array = self.copies[operand][0]
        places = _places(self.run.operator.accesses[operand], ranges)
        inside, clipped = _clip(places, array.shape)
        numbers = np.ravel_multi_index(np.broadcast_arrays(*clipped), array.shape)
        distinct = np.unique(numbers[np.broadcast_to(inside, numbers.shape)])
        return np.unravel_index(distinct, array.shape)

    def _numbers(self, places: Places) -> list[int]:
        shape = self.copies[self.run.output][0].shape
        numbers = np.ravel_multi_index(np.broadcast_arrays(*places), shape)
        return list(map(int, numbers.ravel()))


def execute(
    workload: Workload,
    run: Execution,
    program: Program,
    values: Mapping[str, Array],
) -> Array:
    """The output tensor that the program computes from the values of its inputs."""
    operator = run.operator
    output = np.full(workload.tensor(operator.output.tensor).shape, np.nan)
    machine = Machine(
        run=run,
        memories={memory.name: memory for memory in run.memories},
        copies=[*([values[access.tensor]] for access in operator.inputs), [output]],
    )
    machine.execute(program.body, {dim: (0, e) for dim, e in operator.extents.items()})
    assert machine.transfers > 0
    return output


def define(operator: Operator, run: Execution, values: Mapping[str, Array], output: Array) -> None:
    """Writes into ``output`` what the operator is defined to compute, all points at once."""
    inputs = [[values[access.tensor]] for access in operator.inputs]
    machine = Machine(run=run, memories={}, copies=[*inputs, [output]])
    ranges = {dim: (0, extent) for dim, extent in operator.extents.items()}
    output[machine._existing(machine.run.output, ranges)] = machine.neutral
    machine._compute(ranges)


def _chunks(node: Repeat, around: Range) -> Iterator[Range]:
    first = around[0] + node.start
    for number in range(node.count):
        start = first + number * node.tile
        assert start + node.tile <= around[1]
        yield start, start + node.tile


def _places(access: Access, ranges: Mapping[str, Range]) -> Places:
    """Position on each axis of the tensor, over the box (broadcast where a loop is unused)."""
    grids = np.ogrid[tuple(slice(*span) for span in ranges.values())]
    at = dict(zip(ranges, grids, strict=True))
    zero = np.zeros((1,) * len(ranges), dtype=np.int64)
    return tuple(
        sum((step * at[dim] for dim, step in index.terms), zero + index.offset)
        for index in access.index
    )


def _clip(places: Places, shape: tuple[int, ...]) -> tuple[NDArray[np.bool_], Places]:
    """Which positions exist, and the nearest ones that do."""
    inside = np.ones((), dtype=np.bool_)
    for place, size in zip(places, shape, strict=True):
        inside = inside & (place >= 0) & (place < size)
    return inside, tuple(np.clip(p, 0, s - 1) for p, s in zip(places, shape, strict=True))

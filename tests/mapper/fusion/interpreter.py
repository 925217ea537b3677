"""Executes the program of a fused group on real tensors.

The group's memory holds of each tensor just what the plan says is needed for a tile: all else
is NaN, as is every tensor that must never reach the outermost memory. Pieces run through the
holds and loops of the program, as in ``program_interpreter``; only those of a softmax whose rows
the mapping may cut are computed from their definition, on what is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from arch.datatypes import Bits
from mapper.fusion_lower import LoweredGroup
from mapper.fusion_regions import Region, Step, elements, reading
from mapper.hierarchy import Execution
from mapper.program import Hold, Node, Repeat, Work
from mapper.workload.operators import Operator
from tests.mapper import semantics
from tests.mapper.program_interpreter import Array, Machine

Box = Mapping[str, tuple[int, int]]


@dataclass
class FusedMachine:
    """``outside`` are tensors in the outermost memory, ``inside`` what the group's one holds."""

    group: LoweredGroup
    runs: tuple[Execution, ...]
    outside: dict[str, Array]
    inside: dict[str, Array]
    tile: int = 0
    loaded_bits: Bits = 0
    computed: dict[str, int] = field(default_factory=dict)

    def run(self) -> None:
        body = self.group.program.body
        for tensor in reversed(self.group.plan.once):
            (hold,) = body
            assert isinstance(hold, Hold)
            self._load(hold, tensor, self.group.plan.steps[0].fresh[tensor])
            body = hold.body
        self._loops(len(self.group.plan.tiles), body)
        assert self.tile == len(self.group.plan.steps)

    def _loops(self, levels: int, body: tuple[Node, ...]) -> None:
        if levels == 0:
            self._leaf(self.group.plan.steps[self.tile], body)
            self.tile += 1
            return
        for node in body:
            assert isinstance(node, Repeat)
            for _ in range(node.count):
                self._loops(levels - 1, node.body)

    def _leaf(self, step: Step, body: tuple[Node, ...]) -> None:
        self._drop(step)
        for tensor in reversed(self.group.plan.sliding):
            (hold,) = body
            assert isinstance(hold, Hold)
            self._load(hold, tensor, step.fresh[tensor])
            body = hold.body
        sections = list(body)
        for number, box in enumerate(step.pieces):
            if box is not None:
                self._section(number, box, sections)
        assert not sections

    def _drop(self, step: Step) -> None:
        """Only what this tile needs is still there."""
        for tensor, region in step.needed.items():
            kept = np.full_like(self.inside[tensor], np.nan)
            at = tuple(slice(*span) for span in region)
            kept[at] = self.inside[tensor][at]
            self.inside[tensor] = kept

    def _load(self, hold: Hold, tensor: str, region: Region | None) -> None:
        assert hold.operand == self.group.plan.number_of(tensor)
        assert (hold.load is None) == (region is None)
        if hold.load is None or region is None:
            return
        at = tuple(slice(*span) for span in region)
        self.inside[tensor][at] = self.outside[tensor][at]
        bits = elements(region) * self._width(tensor)
        outer, inner = (work for _, work in hold.load.work)
        assert outer == Work(read_bits=bits)
        assert inner == Work(write_bits=bits)
        self._check_room(hold, tensor)
        self.loaded_bits += bits

    def _section(self, number: int, box: Box, sections: list[Node]) -> None:
        operator = self.group.plan.group.operators[number]
        passed = [t for t in _tensors(operator) if t in self.group.plan.group.internal]
        # Alone in its group, an operator passes nothing on, and all of the tile is its work.
        body = [sections.pop(0) for _ in range(1 if passed else len(sections))]
        for tensor in reversed(passed):
            (hold,) = body
            assert isinstance(hold, Hold)
            assert hold.operand == self.group.plan.number_of(tensor)
            assert hold.load is None
            assert hold.store is None
            body = list(hold.body)
            if not body or (not isinstance(body[0], Hold | Repeat) and tensor != passed[0]):
                raise AssertionError("a piece without work")
            self._check_room(hold, tensor)
        self._piece(number, box, tuple(body))

    def _piece(self, number: int, box: Box, body: tuple[Node, ...]) -> None:
        run = self.runs[number]
        operator = run.operator
        arrays = [self._array(access.tensor) for access in operator.accesses]
        points = np.prod([stop - start for start, stop in box.values()])
        self.computed[operator.name] = self.computed.get(operator.name, 0) + int(points)
        machine = Machine(
            run=run,
            memories={memory.name: memory for memory in run.memories},
            copies=[[array] for array in arrays],
        )
        if operator.output.tensor in self.inside:
            # No hold of the program clears what is summed up where it stays.
            self._clear(operator, box)
        if operator.operation in ("softmax", "norm") and not operator.whole_dims:
            self._clear(operator, box)
            machine._compute(dict(box))
            return
        back = {n: i for i, n in enumerate(self.group.plan.numbers(operator))}
        machine.execute(_numbered_back(body, back), dict(box))

    def _clear(self, operator: Operator, box: Box) -> None:
        array = self._array(operator.output.tensor)
        region = reading(operator.output, box, array.shape)
        array[tuple(slice(*span) for span in region)] = semantics.neutral(operator)

    def _check_room(self, hold: Hold, tensor: str) -> None:
        """What is there of a tensor is at most what its hold has room for."""
        held = int((~np.isnan(self.inside[tensor])).sum())
        assert held * self._width(tensor) <= hold.size_bits

    def _width(self, tensor: str) -> Bits:
        return self.group.plan.workload.tensor(tensor).bits

    def _array(self, tensor: str) -> Array:
        return self.inside[tensor] if tensor in self.inside else self.outside[tensor]


def _tensors(operator: Operator) -> list[str]:
    return list(dict.fromkeys(access.tensor for access in operator.accesses))


def _numbered_back(body: tuple[Node, ...], back: Mapping[int, int]) -> tuple[Node, ...]:
    found: list[Node] = []
    for node in body:
        if isinstance(node, Hold):
            node = replace(node, operand=back[node.operand])
        if isinstance(node, Hold | Repeat):
            node = replace(node, body=_numbered_back(node.body, back))
        found.append(node)
    return tuple(found)


def execute_group(
    group: LoweredGroup, runs: tuple[Execution, ...], values: Mapping[str, Array]
) -> FusedMachine:
    """Runs the group on the values of its external tensors; the machine after the run."""
    plan = group.plan
    shape = {t.name: t.shape for t in plan.workload.tensors}
    inside = (*plan.group.internal, *plan.once, *plan.sliding)
    machine = FusedMachine(
        group=group,
        runs=runs,
        outside={
            **{tensor: values[tensor] for tensor in plan.group.external},
            plan.group.result: np.full(shape[plan.group.result], np.nan),
        },
        inside={tensor: np.full(shape[tensor], np.nan) for tensor in inside},
    )
    machine.run()
    return machine

"""Lowering of a fused group to one program.

A tile's pieces follow each other in the order of the operators. A tensor that passes between
them is held once while it is produced and once while each piece that reads it runs; all these
holds share one slot, so a reader starts when the writer is done. Tensors that every tile needs
whole are loaded once around the tile loops; others that are resident are loaded tile by tile,
the next part while this one is in use. Equal neighbouring tiles become one ``Repeat``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from arch.datatypes import Bits
from arch.spec import Architecture, Memory
from mapper.cost import InfeasibleError
from mapper.fusion import Box, FusedMapping, Group, group_of
from mapper.fusion_regions import Region, Step, elements, piece, steps
from mapper.hierarchy import Execution
from mapper.legality import check_capacity, staged_tiles
from mapper.lower import lower_execution
from mapper.mapping import Loop
from mapper.placement import Homes, Occupied, placed
from mapper.program import Hold, Node, Program, Repeat, TileOp, Work
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """A group cut into tiles, before its pieces have mappings.

    ``occupied[i]`` is what tensors take in the group's memory while operator ``i`` runs.
    ``once`` are the resident tensors that are loaded once, ``sliding`` those loaded by tile.
    """

    workload: Workload
    group: Group
    memory: Memory
    tiles: tuple[Loop, ...]
    steps: tuple[Step, ...]
    homes: Homes
    room_bits: dict[str, Bits]
    slots: int
    once: tuple[str, ...]
    sliding: tuple[str, ...]
    occupied: tuple[dict[str, Bits], ...]

    def pieces(self, number: int) -> Iterator[Box]:
        """Every piece of an operator, tile by tile."""
        for step in self.steps:
            box = step.pieces[number]
            if box is not None:
                yield box

    def all_pieces(self, number: int) -> Operator:
        """What an operator computes in all: not always everything (strides skip edges)."""
        boxes = list(self.pieces(number))
        box = {
            dim: (min(b[dim][0] for b in boxes), max(b[dim][1] for b in boxes)) for dim in boxes[0]
        }
        return self.piece_operator(number, box)

    def largest_piece(self, number: int) -> Operator:
        """The piece that the operator's mapping is made for: as long as any along each loop."""
        boxes = list(self.pieces(number))
        extents = self.group.operators[number].extents
        box = {}
        for dim, extent in extents.items():
            length = max(b[dim][1] - b[dim][0] for b in boxes)
            start = min(boxes[-1][dim][0], extent - length)
            box[dim] = (start, start + length)
        return self.piece_operator(number, box)

    def piece_operator(self, number: int, box: Box) -> Operator:
        operator = self.group.operators[number]
        shapes = {a.tensor: self.workload.tensor(a.tensor).shape for a in operator.accesses}
        return piece(operator, box, shapes)

    def execution(self, number: int, operator: Operator, architecture: Architecture) -> Execution:
        """A piece of an operator where it runs, with the room that the group leaves it."""
        return placed(self.workload, operator, architecture, self.homes, self.occupied[number])

    def numbers(self, operator: Operator) -> tuple[int, ...]:
        """The number in the group's program of each operand: one per tensor at home in the
        group's memory, one per operand otherwise."""
        at = self.group.operators.index(operator)
        kept = (*self.group.internal, *self.once, *self.sliding)
        first = len(kept) + sum(len(o.accesses) for o in self.group.operators[:at])
        return tuple(
            kept.index(a.tensor) if a.tensor in kept else first + operand
            for operand, a in enumerate(operator.accesses)
        )

    def number_of(self, tensor: str) -> int:
        return (*self.group.internal, *self.once, *self.sliding).index(tensor)


def plan_group(
    workload: Workload,
    fused: FusedMapping,
    architecture: Architecture,
    homes: Homes | None = None,
    occupied: Occupied | None = None,
    walked: Sequence[Step] | None = None,
) -> GroupPlan:
    """Tiles, pieces and rooms of a group; its ``mappings`` are not looked at. ``walked`` are the
    steps of these tiles with all external tensors resident, if they are known.

    Raises ``MappingError`` if the operators cannot be a group, ``InfeasibleError`` if what
    passes between them does not fit.
    """
    group = group_of(workload, fused.operators)
    memory = next(m for m in architecture.memories if m.name == fused.memory)
    outer = dict(homes or {})
    inside = dict.fromkeys((*group.internal, *fused.resident), memory.name)
    if walked is None:
        walked = tuple(steps(workload, group, fused.tiles, fused.resident, fused.retained))
    cut = tuple(step.only(inside) for step in walked)
    slots = 2 if len(cut) > 1 and memory.double_buffered else 1
    once = tuple(t for t in fused.resident if all(s.fresh[t] is None for s in cut[1:]))
    sliding = tuple(t for t in fused.resident if t not in once)
    room = {
        tensor: _room(workload, tensor, cut, slots if tensor in sliding else 1) for tensor in inside
    }
    plan = GroupPlan(
        workload=workload,
        group=group,
        memory=memory,
        tiles=fused.tiles,
        steps=cut,
        homes=outer | inside,
        room_bits=room,
        slots=slots,
        once=once,
        sliding=sliding,
        occupied=tuple(
            _occupied(group, number, room, cut, memory.name, occupied or {})
            for number in range(len(group.operators))
        ),
    )
    _check_room(plan)
    return plan


def _room(workload: Workload, tensor: str, cut: tuple[Step, ...], slots: int) -> Bits:
    """Bits that a tensor takes: the largest part needed, and the largest that follows it."""
    bits = workload.tensor(tensor).bits
    most = max(elements(step.needed[tensor]) for step in cut if tensor in step.needed)
    ahead = max((elements(f) for s in cut[1:] if (f := s.fresh[tensor]) is not None), default=0)
    return (most + (ahead if slots > 1 else 0)) * bits


def _occupied(
    group: Group,
    number: int,
    room: dict[str, Bits],
    cut: tuple[Step, ...],
    memory: str,
    others: Occupied,
) -> dict[str, Bits]:
    """What is in use while operator ``number`` runs: its own tensors, those on their way to
    later operators, and those of which a part is kept for the next tile."""
    taken = sum(bits for tensor, bits in room.items() if _in_use(group, number, tensor, cut))
    return {**others, memory: others.get(memory, 0) + taken}


def _in_use(group: Group, number: int, tensor: str, cut: tuple[Step, ...]) -> bool:
    if tensor not in group.internal:
        return True
    names = [o.name for o in group.operators]
    readers = [names.index(o.name) for o, _ in group.readers(tensor)]
    on_the_way = names.index(group.writer(tensor).name) <= number <= max(readers)
    kept = any(step.fresh[tensor] != step.needed.get(tensor) for step in cut)
    return on_the_way or kept


def _check_room(plan: GroupPlan) -> None:
    most = max(occupied[plan.memory.name] for occupied in plan.occupied)
    if most > plan.memory.size_bytes * 8:
        raise InfeasibleError(
            limit=f"capacity of {plan.memory.name} in bytes",
            needed=int(-(-most // 8)),
            allowed=plan.memory.size_bytes,
            detail=f"tensors of the fused group {plan.group.operators[0].name} .. "
            f"{plan.group.operators[-1].name}, without tiles",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredGroup:
    """A group's program, with the whole operators as they are placed in it."""

    plan: GroupPlan
    executions: tuple[Execution, ...]
    program: Program


def lower_group(plan: GroupPlan, fused: FusedMapping, architecture: Architecture) -> LoweredGroup:
    """The program of a group. Raises ``InfeasibleError`` if a tile does not fit."""
    lowering = _Lowering(plan, fused, architecture)
    lowering.reserve()
    body = lowering.body()
    return LoweredGroup(
        plan=plan,
        executions=tuple(
            plan.execution(number, plan.all_pieces(number), architecture)
            for number in range(len(plan.group.operators))
        ),
        program=Program(operator=fused.name, body=body, peak_bits=lowering.peak),
    )


Signature = Hashable


@dataclass(slots=True)
class _Lowering:
    plan: GroupPlan
    fused: FusedMapping
    architecture: Architecture
    peak: dict[str, Bits] = field(default_factory=dict)
    built: dict[Signature, tuple[Node, ...]] = field(default_factory=dict)
    most_slots: dict[tuple[int, str], int] = field(default_factory=dict)

    def reserve(self) -> None:
        """What the group holds at most; no piece needs more than the largest one."""
        name = self.plan.memory.name
        for number, mapping in enumerate(self.fused.mappings):
            operator = self.plan.largest_piece(number)
            run = self.plan.execution(number, operator, self.architecture)
            peak = check_capacity(staged_tiles(run, mapping))
            for memory, bits in {name: 0, **peak}.items():
                bits += self.plan.occupied[number][name] if memory == name else 0
                self.peak[memory] = max(self.peak.get(memory, 0), bits)

    def body(self) -> tuple[Node, ...]:
        leaves = [self._leaf(step) for step in self.plan.steps]
        _, nodes = self._looped(0, leaves)
        for tensor in self.plan.once:
            first = self.plan.steps[0]
            nodes = (self._window(tensor, first.fresh[tensor], 1, nodes),)
        return _with_slots(nodes, self.most_slots)

    def _looped(
        self, level: int, leaves: list[tuple[Signature, tuple[Node, ...]]]
    ) -> tuple[Signature, tuple[Node, ...]]:
        """Leaves of the tile loops from ``level`` on; equal neighbours become one loop."""
        if level == len(self.plan.tiles):
            return leaves[0]
        loop = self.plan.tiles[level]
        extent = self.plan.group.operators[-1].extents[loop.dim]
        starts = range(0, extent, loop.tile)
        each = len(leaves) // len(starts)
        runs: list[tuple[Signature, int, int, tuple[Node, ...]]] = []
        for at, start in enumerate(starts):
            signature, nodes = self._looped(level + 1, leaves[at * each : (at + 1) * each])
            if runs and runs[-1][0] == signature:
                runs[-1] = (signature, runs[-1][1] + 1, *runs[-1][2:])
            else:
                runs.append((signature, 1, start, nodes))
        signature = tuple((s, count) for s, count, _, _ in runs)
        if signature not in self.built:
            self.built[signature] = tuple(
                Repeat(count, loop.dim, start, min(loop.tile, extent - start), nodes)
                for _, count, start, nodes in runs
            )
        return signature, self.built[signature]

    def _leaf(self, step: Step) -> tuple[Signature, tuple[Node, ...]]:
        operators = [
            None if box is None else self.plan.piece_operator(number, box)
            for number, box in enumerate(step.pieces)
        ]
        loads = tuple(_size(step.fresh[tensor]) for tensor in self.plan.sliding)
        signature = (tuple(map(_operator_key, operators)), loads)
        if signature not in self.built:
            nodes: tuple[Node, ...] = tuple(
                node
                for number, operator in enumerate(operators)
                if operator is not None
                for node in self._section(number, operator)
            )
            for tensor in self.plan.sliding:
                nodes = (self._window(tensor, step.fresh[tensor], self.plan.slots, nodes),)
            self.built[signature] = nodes
        return signature, self.built[signature]

    def _section(self, number: int, operator: Operator) -> tuple[Node, ...]:
        """A piece within the holds of what it takes from others and leaves for others."""
        key = (number, _operator_key(operator))
        if key not in self.built:
            run = self.plan.execution(number, operator, self.architecture)
            program = lower_execution(run, self.fused.mappings[number])
            whole = self.plan.group.operators[number]
            nodes = self._renumbered(program.body, self.plan.numbers(whole))
            for tensor in dict.fromkeys(a.tensor for a in whole.accesses):
                if tensor in self.plan.group.internal:
                    nodes = (self._hold(tensor, None, 1, nodes),)
            self.built[key] = nodes
        return self.built[key]

    def _window(
        self, tensor: str, fresh: Region | None, slots: int, body: tuple[Node, ...]
    ) -> Hold:
        """A resident tensor's part for a tile, of which ``fresh`` is loaded."""
        load = None
        if fresh is not None:
            bits = elements(fresh) * self.plan.workload.tensor(tensor).bits
            outer = self.architecture.memories[0].name
            name = self.plan.memory.name
            work = ((outer, Work(read_bits=bits)), (name, Work(write_bits=bits)))
            load = TileOp(f"load {tensor}@{name}", work)
        return self._hold(tensor, load, slots, body)

    def _hold(self, tensor: str, load: TileOp | None, slots: int, body: tuple[Node, ...]) -> Hold:
        return Hold(
            operand=self.plan.number_of(tensor),
            memory=self.plan.memory.name,
            slots=slots,
            size_bits=self.plan.room_bits[tensor],
            load=load,
            store=None,
            body=body,
        )

    def _renumbered(self, body: tuple[Node, ...], numbers: tuple[int, ...]) -> tuple[Node, ...]:
        found: list[Node] = []
        for node in body:
            match node:
                case Repeat():
                    found.append(replace(node, body=self._renumbered(node.body, numbers)))
                case Hold():
                    operand = numbers[node.operand]
                    key = (operand, node.memory)
                    self.most_slots[key] = max(node.slots, self.most_slots.get(key, 1))
                    inner = self._renumbered(node.body, numbers)
                    found.append(replace(node, operand=operand, body=inner))
                case _:
                    found.append(node)
        return tuple(found)


def _with_slots(body: tuple[Node, ...], slots: dict[tuple[int, str], int]) -> tuple[Node, ...]:
    """All holds of an operand in a memory share its slots: as many as the largest piece has."""
    found: list[Node] = []
    for node in body:
        match node:
            case Repeat():
                found.append(replace(node, body=_with_slots(node.body, slots)))
            case Hold():
                most = slots.get((node.operand, node.memory), node.slots)
                found.append(replace(node, slots=most, body=_with_slots(node.body, slots)))
            case _:
                found.append(node)
    return tuple(found)


def _operator_key(operator: Operator | None) -> Hashable:
    if operator is None:
        return None
    accesses = tuple((a.tensor, a.index) for a in operator.accesses)
    return operator.name, tuple(operator.extents.items()), accesses


def _size(region: Region | None) -> int:
    return 0 if region is None else elements(region)

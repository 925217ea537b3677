"""From a program and a price list to a tree of priced operations: what the engine runs.

Loops that the program does not need are removed (one iteration; a loop that only holds another
loop becomes one loop), holds are grouped into stages, and every tile operation knows how long
it occupies each port.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from mapper.program import Compute, Hold, Node, Program, Repeat, TileOp, Work
from sim.ports import Prices, occupancy_ps


@dataclass(frozen=True, slots=True)
class PricedOp:
    """A tile operation on idle hardware: occupancy per port (never zero) and result latency.

    ``pauses_ps`` has, for a port that turns around between folds, how long it does so in all,
    and after the last one (``recovery``): the others are part of the occupancy.
    """

    name: str
    occupancy_ps: tuple[tuple[str, int], ...]
    latency_ps: int
    pauses_ps: tuple[tuple[str, int], ...] = ()
    recovery_ps: int = 0

    def recovery_of(self, port: str) -> int:
        """How long the port is not ready for another request after this one."""
        return self.recovery_ps if any(port == paused for paused, _ in self.pauses_ps) else 0


@dataclass(frozen=True, slots=True)
class Stage:
    """All holds of one operand in one memory. They share ``slots`` and take turns in order."""

    operand: int
    memory: str
    slots: int

    def __str__(self) -> str:
        return f"operand {self.operand} in {self.memory}"


@dataclass(frozen=True, slots=True, eq=False)
class ComputeStep:
    op: PricedOp


@dataclass(frozen=True, slots=True, eq=False)
class HeldTile:
    """``inner`` are the stages that this tile feeds, or that are emptied into it."""

    stage: Stage
    load: PricedOp | None
    store: PricedOp | None
    inner: tuple[Stage, ...]
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """``number`` is unique in the schedule, in program order."""

    number: int
    label: str
    count: int
    body: tuple[Step, ...]


Step = ComputeStep | HeldTile | Loop


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """``stages`` in program order; ``ports`` in the order in which they are first used."""

    body: tuple[Step, ...]
    stages: tuple[Stage, ...]
    ports: tuple[str, ...]


def price_operation(op: TileOp, prices: Prices) -> PricedOp:
    total: dict[str, Work] = {}
    for component, work in op.work:
        total[component] = total.get(component, Work()) + work
    latency = max((prices[component].latency_ps for component in total), default=0)
    busy = occupancy_ps(total, prices)
    paused: dict[str, int] = {}
    recovery = 0
    for component, work in total.items():
        if work.folds and prices[component].turnaround_ps:
            recovery = prices[component].turnaround_ps
            paused[component] = work.folds * recovery
            busy[component] = busy.get(component, 0) + paused[component] - recovery
    return PricedOp(op.name, tuple(busy.items()), latency, tuple(paused.items()), recovery)


def busy_ps(steps: tuple[Step, ...]) -> Counter[str]:
    """How long the steps keep each port busy in all, whenever that may be."""
    total: Counter[str] = Counter()
    for step in steps:
        match step:
            case ComputeStep(op):
                _add_busy(total, op)
            case HeldTile(load=load, store=store, body=body):
                _add_busy(total, load)
                _add_busy(total, store)
                total.update(busy_ps(body))
            case Loop(count=count, body=body):
                total.update({port: busy * count for port, busy in busy_ps(body).items()})
    return total


def paused_ps(steps: tuple[Step, ...], port: str) -> int:
    """How long the steps let a port turn around in all, after the last one included."""
    total = 0
    for step in steps:
        match step:
            case ComputeStep(op):
                total += dict(op.pauses_ps).get(port, 0)
            case HeldTile(body=body):
                total += paused_ps(body, port)
            case Loop(count=count, body=body):
                total += count * paused_ps(body, port)
    return total


def _add_busy(total: Counter[str], op: PricedOp | None) -> None:
    """Without pauses: they are no work."""
    if op is not None:
        total.update(dict(op.occupancy_ps))
        for port, paused in op.pauses_ps:
            total[port] -= paused - op.recovery_ps


def build_schedule(program: Program, prices: Prices) -> Schedule:
    builder = _Builder(prices)
    body = builder.steps(program.body)
    return Schedule(body, tuple(builder.stages.values()), tuple(builder.ports))


@dataclass(slots=True)
class _Builder:
    prices: Prices
    stages: dict[tuple[int, str], Stage] = field(default_factory=dict)
    ports: dict[str, None] = field(default_factory=dict)
    ops: dict[TileOp, PricedOp] = field(default_factory=dict)
    loops: int = 0

    def steps(self, nodes: tuple[Node, ...]) -> tuple[Step, ...]:
        return tuple(step for node in nodes for step in self._step(node))

    def _step(self, node: Node) -> tuple[Step, ...]:
        match node:
            case Compute(op):
                return (ComputeStep(self._priced(op)),)
            case Hold():
                return (self._held(node),)
            case Repeat():
                return self._loop(node)

    def _loop(self, node: Repeat) -> tuple[Step, ...]:
        nest = [node]
        while len(node.body) == 1 and isinstance(inner := node.body[0], Repeat):
            node = inner
            nest.append(node)
        count = math.prod(repeat.count for repeat in nest)
        if count == 1:
            return self.steps(node.body)
        self.loops += 1
        number = self.loops
        body = self.steps(node.body)
        label = ", ".join(repeat.dim for repeat in nest if repeat.count > 1)
        return (Loop(number, label, count, body),) if body and count else ()

    def _held(self, node: Hold) -> HeldTile:
        stage = self._stage(node)
        load = None if node.load is None else self._priced(node.load)
        body = self.steps(node.body)
        store = None if node.store is None else self._priced(node.store)
        return HeldTile(stage, load, store, _inner_stages(stage.operand, body), body)

    def _stage(self, node: Hold) -> Stage:
        stage = Stage(node.operand, node.memory, node.slots)
        known = self.stages.setdefault((node.operand, node.memory), stage)
        if known != stage:
            raise ValueError(f"{stage} has both {known.slots} and {stage.slots} slots")
        return known

    def _priced(self, op: TileOp) -> PricedOp:
        if op not in self.ops:
            self.ops[op] = price_operation(op, self.prices)
            self.ports |= dict.fromkeys(port for port, _ in self.ops[op].occupancy_ps)
        return self.ops[op]


def _inner_stages(operand: int, body: tuple[Step, ...]) -> tuple[Stage, ...]:
    """The outermost stages of ``operand`` within ``body``."""
    found: dict[Stage, None] = {}
    for step in body:
        match step:
            case HeldTile(stage=stage) if stage.operand == operand:
                found[stage] = None
            case HeldTile() | Loop():
                found |= dict.fromkeys(_inner_stages(operand, step.body))
            case ComputeStep():
                pass
    return tuple(found)

"""The scripts of all processes of a schedule.

- The compute process waits for every tile that a hold keeps, computes, and says when the
  results of the body are complete.
- A loader, one per stage, waits for a free slot and, where its tiles come out of an enclosing
  hold of the same operand, for that tile; then it loads. It runs ahead as far as slots allow.
- A storer, one per stage that is ever emptied, waits for the results of the body (and for
  inner stages to have been emptied into this one), stores, and frees the slot. Without a
  storer the end of the body frees the slot.

All walk the schedule in program order. At equal times the compute process goes first, then
storers (they free slots), then loaders, outer stages before inner ones.

Slots are the only limit on how far a loader runs ahead: partial sums that are stored and then
loaded again by the very next hold of their stage (a reduction loop directly around it, which
no sensible mapping has) are not waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sim.arbiter import ArbitratedPort, Ask, Demand, importance
from sim.device_port import DevicePort, device_ports
from sim.process import (
    FIRST_RANK,
    Channel,
    EndOfLoop,
    Instruction,
    Issue,
    IssueListener,
    Port,
    Process,
    Put,
    Take,
    World,
)
from sim.schedule import ComputeStep, DeviceAccess, HeldTile, Loop, PricedOp, Schedule, Stage, Step


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTransfer:
    """An access to a device, as the ``Transfer`` of an ``Issue``."""

    port: DevicePort
    access: DeviceAccess

    @property
    def port_name(self) -> str:
        return self.port.name

    def move(self, ready_ps: int) -> tuple[int, int, int]:
        return self.port.move(self.access, ready_ps)

    def shown(self, span_ps: tuple[int, int]) -> tuple[int, int]:
        return self.port.shown(span_ps)


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """Where a process walks through a loop: instructions ``first`` to ``last`` of its script."""

    process: Process
    first: int
    last: int


@dataclass(slots=True, eq=False)
class LoopUse:
    """All that one loop can touch while it runs.

    It is ``unsteady`` if that includes a device: refreshes come at times of their own.
    """

    loop: Loop
    level: int
    members: list[Membership] = field(default_factory=list)
    channels: dict[Channel, None] = field(default_factory=dict)
    ports: dict[Port, None] = field(default_factory=dict)
    unsteady: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """Everybody on stage: processes in rank order, ports, and what each loop involves.

    A device's service is the device's own, but its port may have an arbiter.
    """

    processes: tuple[Process, ...]
    ports: dict[str, Port]
    loops: dict[int, LoopUse]
    devices: dict[str, DevicePort]


class LoopWatcher(Protocol):
    """Told before the second and each later iteration of a loop of the compute process."""

    def watcher_of(self, loop: Loop) -> Callable[[Process], None] | None:
        """The function to call, or None for a loop that is not worth watching."""
        ...


def write_scripts(
    schedule: Schedule,
    world: World,
    watcher: LoopWatcher | None = None,
    listener: IssueListener | None = None,
) -> Cast:
    return _Author(schedule, world, watcher, listener).cast()


@dataclass(frozen=True, slots=True)
class _Part:
    """What one process does at each kind of step."""

    compute: Callable[[ComputeStep], Iterable[Instruction]]
    enter: Callable[[HeldTile], Iterable[Instruction]]
    leave: Callable[[HeldTile], Iterable[Instruction]]


def _nothing(step: ComputeStep | HeldTile) -> Iterable[Instruction]:
    return ()


class _Author:
    def __init__(
        self,
        schedule: Schedule,
        world: World,
        watcher: LoopWatcher | None,
        listener: IssueListener | None,
    ) -> None:
        self.schedule = schedule
        self.world = world
        self.watcher = watcher
        self.listener = listener
        self.devices = device_ports(schedule)
        self.ports = {name: self._port(name) for name in schedule.ports}
        self.channels: dict[tuple[str, Stage, Stage | None], Channel] = {}
        self.loops: dict[int, LoopUse] = {}
        self.emptied = _emptied_stages(schedule.body)

    def cast(self) -> Cast:
        stages = self.schedule.stages
        parts = [("compute", self._compute_part())]
        parts += [(f"store {s}", self._storer_part(s)) for s in stages if s in self.emptied]
        parts += [(f"load {s}", self._loader_part(s)) for s in stages]
        processes = [
            _Writer(self, name, FIRST_RANK + number, part).write()
            for number, (name, part) in enumerate(parts)
        ]
        for stage in stages:
            self._channel("free slot", stage).tokens_ps.extend([0] * stage.slots)
        self._rank_ports(processes)
        return Cast(tuple(processes), self.ports, self.loops, self.devices)

    def _port(self, name: str) -> Port:
        arbiter = self.schedule.arbiters.get(name)
        return (
            Port(name)
            if arbiter is None
            else ArbitratedPort(name, world=self.world, arbiter=arbiter)
        )

    def _rank_ports(self, processes: list[Process]) -> None:
        """Ports decide after all requests of the same time."""
        arbitrated = [port for port in self.ports.values() if isinstance(port, ArbitratedPort)]
        for number, port in enumerate(arbitrated):
            port.rank = FIRST_RANK + len(processes) + number
            port.importance = {
                p.rank: (importance(port.arbiter, p.name), p.rank) for p in processes
            }

    def _channel(self, what: str, stage: Stage, inner: Stage | None = None) -> Channel:
        """``inner`` tells apart what a stage exchanges with the stages inside it."""
        key = (what, stage, inner)
        if key not in self.channels:
            other = f" (for {inner})" if inner else ""
            self.channels[key] = Channel(f"{what} of {stage}{other}")
        return self.channels[key]

    def _issue(self, op: PricedOp | None) -> tuple[Instruction, ...]:
        if op is None:
            return ()
        if any(name in self.schedule.arbiters for name, _ in op.occupancy_ps):
            return (Ask(op, tuple(self._demands(op)), self.listener),)
        ports = tuple(
            (self.ports[name], ps, op.recovery_of(name))
            for name, ps in op.occupancy_ps
            if name not in self.devices
        )
        return (Issue(op, ports, self.listener, self._transfers(op, op.accesses)),)

    def _demands(self, op: PricedOp) -> Iterator[Demand]:
        for name, ps in op.occupancy_ps:
            accesses = [access for access in op.accesses if access.port == name]
            transfers = self._transfers(op, accesses)
            yield Demand(self.ports[name], ps, op.recovery_of(name), transfers)

    def _transfers(
        self, op: PricedOp, accesses: Iterable[DeviceAccess]
    ) -> tuple[DeviceTransfer, ...]:
        return tuple(DeviceTransfer(self.devices[access.port], access) for access in accesses)

    def _compute_part(self) -> _Part:
        def enter(tile: HeldTile) -> Iterable[Instruction]:
            yield Take(self._channel("tile", tile.stage))

        def leave(tile: HeldTile) -> Iterable[Instruction]:
            what = "results" if tile.stage in self.emptied else "free slot"
            yield Put(self._channel(what, tile.stage))

        return _Part(lambda step: self._issue(step.op), enter, leave)

    def _loader_part(self, stage: Stage) -> _Part:
        def enter(tile: HeldTile) -> Iterable[Instruction]:
            if tile.stage == stage:
                yield Take(self._channel("free slot", stage))
                yield from self._issue(tile.load)
                yield Put(self._channel("tile", stage))
                yield from (Put(self._channel("tile", stage, inner)) for inner in tile.inner)
            elif stage in tile.inner:
                yield Take(self._channel("tile", tile.stage, stage))

        return _Part(_nothing, enter, _nothing)

    def _storer_part(self, stage: Stage) -> _Part:
        def leave(tile: HeldTile) -> Iterable[Instruction]:
            if tile.stage == stage:
                yield Take(self._channel("results", stage))
                for inner in tile.inner:
                    if inner in self.emptied:
                        yield Take(self._channel("emptied tile", stage, inner))
                yield from self._issue(tile.store)
                yield Put(self._channel("free slot", stage))
            elif stage in tile.inner:
                yield Put(self._channel("emptied tile", tile.stage, stage))

        return _Part(_nothing, _nothing, leave)


class _Writer:
    """Writes the script of one process: the schedule seen through its part."""

    def __init__(self, author: _Author, name: str, rank: int, part: _Part) -> None:
        self.author = author
        self.part = part
        self.process = Process(name, rank, author.world)
        self.enclosing: list[LoopUse] = []

    def write(self) -> Process:
        self._steps(self.author.schedule.body)
        depths = [i.level for i in self.process.script if isinstance(i, EndOfLoop)]
        self.process.counters = [0] * (max(depths, default=-1) + 1)
        return self.process

    def _steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            match step:
                case ComputeStep():
                    self._add(self.part.compute(step))
                case HeldTile():
                    self._add(self.part.enter(step))
                    self._steps(step.body)
                    self._add(self.part.leave(step))
                case Loop():
                    self._loop(step)

    def _add(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            self.process.script.append(instruction)
            for use in self.enclosing:
                _note_use(use, instruction)

    def _loop(self, loop: Loop) -> None:
        script, level = self.process.script, len(self.enclosing)
        first = len(script)
        use = self.author.loops.setdefault(loop.number, LoopUse(loop, level))
        self.enclosing.append(use)
        self._steps(loop.body)
        self.enclosing.pop()
        if len(script) == first:
            return
        use.members.append(Membership(self.process, first, len(script)))
        watcher = self.author.watcher if self.process.rank == FIRST_RANK else None
        watch = watcher.watcher_of(loop) if watcher else None
        script.append(EndOfLoop(level, first, loop.count, watch))


def _note_use(use: LoopUse, instruction: Instruction) -> None:
    match instruction:
        case Issue(ports=ports, transfers=transfers):
            use.unsteady = use.unsteady or bool(transfers)
            use.ports |= dict.fromkeys(port for port, *_ in ports)
        case Ask(demands=demands):
            use.unsteady = use.unsteady or any(demand.transfers for demand in demands)
            use.ports |= dict.fromkeys(demand.port for demand in demands)
        case Put(channel) | Take(channel):
            use.channels[channel] = None


def _emptied_stages(steps: tuple[Step, ...]) -> set[Stage]:
    """Stages with a store, or with an inner stage that has one."""
    found: set[Stage] = set()
    for step in steps:
        match step:
            case HeldTile():
                found |= _emptied_stages(step.body)
                if step.store is not None or found.intersection(step.inner):
                    found.add(step.stage)
            case Loop():
                found |= _emptied_stages(step.body)
            case ComputeStep():
                pass
    return found

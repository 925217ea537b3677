"""Processes of the event simulation: what they do, step by step, and what they wait for.

Every actor of a simulated program (the compute unit's control, one loader and one storer per
stage) is a process that runs a flat script of four instructions: ``Issue`` an operation on its
ports, ``Put`` a token into a channel, ``Take`` one out of it, and the ``EndOfLoop`` that jumps
back. A token is a time: "a tile is there (or a slot is free, or results are complete) from
then on".

A plain port is a first-in first-out server whose service times are known when they are
requested, so its whole queue is one number, the time at which it is free (``sim/arbiter.py`` has
ports that decide themselves whom they serve next). Hence the only thing that has to
happen in the order of time is requesting ports: each ``Issue`` is one SimPy event. What lies
between (tokens) is arithmetic on clocks that every process keeps for itself, done as soon as
the numbers are known. Requests at the same time are served in the order of the processes'
ranks; ``rank`` is SimPy's event priority, so nothing depends on the order in which events
were created.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Protocol, cast

import simpy
from simpy.events import EventPriority

from sim.schedule import PricedOp

#: SimPy's own priorities are 0 (it starts processes with that) and 1.
FIRST_RANK = 2


class Wake(simpy.Event):
    """Resumes one process; unlike a timeout it is ranked and may be scheduled after creation."""

    def __init__(self, env: simpy.Environment) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None

    def schedule(self, rank: int, delay_ps: int) -> None:
        if delay_ps < 0:
            raise ValueError(f"an event {-delay_ps} ps in the past")
        self.env.schedule(self, EventPriority(rank), delay_ps)


@dataclass(slots=True, eq=False)
class World:
    """Simulated time: SimPy's clock plus what was skipped."""

    env: simpy.Environment
    skipped_ps: int = 0

    def now_ps(self) -> int:
        return int(self.env.now) + self.skipped_ps


@dataclass(slots=True, eq=False)
class Port:
    """A resource that serves one request at a time, in the order of the requests."""

    name: str
    free_ps: int = 0

    def state(self, now_ps: int) -> object:
        """All that the future depends on, relative to now: times that have passed are now."""
        return max(self.free_ps - now_ps, 0)

    def skip(self, span_ps: int) -> None:
        """Move on in time."""
        self.free_ps += span_ps


@dataclass(slots=True, eq=False)
class Channel:
    """Tokens on their way from one process to another. ``meaning`` says what one stands for."""

    meaning: str
    tokens_ps: deque[int] = field(default_factory=deque)
    waiting: Process | None = None


class Transfer(Protocol):
    """A tile that a memory moves which is simulated in detail."""

    @property
    def port_name(self) -> str: ...

    def move(self, ready_ps: int) -> tuple[int, int, int]:
        """When the bus is there for it, when it has done it, and when the data is there."""
        ...

    def shown(self, span_ps: tuple[int, int]) -> tuple[int, int]:
        """What to draw of the last move, from and until when."""
        ...


class UnderWay(Protocol):
    """An operation that waits for ports that decide whom they serve: see ``sim/arbiter.py``."""

    admitted: int
    waiting: int
    done_ps: int

    def skip(self, span_ps: int) -> None:
        """Move on in time."""
        ...


class Instruction(Protocol):
    """One step of a script."""

    def step(self, process: Process) -> bool:
        """Do it and go to the next instruction; False if the process has to wait here."""
        ...


@dataclass(slots=True, eq=False)
class Process:
    """An actor: script, position in it, and its clock.

    ``time_ps`` is when it can do its next step, ``finish_ps`` when the results of all that it
    has issued are complete. It rests at an ``Issue``, to be woken at ``wake_ps``, or at a
    ``Take`` from an empty channel (``wake_ps`` is None), or with an operation ``under_way``.
    """

    name: str
    rank: int
    world: World
    script: list[Instruction] = field(default_factory=list)
    counters: list[int] = field(default_factory=list)
    position: int = 0
    time_ps: int = 0
    finish_ps: int = 0
    wake: Wake = field(init=False)
    wake_ps: int | None = None
    under_way: UnderWay | None = None

    def life(self) -> Generator[simpy.Event, None, None]:
        env, script = self.world.env, self.script
        self.wake = Wake(env)
        self.advance()
        while not self.finished:
            yield self.wake
            operation = cast(Operation, script[self.position])
            self.wake, self.wake_ps = Wake(env), None
            if operation.begin(self):
                self.advance()

    def advance(self) -> None:
        """All steps up to where it has to rest. Called by itself or by who sends it a token."""
        script = self.script
        end = len(script)
        while self.position < end and script[self.position].step(self):
            pass

    @property
    def finished(self) -> bool:
        return self.position >= len(self.script)

    def wake_at(self, time_ps: int) -> None:
        self.wake_ps = time_ps
        self.wake.schedule(self.rank, time_ps - self.world.now_ps())

    def reschedule(self) -> None:
        """Keep the simulated time of a pending wake although time was skipped meanwhile."""
        if self.wake_ps is None:
            return
        stale, self.wake = self.wake, Wake(self.world.env)
        self.wake.callbacks, stale.callbacks = stale.callbacks, []
        self.wake_at(self.wake_ps)


class Operation(Protocol):
    """An instruction that asks for ports."""

    def begin(self, process: Process) -> bool:
        """What happens when the time has come; False if the process has to wait for ports."""
        ...


#: Called with the process (its ``time_ps`` is when all ports are done), the operation,
#: when it was issued and what each port did: [(port, start_ps, end_ps)].
IssueListener = Callable[[Process, PricedOp, int, list[tuple[str, int, int]]], None]


@dataclass(frozen=True, slots=True, eq=False)
class Issue:
    """Request every port at once; go on when all have served, results the latency later.

    ``ports`` are (port, how long it serves, how long it then is not ready for others), and
    ``transfers`` what is asked of memories that say themselves how long it takes.
    """

    op: PricedOp
    ports: tuple[tuple[Port, int, int], ...]
    listener: IssueListener | None
    transfers: tuple[Transfer, ...] = ()

    def step(self, process: Process) -> bool:
        process.wake_at(process.time_ps)
        return False

    def begin(self, process: Process) -> bool:
        issued = done = process.time_ps
        for port, busy_ps, recovery_ps in self.ports:
            start = port.free_ps
            if start < issued:
                start = issued
            end = start + busy_ps
            port.free_ps = end + recovery_ps
            if end > done:
                done = end
        moved, drawn = [], []
        for transfer in self.transfers:
            moved.append(transfer.move(issued))
            drawn.append((transfer.port_name, *transfer.shown(moved[-1][:2])))
        process.time_ps = done = max([done, *(end for _, end, _ in moved)])
        there = max([done, *(there for _, _, there in moved)])
        if there + self.op.latency_ps > process.finish_ps:
            process.finish_ps = there + self.op.latency_ps
        process.position += 1
        if self.listener is not None:
            served = [
                (port.name, port.free_ps - recovery - busy, port.free_ps - recovery)
                for port, busy, recovery in self.ports
            ]
            served += drawn
            self.listener(process, self.op, issued, served)
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Put:
    """Send a token that is valid when everything issued so far is complete."""

    channel: Channel

    def step(self, process: Process) -> bool:
        process.position += 1
        time, finish = process.time_ps, process.finish_ps
        channel = self.channel
        channel.tokens_ps.append(finish if finish > time else time)
        if channel.waiting is not None:
            receiver, channel.waiting = channel.waiting, None
            receiver.advance()
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Take:
    """Receive a token: wait until there is one, then until its time."""

    channel: Channel

    def step(self, process: Process) -> bool:
        channel = self.channel
        if not channel.tokens_ps:
            channel.waiting = process
            return False
        token = channel.tokens_ps.popleft()
        if token > process.time_ps:
            process.time_ps = token
        process.position += 1
        return True


@dataclass(frozen=True, slots=True, eq=False)
class EndOfLoop:
    """Count the iteration; back to the first instruction of the body unless it was the last.

    ``level`` is the loop's depth, which is where its process counts it. ``watch`` (only for
    the process whose iterations are watched) is called between two iterations.
    """

    level: int
    first: int
    count: int
    watch: Callable[[Process], None] | None

    def step(self, process: Process) -> bool:
        counters = process.counters
        counters[self.level] += 1
        if counters[self.level] == self.count:
            counters[self.level] = 0
            process.position += 1
            return True
        process.position = self.first
        if self.watch is not None:
            self.watch(process)
        return True

"""Processes of the event simulation: what they do, step by step, and what they wait for.

Every actor of a simulated program (the compute unit's control, one loader and one storer per
stage) is a process that runs a flat script of four instructions: ``Issue`` an operation on its
ports, ``Put`` a token into a channel, ``Take`` one out of it, and the ``EndOfLoop`` that jumps
back. A token is a time: "a tile is there (or a slot is free, or results are complete) from
then on".

A port is a first-in first-out server whose service times are known when they are requested, so
its whole queue is one number, the time at which it is free. A process keeps its own clock and
lets simulated time catch up only before it requests a port; therefore requests are made in the
order of time, and nearly every operation costs one SimPy event. At equal times the process of
lower rank goes first; ``rank`` is SimPy's event priority, so nothing depends on the order in
which events were created.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import simpy
from simpy.events import EventPriority

#: SimPy's own priorities are 0 (it starts processes with that) and 1.
FIRST_RANK = 2


class Wake(simpy.Event):
    """Wakes one process; unlike a timeout it is ranked and may be scheduled after creation."""

    def __init__(self, env: simpy.Environment) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None

    def schedule(self, rank: int, delay_ps: int) -> None:
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


@dataclass(slots=True, eq=False)
class Channel:
    """Tokens on their way from one process to another. ``meaning`` says what one stands for."""

    meaning: str
    tokens_ps: deque[int] = field(default_factory=deque)
    waiting: Process | None = None


class Instruction(Protocol):
    """One step of a script: does it and returns None, or returns what to wait for first."""

    def run(self, process: Process) -> simpy.Event | None: ...

    def waits_for(self) -> str:
        """For people who read about a deadlock."""
        ...


@dataclass(slots=True, eq=False)
class Process:
    """An actor: script, position in it, and its clock.

    ``time_ps`` is when it can do its next step, ``finish_ps`` when the results of all that it
    has issued are complete. ``wake_ps`` is when the pending ``wake`` happens (None: it waits
    for a token that nobody has sent yet).
    """

    name: str
    rank: int
    world: World
    script: list[Instruction] = field(default_factory=list)
    counters: list[int] = field(default_factory=list)
    position: int = 0
    time_ps: int = 0
    finish_ps: int = 0
    wake: Wake | None = None
    wake_ps: int | None = None

    def life(self) -> Generator[simpy.Event, None, None]:
        script = self.script
        end = len(script)
        while self.position < end:
            event = script[self.position].run(self)
            if event is not None:
                yield event
        self.wake = self.wake_ps = None

    @property
    def finished(self) -> bool:
        return self.position >= len(self.script)

    def sleep(self) -> Wake:
        """The event to wait for before anything may happen at ``time_ps``."""
        self.wake = Wake(self.world.env)
        self.wake_at(self.time_ps)
        return self.wake

    def wait(self) -> Wake:
        """The event to wait for until somebody calls ``wake_at``."""
        self.wake, self.wake_ps = Wake(self.world.env), None
        return self.wake

    def wake_at(self, time_ps: int) -> None:
        assert self.wake is not None
        self.wake_ps = time_ps
        self.wake.schedule(self.rank, time_ps - self.world.now_ps())

    def reschedule(self) -> None:
        """Keep the simulated time of a pending wake although time was skipped meanwhile."""
        if self.wake is None or self.wake_ps is None:
            return
        stale, self.wake = self.wake, Wake(self.world.env)
        self.wake.callbacks, stale.callbacks = stale.callbacks, []
        self.wake_at(self.wake_ps)


#: Called with (process, operation name, issued_ps, [(port, start_ps, end_ps)], complete_ps).
IssueListener = Callable[[Process, str, int, list[tuple[str, int, int]], int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Issue:
    """Request every port at once; go on when all have served, results ``latency_ps`` later."""

    name: str
    ports: tuple[tuple[Port, int], ...]
    latency_ps: int

    def run(self, process: Process) -> simpy.Event | None:
        time = process.time_ps
        if time > process.world.now_ps():
            return process.sleep()
        done = time
        for port, busy_ps in self.ports:
            start = port.free_ps
            if start < time:
                start = time
            port.free_ps = end = start + busy_ps
            if end > done:
                done = end
        self._advance(process, done)
        return None

    def _advance(self, process: Process, done_ps: int) -> None:
        process.time_ps = done_ps
        process.finish_ps = max(process.finish_ps, done_ps + self.latency_ps)
        process.position += 1

    def waits_for(self) -> str:
        return f"the time to {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class ObservedIssue(Issue):
    """As ``Issue``, and tells a listener."""

    listener: IssueListener

    def run(self, process: Process) -> simpy.Event | None:
        issued = process.time_ps
        event = Issue.run(self, process)
        if event is None:
            served = [(port.name, port.free_ps - ps, port.free_ps) for port, ps in self.ports]
            complete = process.time_ps + self.latency_ps
            self.listener(process, self.name, issued, served, complete)
        return event


@dataclass(frozen=True, slots=True, eq=False)
class Put:
    """Send a token that is valid when everything issued so far is complete."""

    channel: Channel

    def run(self, process: Process) -> simpy.Event | None:
        token = max(process.time_ps, process.finish_ps)
        self.channel.tokens_ps.append(token)
        receiver = self.channel.waiting
        if receiver is not None:
            self.channel.waiting = None
            receiver.wake_at(max(token, receiver.time_ps))
        process.position += 1
        return None

    def waits_for(self) -> str:
        return "nothing"


@dataclass(frozen=True, slots=True, eq=False)
class Take:
    """Receive a token: wait until there is one, then until its time."""

    channel: Channel

    def run(self, process: Process) -> simpy.Event | None:
        if not self.channel.tokens_ps:
            self.channel.waiting = process
            return process.wait()
        token = self.channel.tokens_ps.popleft()
        process.time_ps = max(process.time_ps, token)
        process.position += 1
        return None

    def waits_for(self) -> str:
        return self.channel.meaning


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

    def run(self, process: Process) -> simpy.Event | None:
        counters = process.counters
        counters[self.level] += 1
        if counters[self.level] == self.count:
            counters[self.level] = 0
            process.position += 1
            return None
        process.position = self.first
        if self.watch is not None:
            self.watch(process)
        return None

    def waits_for(self) -> str:
        return "nothing"


def stuck(processes: Iterator[Process]) -> str:
    """Who waits for what, one process per line."""
    return "\n".join(
        f"{p.name} waits for {p.script[p.position].waits_for()}"
        for p in processes
        if not p.finished
    )

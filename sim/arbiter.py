"""Ports with an arbiter and a queue: who is served next, and who is held back.

A plain port's queue is one number (``sim/process.py``). A port that serves by priority, in turns,
or that lets only so many requests wait, has to decide when it becomes free: that decision is an
event of its own, after all requests of the same time.

An operation that needs such a port asks its ports one after the other, in the order in which
data passes. It enters the queue of each at once if there is room; if not, it is *held back*
there, in the order of arrival, and asks the ports behind it only when it has been let in.
Meanwhile it keeps what it has got: its places in queues, and every port that serves it, even if
it has no more work for that port. So who waits behind a full queue blocks others where it stands
(head-of-line blocking, as a worm does in a network). Once it has been let in everywhere, each
port is free when its work is done. The operation is over when all ports have served it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from arch.spec import Arbiter
from sim.process import IssueListener, Port, Process, Transfer, Wake, World
from sim.schedule import PricedOp


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What an operation asks of one port: how long it serves, how long it then is not ready for
    others; or ``transfers`` of a memory that says itself how long it takes."""

    port: Port
    busy_ps: int
    recovery_ps: int
    transfers: tuple[Transfer, ...] = ()

    def serve(self, asked_ps: int, now_ps: int) -> tuple[int, int, int]:
        """Begin and end, and when the data is there. Asked for at one time, begun at another."""
        if self.transfers:
            moved = [transfer.move(asked_ps) for transfer in self.transfers]
            start, end = moved[0][0], max(end for _, end, _ in moved)
            self.port.free_ps = end
            return start, end, max(there for *_, there in moved)
        start = max(self.port.free_ps, now_ps)
        end = start + self.busy_ps
        self.port.free_ps = end + self.recovery_ps
        return start, end, 0


@dataclass(slots=True, eq=False)
class Request:
    """An operation under way through its ports.

    ``admitted`` of its demands have been let in; of these ``waiting`` have not been served yet.
    """

    process: Process
    ask: Ask
    admitted: int = 0
    waiting: int = 0
    done_ps: int = 0
    there_ps: int = 0
    served: dict[str, tuple[int, int]] = field(default_factory=dict)

    def admit(self, now_ps: int) -> None:
        """Into as many ports as there is room in, in order."""
        demands = self.ask.demands
        while self.admitted < len(demands):
            demand = demands[self.admitted]
            if not isinstance(demand.port, ArbitratedPort):
                self.note(demand, demand.serve(now_ps, now_ps))
            elif demand.port.enter(Waiting(self, demand, now_ps)):
                self.waiting += 1
            else:
                return
            self.admitted += 1
        for demand in demands:
            if isinstance(demand.port, ArbitratedPort) and demand.port.holder is self:
                self._let_go(demand.port, now_ps)

    def _let_go(self, port: ArbitratedPort, now_ps: int) -> None:
        start, end = self.served[port.name]
        if end < now_ps:
            self.served[port.name] = (start, now_ps)
        port.release(now_ps)
        self.done_ps = max(self.done_ps, now_ps)

    def note(self, demand: Demand, times_ps: tuple[int, int, int]) -> None:
        start, end, there = times_ps
        span = (start, end)
        for transfer in demand.transfers[-1:]:
            span = transfer.shown(span)
        self.served[demand.port.name] = span
        self.done_ps = max(self.done_ps, end)
        self.there_ps = max(self.there_ps, there)

    def skip(self, span_ps: int) -> None:
        self.done_ps += span_ps
        self.there_ps += span_ps
        self.served = {
            port: (start + span_ps, end + span_ps) for port, (start, end) in self.served.items()
        }

    @property
    def let_in(self) -> bool:
        return self.admitted == len(self.ask.demands)

    @property
    def over(self) -> bool:
        return self.let_in and self.waiting == 0


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A place in a queue."""

    request: Request
    demand: Demand
    since_ps: int


#: From the ranks of those who wait, in order of arrival, to the position of the one that goes.
Policy = Callable[["ArbitratedPort", list[int]], int]


def _first(port: ArbitratedPort, ranks: list[int]) -> int:
    return 0


def _most_important(port: ArbitratedPort, ranks: list[int]) -> int:
    return min(range(len(ranks)), key=lambda place: port.importance[ranks[place]])


def _next_in_turn(port: ArbitratedPort, ranks: list[int]) -> int:
    """The next higher rank after the one that was served last, round about."""
    return min(range(len(ranks)), key=lambda place: (ranks[place] <= port.last, ranks[place]))


POLICIES: Mapping[str, Policy] = {
    "fifo": _first,
    "priority": _most_important,
    "round_robin": _next_in_turn,
}


def importance(arbiter: Arbiter, process: str) -> int:
    """The place of a process in the order of kinds, by its name; those left out come last."""
    kind = process.partition(" ")[0]
    return arbiter.order.index(kind) if kind in arbiter.order else len(arbiter.order)


@dataclass(slots=True, eq=False)
class ArbitratedPort(Port):
    """``rank`` is its place among events of one time, after all processes. ``importance`` of each
    process by rank, the least goes first. ``last`` was served last (-1: nobody yet). ``holder``
    keeps the port although it may have served it: it has not been let in everywhere."""

    world: World = field(kw_only=True)
    arbiter: Arbiter = field(kw_only=True)
    rank: int = 0
    importance: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    last: int = -1
    queue: list[Waiting] = field(default_factory=list)
    held_back: deque[Request] = field(default_factory=deque)
    holder: Request | None = None
    grant: Wake | None = None
    grant_ps: int | None = None

    def state(self, now_ps: int) -> tuple[object, ...]:
        """All that the future depends on, relative to now."""
        kept = None if self.holder is None else self.holder.process
        waiting = tuple(place.request.process for place in self.queue)
        return (
            max(self.free_ps - now_ps, 0),
            self.last,
            kept,
            waiting,
            tuple(request.process for request in self.held_back),
        )

    def skip(self, span_ps: int) -> None:
        """Move on; a planned decision moves with the clock."""
        self.free_ps += span_ps
        if self.grant_ps is not None:
            self.grant_ps += span_ps

    @property
    def is_full(self) -> bool:
        return self.arbiter.queue is not None and len(self.queue) >= self.arbiter.queue

    def enter(self, place: Waiting) -> bool:
        """False: the queue is full, the request is held back."""
        if self.is_full:
            self.held_back.append(place.request)
            return False
        self.queue.append(place)
        self._plan()
        return True

    def release(self, now_ps: int) -> None:
        self.holder = None
        self.free_ps = max(self.free_ps, now_ps)
        self._plan()

    def _plan(self) -> None:
        """Decide when the port is free."""
        if self.queue and self.holder is None and self.grant_ps is None:
            self.decide_at(max(self.free_ps, self.world.now_ps()))

    def decide_at(self, time_ps: int) -> None:
        self.grant_ps = time_ps
        self.grant = Wake(self.world.env)
        self.grant.callbacks = [lambda event: self._decide()]
        self.grant.schedule(self.rank, time_ps - self.world.now_ps())

    def reschedule(self) -> None:
        """Keep the time of the decision although time was skipped meanwhile."""
        if self.grant is not None and self.grant_ps is not None:
            self.grant.callbacks = []
            self.decide_at(self.grant_ps)

    def _decide(self) -> None:
        now = self.world.now_ps()
        self.grant = self.grant_ps = None
        choose = POLICIES[self.arbiter.policy]
        place = self.queue.pop(choose(self, [w.request.process.rank for w in self.queue]))
        request = place.request
        self.last = request.process.rank
        request.waiting -= 1
        request.note(place.demand, place.demand.serve(place.since_ps, now))
        self.holder = None if request.let_in else request
        while self.held_back and not self.is_full:
            self.held_back.popleft().admit(now)
        self._plan()
        if request.over:
            request.ask.end(request)
            request.process.advance()


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """The instruction: as ``Issue``, for an operation that needs an arbitrated port."""

    op: PricedOp
    demands: tuple[Demand, ...]
    listener: IssueListener | None

    def step(self, process: Process) -> bool:
        process.wake_at(process.time_ps)
        return False

    def begin(self, process: Process) -> bool:
        """An arbiter decides later at this time, so the process has to wait."""
        request = Request(process, self, done_ps=process.time_ps)
        process.under_way = request
        request.admit(process.time_ps)
        return False

    def end(self, request: Request) -> None:
        """All ports have served it."""
        process = request.process
        issued, process.under_way = process.time_ps, None
        process.time_ps = request.done_ps
        there = max(request.done_ps, request.there_ps) + self.op.latency_ps
        process.finish_ps = max(process.finish_ps, there)
        process.position += 1
        if self.listener is not None:
            served = [(port, *span) for port, span in request.served.items()]
            self.listener(process, self.op, issued, served)

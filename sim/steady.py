"""Skip-ahead: a loop that has settled into a steady state is not simulated to its end.

Between two iterations of a loop of the compute process, the state of everything that the loop
can touch is compared with earlier iterations. The state is all that the future depends on:
where each process is (in the loop, relative to the compute process) and, relative to now, its
clock, the tokens under way, when each port is free and who waits there; times that have passed
are equal to now, since nothing can happen earlier. When the state repeats after P iterations and T
picoseconds, so will everything that followed it, and m whole periods are skipped: counters move
by m*P, times by m*T. It is exact because m is limited so that

- no process in the loop comes to the loop's end, which it would notice, and
- no process elsewhere in the program (none of which has moved during the period) is due to
  wake up, and no arbiter elsewhere to decide.

What does not take part keeps its times, for example a long transfer that is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sim.arbiter import ArbitratedPort
from sim.process import Process, World
from sim.schedule import Loop
from sim.scripts import Cast, LoopUse

#: Loops of fewer iterations are simulated: nothing would be left to skip.
FEWEST_ITERATIONS = 4

#: Iterations looked at in a row before pausing, so that loops that never settle cost little.
PATIENCE = 64
#: After that, this many in a row out of every ``PATIENCE``.
SAMPLE = 8
#: States remembered of one loop.
MEMORY = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """``iterations`` of ``loop`` that took ``span_ps`` were not simulated.

    Each port and process (by name) that takes part repeats what it did, from the time given
    for it to ``span_ps`` later.
    """

    loop: Loop
    iterations: int
    span_ps: int
    port_from_ps: dict[str, int]
    process_from_ps: dict[str, int]


SkipListener = Callable[[Skip], None]

State = tuple[object, ...]


class SteadyState:
    """Watches the loops of one simulation."""

    def __init__(
        self, world: World, listener: SkipListener | None, window_ps: tuple[int, int]
    ) -> None:
        self.world = world
        self.listener = listener
        self.window_ps = window_ps
        self.watches: dict[int, _LoopWatch] = {}

    def watcher_of(self, loop: Loop) -> Callable[[Process], None] | None:
        if loop.count < FEWEST_ITERATIONS:
            return None
        self.watches[loop.number] = _LoopWatch(self.world, self.listener, self.window_ps)
        return self.watches[loop.number].between_iterations

    def watch(self, cast: Cast) -> None:
        """To be called once all scripts are written."""
        for number, watch in self.watches.items():
            watch.use = cast.loops[number]
            watch.active = not watch.use.unsteady
            taking_part = {member.process for member in watch.use.members}
            watch.others = tuple(p for p in cast.processes if p not in taking_part)
            watch.deciding = tuple(
                port
                for port in cast.ports.values()
                if isinstance(port, ArbitratedPort) and port not in watch.use.ports
            )


@dataclass(slots=True, eq=False)
class _LoopWatch:
    world: World
    listener: SkipListener | None
    window_ps: tuple[int, int]
    use: LoopUse = field(init=False)
    others: tuple[Process, ...] = ()
    #: arbitrated ports that the loop does not use
    deciding: tuple[ArbitratedPort, ...] = ()
    active: bool = True
    #: state -> (iteration, time) in the current run of the loop
    seen: dict[State, tuple[int, int]] = field(default_factory=dict)

    def between_iterations(self, compute: Process) -> None:
        if not self.active:
            return
        iteration = compute.counters[self.use.level]
        if iteration == 1 or len(self.seen) == MEMORY:
            self.seen.clear()
        if iteration > PATIENCE and iteration % PATIENCE >= SAMPLE:
            return
        now = self.world.now_ps()
        inside, state = self._state(compute, now)
        earlier = self.seen.get(state)
        self.seen[state] = (iteration, now)
        if earlier is not None:
            period, span = iteration - earlier[0], now - earlier[1]
            times = self._periods(inside, period, span, now)
            if times > 0:
                self._skip(inside, times * period, times * span)
                self.seen.clear()
                self.seen[state] = (iteration + times * period, now + times * span)

    def _state(self, compute: Process, now: int) -> tuple[list[Process], State]:
        """The processes in the loop, and the state."""
        level = self.use.level
        iteration = compute.counters[level]
        inside: list[Process] = []
        state: list[object] = []
        for member in self.use.members:
            p = member.process
            counters = p.counters.copy()
            if member.first <= p.position <= member.last:
                inside.append(p)
                counters[level] -= iteration
                state.append(max(p.time_ps - now, 0))
                state.append(max(p.finish_ps - now, 0))
                if p.under_way is not None:
                    state.append(max(p.under_way.done_ps - now, 0))
            state.append((p.position, *_progress(p), *counters))
        state.extend((p.position, *_progress(p), *p.counters) for p in self.others)
        for channel in self.use.channels:
            state.append(tuple([max(token - now, 0) for token in channel.tokens_ps]))
        state.extend(port.state(now) for port in self.use.ports)
        return inside, tuple(state)

    def _periods(self, inside: list[Process], period: int, span: int, now: int) -> int:
        level, last = self.use.level, self.use.loop.count - 1
        times = min((last - p.counters[level]) // period for p in inside)
        begin, end = self.window_ps
        if now < end and span > 0:
            times = min(times, max(begin - now, 0) // span)
        due = [p.wake_ps for p in self._outside(inside)] + [port.grant_ps for port in self.deciding]
        for time_ps in due:
            if time_ps is not None and span > 0:
                times = min(times, (time_ps - now - 1) // span)
        return times

    def _outside(self, inside: list[Process]) -> list[Process]:
        candidates = [member.process for member in self.use.members]
        return [p for p in (*candidates, *self.others) if p not in inside]

    def _skip(self, inside: list[Process], iterations: int, span: int) -> None:
        if self.listener is not None:
            self.listener(
                Skip(
                    loop=self.use.loop,
                    iterations=iterations,
                    span_ps=span,
                    port_from_ps={port.name: port.free_ps for port in self.use.ports},
                    process_from_ps={p.name: p.time_ps for p in inside},
                )
            )
        for p in inside:
            p.counters[self.use.level] += iterations
            p.time_ps += span
            p.finish_ps += span
            if p.wake_ps is not None:
                p.wake_ps += span
            if p.under_way is not None:
                p.under_way.skip(span)
        for channel in self.use.channels:
            for position in range(len(channel.tokens_ps)):
                channel.tokens_ps[position] += span
        for port in self.use.ports:
            port.skip(span)
        self.world.skipped_ps += span
        for p in self._outside(inside):
            p.reschedule()
        for port in self.deciding:
            port.reschedule()


def _progress(process: Process) -> tuple[int, ...]:
    """Through the ports of an operation that waits for them."""
    under_way = process.under_way
    return () if under_way is None else (under_way.admitted, under_way.waiting)

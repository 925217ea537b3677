"""The event engine: runs a schedule on SimPy and says how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import simpy

from sim.arbiter import ArbitratedPort
from sim.deadlock import Jam, deadlock
from sim.engines import Simulated
from sim.process import IssueListener, World
from sim.schedule import Schedule
from sim.scripts import Cast, write_scripts
from sim.steady import SkipListener, SteadyState


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Who is told what happens, for traces and tests."""

    issue: IssueListener
    skip: SkipListener


def simulate(
    schedule: Schedule,
    *,
    skip_ahead: bool = True,
    listeners: Listeners | None = None,
    window_ps: tuple[int, int] = (0, 0),
) -> int:
    """Picoseconds until all is done.

    ``skip_ahead`` changes nothing but the time that the simulation takes. In the window (from,
    up to) nothing is skipped, so that listeners see all of it.
    """
    env = simpy.Environment()
    world = World(env)
    steady = (
        SteadyState(world, listeners.skip if listeners else None, window_ps) if skip_ahead else None
    )
    cast = write_scripts(schedule, world, steady, listeners.issue if listeners else None)
    if steady is not None:
        steady.watch(cast)
    for process in cast.processes:
        env.process(process.life())
    env.run()
    if not all(process.finished for process in cast.processes):
        raise deadlock(cast.processes, jams(cast))
    return max(max(p.time_ps, p.finish_ps) for p in cast.processes)


def jams(cast: Cast) -> Iterator[Jam]:
    """Who waits at ports that have an arbiter."""
    for port in cast.ports.values():
        if isinstance(port, ArbitratedPort):
            yield Jam(
                port=port.name,
                keeper=None if port.holder is None else port.holder.process,
                queued=[place.request.process for place in port.queue],
                held_back=[request.process for request in port.held_back],
            )


def run_schedule(schedule: Schedule, watched_port: str | None) -> Simulated:
    """As an engine of ``sim.engines``. It does not account for idle ports."""
    return Simulated(latency_ps=simulate(schedule))

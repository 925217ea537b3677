"""Why the event model's latency is more than the analytical one's, in parts that add up to it.

The analytical latency is what the busiest port needs for its work (or, if longer, the round
trips of the loads through some buffer's slots). In the simulation the same port is idle at
times, and each idle picosecond has a cause:

- ``fill``: nothing had reached it yet; ``drain``: its work was done, but not that of others.
- ``latency``: whoever uses it next waited for a memory's or a unit's latency.
- ``dependence``: it waited for other work to be done first, elsewhere.
- ``contention``: that other work waited in turn for a port that served others.
- ``back_pressure``: whoever uses it next was held back by a full queue, or the port was kept by
  somebody who was.
- ``row_miss``, ``refresh``, ``bus_turnaround``, ``bank_group``: of a DRAM that is simulated in
  detail; a row had to be opened, banks were refreshed, reads followed writes (or the other way
  round, or another rank), consecutive bursts came from one bank group.
- ``burst_padding``, ``channel_imbalance``: likewise; it moved bytes that nobody had asked for,
  since bursts are moved as a whole; channels with fewer bursts of a tile waited for the others.
- ``bank_conflict``: of a memory with several banks, some of which had nothing to do while others
  had: accesses that touch few banks, or meet in one.
- ``turnaround``: it had to turn around between two tiles that stay in a compute unit.
- ``rounding``: each request takes whole picoseconds, the analytical total is rounded once.

What a cause has in common with the round trips is not counted again.
"""

from __future__ import annotations

from sim.engines import Simulated
from sim.estimate import Estimate
from sim.schedule import Schedule
from sim.schedule import busy_ps as total_busy_ps
from sim.schedule import paused_ps as total_paused_ps

#: In the order in which they are shown, and in which round trips are taken off.
CAUSES = (
    "latency",
    "dependence",
    "contention",
    "back_pressure",
    "fill",
    "drain",
    "row_miss",
    "refresh",
    "bus_turnaround",
    "bank_group",
    "burst_padding",
    "channel_imbalance",
    "bank_conflict",
    "turnaround",
    "rounding",
)


def busiest_port(estimate: Estimate) -> str | None:
    """Of several the first."""
    return max(estimate.busy_ps, key=lambda port: estimate.busy_ps[port], default=None)


def causes(simulated: Simulated, schedule: Schedule, quick: Estimate) -> dict[str, int]:
    """``schedule`` is what was simulated, ``quick`` the analytical estimate of it."""
    port, busy_ps = busiest_port(quick), total_busy_ps(schedule.body)
    paused_ps = 0 if port is None else total_paused_ps(schedule.body, port)
    working = 0 if port is None else busy_ps[port]
    if simulated.working_ps is not None:
        working = simulated.working_ps
    needed = 0 if port is None else quick.busy_ps[port]
    lost = dict.fromkeys(CAUSES, 0) | dict(simulated.lost_ps)
    rest = simulated.latency_ps - working - sum(simulated.lost_ps.values())
    lost[simulated.slower_by] = working - needed
    lost["turnaround"] = min(paused_ps, rest)  # nothing waits for the last one
    lost["drain"] = rest - lost["turnaround"]
    round_trips = quick.latency_ps - needed
    for cause in CAUSES:
        known = min(lost[cause], round_trips)
        lost[cause] -= known
        round_trips -= known
    return {cause: ps for cause, ps in lost.items() if ps}

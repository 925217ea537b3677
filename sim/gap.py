"""Why the event model's latency is more than the analytical one's, in parts that add up to it.

The analytical latency is what the busiest port needs for its work (or, if longer, the round
trips of the loads through some buffer's slots). In the simulation the same port is idle at
times, and each idle picosecond has a cause:

- ``fill``: nothing had reached it yet; ``drain``: its work was done, but not that of others.
- ``latency``: whoever uses it next waited for a memory's or a unit's latency.
- ``dependence``: it waited for other work to be done first, elsewhere.
- ``contention``: that other work waited in turn for a port that served others.
- ``rounding``: each request takes whole picoseconds, the analytical total is rounded once.

What a cause has in common with the round trips is not counted again.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.engines import Simulated
from sim.estimate import Estimate

#: In the order in which they are shown, and in which round trips are taken off.
CAUSES = ("latency", "dependence", "contention", "fill", "drain", "rounding")


def busiest_port(estimate: Estimate) -> str | None:
    """Of several the first."""
    return max(estimate.busy_ps, key=lambda port: estimate.busy_ps[port], default=None)


def causes(simulated: Simulated, busy_ps: Mapping[str, int], quick: Estimate) -> dict[str, int]:
    """``busy_ps`` is how long each port is busy in the simulation, ``quick`` the analytical
    estimate."""
    port = busiest_port(quick)
    working = 0 if port is None else busy_ps[port]
    needed = 0 if port is None else quick.busy_ps[port]
    lost = dict.fromkeys(CAUSES, 0) | dict(simulated.lost_ps)
    lost["rounding"] = working - needed
    lost["drain"] = simulated.latency_ps - working - sum(simulated.lost_ps.values())
    round_trips = quick.latency_ps - needed
    for cause in CAUSES:
        known = min(lost[cause], round_trips)
        lost[cause] -= known
        round_trips -= known
    return {cause: ps for cause, ps in lost.items() if ps}

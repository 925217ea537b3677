"""Event model: tiles wait for each other, for room, and for ports that others use."""

from __future__ import annotations

from sim import analytical
from sim.engines import DEFAULT, engine_named
from sim.estimate import Estimate
from sim.gap import busiest_port, causes
from sim.lowered import Lowered
from sim.ports import Prices
from sim.schedule import build_schedule, busy_ps


def estimate(lowered: Lowered, prices: Prices, engine: str = DEFAULT) -> Estimate:
    schedule = build_schedule(lowered.program, prices)
    quick = analytical.estimate(lowered, prices)
    simulated = engine_named(engine)(schedule, busiest_port(quick))
    return Estimate(
        latency_ps=simulated.latency_ps,
        busy_ps=busy_ps(schedule.body),
        gap_ps=causes(simulated, schedule, quick) if simulated.lost_ps else {},
    )

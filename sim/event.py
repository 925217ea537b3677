"""Event model: tiles wait for each other, for room, and for ports that others use."""

from __future__ import annotations

from sim.engine import simulate
from sim.estimate import Estimate
from sim.lowered import Lowered
from sim.ports import Prices
from sim.schedule import build_schedule, busy_ps


def estimate(lowered: Lowered, prices: Prices) -> Estimate:
    schedule = build_schedule(lowered.program, prices)
    return Estimate(latency_ps=simulate(schedule), busy_ps=busy_ps(schedule.body))

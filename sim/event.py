"""Event model: tiles wait for each other, for room, and for ports that others use."""

from __future__ import annotations

from collections import Counter

from mapper.program import Program
from sim.engine import simulate_schedule
from sim.estimate import Estimate
from sim.lowered import Lowered
from sim.ports import Prices
from sim.schedule import build_schedule, price_operation


def estimate(lowered: Lowered, prices: Prices) -> Estimate:
    latency = simulate_schedule(build_schedule(lowered.program, prices))
    return Estimate(latency_ps=latency, busy_ps=busy_ps(lowered.program, prices))


def busy_ps(program: Program, prices: Prices) -> dict[str, int]:
    """How long each port is busy in all. It does not depend on when, so it is not simulated."""
    total: Counter[str] = Counter()
    for count, op in program.tile_ops():
        for port, busy in price_operation(op, prices).occupancy_ps:
            total[port] += busy * count
    return dict(total)

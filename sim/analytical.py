"""Analytical model: every port works without a pause, the busiest one sets the time."""

from __future__ import annotations

from sim.estimate import Estimate
from sim.lowered import Lowered
from sim.ports import Prices, occupancy_ps


def estimate(lowered: Lowered, prices: Prices) -> Estimate:
    busy = occupancy_ps(lowered.work, prices)
    return Estimate(latency_ps=max(busy.values(), default=0), busy_ps=busy)

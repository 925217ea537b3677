"""Analytical model: every port works without a pause, the slowest resource sets the time.

Resources are the ports and, for each buffer, its slots: a slot is taken for at least the
memory's latency per load (Little's law), which is what binds many small transfers.
"""

from __future__ import annotations

from mapper.program import Program, TileOp
from sim.estimate import Estimate
from sim.lowered import Lowered
from sim.ports import Prices, occupancy_ps, sources


def estimate(lowered: Lowered, prices: Prices) -> Estimate:
    busy = occupancy_ps(lowered.work, prices)
    slowest = max(busy.values(), default=0)
    return Estimate(latency_ps=max(slowest, _round_trips_ps(lowered.program, prices)), busy_ps=busy)


def _round_trips_ps(program: Program, prices: Prices) -> int:
    """The longest that any buffer's slots are taken by loads under way."""
    waiting: dict[tuple[int, str], int] = {}
    slots: dict[tuple[int, str], int] = {}
    for count, hold, load in program.loads():
        buffer = hold.operand, hold.memory
        waiting[buffer] = waiting.get(buffer, 0) + count * _latency_ps(load, prices)
        slots[buffer] = hold.slots
    return max((-(-ps // slots[buffer]) for buffer, ps in waiting.items()), default=0)


def _latency_ps(op: TileOp, prices: Prices) -> int:
    return max(prices[component].latency_ps for component in sources(op.totals()))

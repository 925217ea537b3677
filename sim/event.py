"""Event model: tiles wait for each other, for room, and for ports that others use."""

from __future__ import annotations

import math

from mapper.cost import InfeasibleError
from sim import analytical
from sim.deadlock import DeadlockError
from sim.engines import DEFAULT, engine_named
from sim.estimate import Estimate
from sim.gap import busiest_port, causes
from sim.lowered import Lowered
from sim.ports import Prices
from sim.schedule import Schedule, build_schedule, busy_ps


def _operand_bytes(lowered: Lowered) -> dict[int, int]:
    """Sizes of the operands, by number; nothing for groups, which number them otherwise."""
    if lowered.others:
        return {}
    run = lowered.execution
    sizes = zip(run.counts.operands, run.bits, strict=True)
    return {o: math.ceil(c.elements * bits / 8) for o, (c, bits) in enumerate(sizes)}


def schedule_of(lowered: Lowered, prices: Prices) -> Schedule:
    """What is simulated."""
    return build_schedule(lowered.program, prices, _operand_bytes(lowered))


def estimate(lowered: Lowered, prices: Prices, engine: str = DEFAULT) -> Estimate:
    schedule = schedule_of(lowered, prices)
    quick = analytical.estimate(lowered, prices)
    try:
        simulated = engine_named(engine)(schedule, busiest_port(quick))
    except DeadlockError as error:
        raise _as_infeasible(lowered, error) from error
    return Estimate(
        latency_ps=simulated.latency_ps,
        busy_ps=busy_ps(schedule.body),
        gap_ps=causes(simulated, schedule, quick) if simulated.lost_ps else {},
    )


def _as_infeasible(lowered: Lowered, error: DeadlockError) -> Exception:
    """Bounded queues that fill up in a circle are the hardware's doing."""
    if not error.by_queues:
        return error
    operands = ", ".join(
        f"operand {number} is {access.tensor}"
        for number, access in enumerate(lowered.execution.operator.accesses)
    )
    return InfeasibleError(
        limit=f"bounded queues, in {lowered.program.operator}",
        needed=1,
        allowed=0,
        detail=f"{error}\n{operands}; a longer 'queue' or separate ports end this",
    )

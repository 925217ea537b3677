"""Roofline: the least time that any mapping can take.

Peak rate for the operations, and each operand moved once between the outermost memory and the
rest of the chip. It needs no mapping.
"""

from __future__ import annotations

import math

from mapper.lower import aside_work
from mapper.program import Work
from sim.estimate import Estimate
from sim.lowered import Lowered
from sim.ports import Prices, occupancy_ps


def estimate(lowered: Lowered, prices: Prices) -> Estimate:
    run = lowered.execution
    lanes = math.prod(axis.size for axis in run.intrinsic.axes)
    steps = -(-run.operator.points // lanes) * run.issues_per_point
    work = {run.compute.name: Work(steps=steps)}
    for aside in run.asides:
        name = aside.compute.name
        work[name] = work.get(name, Work()) + aside_work(aside, run.operator.extents)
    for operand, path in enumerate(run.paths):
        outermost = path[0].name
        work[outermost] = work.get(outermost, Work()) + _once(lowered, operand)
    busy = occupancy_ps(work, prices)
    return Estimate(latency_ps=max(busy.values(), default=0), busy_ps=busy)


def _once(lowered: Lowered, operand: int) -> Work:
    """Traffic of moving every element of the operand that is used, and no more."""
    run = lowered.execution
    bits = run.counts.operands[operand].elements * run.bits[operand]
    return Work(write_bits=bits) if operand == run.output else Work(read_bits=bits)

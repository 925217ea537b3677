"""Roofline: the least time that any mapping can take.

Peak rate for the operations, and each operand moved once between the memory that it is at home
in (the outermost, as a rule) and the rest of the chip. What several operators of a fused group
read counts once. It needs no mapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mapper.hierarchy import Execution
from mapper.lower import aside_work
from mapper.program import Work
from sim.estimate import Estimate
from sim.lowered import Lowered
from sim.ports import Prices, occupancy_ps

#: A tensor at home in a memory.
At = tuple[str, str]


def estimate(lowered: Lowered, prices: Prices) -> Estimate:
    work = dict(lowered.loaded)
    moved: dict[At, Work] = {}
    for run in lowered.executions:
        for name, computed in _computed(run):
            _add(work, name, computed)
        for at, once in _moved(run).items():
            moved[at] = _larger(moved.get(at, Work()), once)
    for (_, memory), once in moved.items():
        _add(work, memory, once)
    busy = occupancy_ps(work, prices)
    return Estimate(latency_ps=max(busy.values(), default=0), busy_ps=busy)


def _computed(run: Execution) -> Iterator[tuple[str, Work]]:
    lanes = math.prod(axis.size for axis in run.intrinsic.axes)
    yield run.compute.name, Work(steps=-(-run.operator.points // lanes) * run.issues_per_point)
    for aside in run.asides:
        yield aside.compute.name, aside_work(aside, run.operator.extents)


def _moved(run: Execution) -> dict[At, Work]:
    """Traffic of moving every element that is used, and no more."""
    moved: dict[At, Work] = {}
    for operand, path in enumerate(run.paths):
        bits = run.counts.operands[operand].elements * run.bits[operand]
        once = Work(write_bits=bits) if operand == run.output else Work(read_bits=bits)
        at = run.operator.accesses[operand].tensor, path[0].name
        moved[at] = moved.get(at, Work()) + once
    return moved


def _larger(one: Work, other: Work) -> Work:
    return Work(
        read_bits=max(one.read_bits, other.read_bits),
        write_bits=max(one.write_bits, other.write_bits),
    )


def _add(work: dict[str, Work], component: str, more: Work) -> None:
    work[component] = work.get(component, Work()) + more

"""Who lies where in the pool, step by step: what tables and plots of a plan are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mapper.memory_plan.plan import MemoryPlan, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Consecutive bytes ``[low, high)`` of the pool that a buffer has during ``[first, last]``."""

    name: str
    first: int
    last: int
    low: int
    high: int


def extents(plan: MemoryPlan) -> Iterator[Extent]:
    """The placements; one that wraps around the ring's end in two parts."""
    for placement in plan.placements:
        yield from _parts(placement, plan.pool_bytes)


def _parts(placement: Placement, pool_bytes: int) -> Iterator[Extent]:
    buffer = placement.buffer
    low = placement.offset_bytes % pool_bytes
    high = low + buffer.size_bytes
    for start, end in ((low, min(high, pool_bytes)), (0, high - pool_bytes)):
        if end > start:
            yield Extent(
                name=buffer.name, first=buffer.first, last=buffer.last, low=start, high=end
            )


def live_at(plan: MemoryPlan, step: int) -> int:
    """Bytes of the pool that some buffer has at a step; shared ones count once."""
    ranges = sorted((e.low, e.high) for e in extents(plan) if e.first <= step <= e.last)
    total = reached = 0
    for low, high in ranges:
        total += max(0, high - max(low, reached))
        reached = max(reached, high)
    return total


def strip(plan: MemoryPlan, step: int, cells: int) -> str:
    """The pool at a step in ``cells`` characters: ``.`` free, ``=`` what stays, ``>`` what is read
    for the last time, ``<`` what is written, ``#`` where both are, ``w`` workspace.
    """
    marks = [_cell(plan, step, cell, cells) for cell in range(cells)]
    return "".join(marks)


def _cell(plan: MemoryPlan, step: int, cell: int, cells: int) -> str:
    low, high = cell * plan.pool_bytes / cells, (cell + 1) * plan.pool_bytes / cells
    here = [e for e in extents(plan) if e.first <= step <= e.last and e.low < high and e.high > low]
    kinds = {_kind(e, step, len(plan.steps) - 1) for e in here}
    if {"<", ">"} <= kinds:
        return "#"
    return next((kind for kind in "<>w=" if kind in kinds), ".")


def _kind(extent: Extent, step: int, end: int) -> str:
    if extent.first == extent.last == step and step < end and extent.name.endswith(" (part)"):
        return "w"
    if extent.first == step and step > 0:
        return "<"
    return ">" if extent.last == step else "="

"""What happens when in a plan: as ``sim.timeline``, one unit after the other."""

from __future__ import annotations

from collections.abc import Iterator

from arch.spec import Architecture
from mapper.plan import Plan
from mapper.workload.graph import Workload
from sim.event import schedule_of
from sim.plan import lowered_units
from sim.prices import price, price_all
from sim.timeline import COMPUTE, EVERYTHING, Slice, View, placed, schedule_timeline


def plan_timeline(
    workload: Workload, architecture: Architecture, plan: Plan, view: View = EVERYTHING
) -> Iterator[Slice]:
    """Slices of all units; their stages are named by number, since tensors differ."""
    prices = price_all(architecture, price)
    start = 0
    for unit in lowered_units(workload, architecture, plan):
        schedule = schedule_of(unit.lowered, prices)
        tracks = {
            f"{verb} {stage}": f"{verb} {stage}"
            for stage in schedule.stages
            for verb in ("load", "store")
        }
        seen = view.seen_from(start)
        latency, slices = schedule_timeline(schedule, {COMPUTE: COMPUTE} | tracks, seen)
        yield from placed(unit.name, (start, latency), slices, view)
        start += latency

"""What happens when in a plan: as ``sim.timeline``, one unit after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from arch.spec import Architecture
from mapper.plan import Plan
from mapper.workload.graph import Workload
from sim.plan import lowered_units
from sim.prices import price, price_all
from sim.schedule import build_schedule
from sim.timeline import Slice, schedule_timeline


def plan_timeline(workload: Workload, architecture: Architecture, plan: Plan) -> Iterator[Slice]:
    """Slices of all units; their stages are named by number, since tensors differ."""
    prices = price_all(architecture, price)
    start = 0
    for unit in lowered_units(workload, architecture, plan):
        schedule = build_schedule(unit.lowered.program, prices)
        tracks = {
            f"{verb} {stage}": f"{verb} {stage}"
            for stage in schedule.stages
            for verb in ("load", "store")
        }
        latency, slices = schedule_timeline(schedule, {"compute": "compute"} | tracks)
        yield Slice(
            group="operators",
            track="operator",
            name=unit.name,
            start_ps=start,
            duration_ps=latency,
            busy_ps=latency,
        )
        for piece in slices:
            yield replace(piece, start_ps=piece.start_ps + start)
        start += latency

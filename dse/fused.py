"""A network whose schedule is searched as a whole, then evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from arch.spec import Architecture
from dse.plan_document import schedule_document
from dse.scheduling import schedule
from mapper.cost import Metrics
from mapper.search.schedule import Schedule
from mapper.workload.graph import Workload
from sim.plan import evaluate_plan
from sim.plan_timeline import plan_timeline
from sim.timeline import Slice, View


def simulate_fused(
    workload: Workload, architecture: Architecture, fidelity: str, objective: str, engine: str
) -> tuple[Metrics, Schedule]:
    """The best schedule and what it costs."""
    found = schedule(workload, architecture, objective)
    return evaluate_plan(fidelity, workload, architecture, found.plan, engine=engine), found


def timeline_of(
    workload: Workload, architecture: Architecture, found: Schedule, view: View
) -> Iterator[Slice]:
    return plan_timeline(workload, architecture, found.plan, view)


def document_of(found: Schedule) -> Mapping[str, Any]:
    return schedule_document(found)

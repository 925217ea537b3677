"""A plan as plain JSON data, so that a study keeps the schedules it found whole."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from typing import Any

from dse.mapping_document import mapping_document, mapping_of
from dse.scheduling import OnCores
from mapper.fusion import FusedMapping
from mapper.mapping import Loop
from mapper.plan import Plan, Unit
from mapper.search.schedule import Schedule
from sim.plan_cores import CoresRun


def schedule_document(found: Schedule) -> dict[str, Any]:
    """What a schedule is and how good it is known to be."""
    return {
        "objective": found.objective,
        "unfused_latency_ps": found.unfused.latency_ps,
        "unfused_energy_pj": found.unfused.energy_pj,
        "latency_ps": found.cost.latency_ps,
        "energy_pj": found.cost.energy_pj,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "cut_gap": found.cut_gap,
        "cuts_left_out": found.thinned.ways,
        "calls": found.calls,
        "bytes_saved": found.bytes_saved,
        "peak_live_bytes": found.order.peak_bytes,
        "peak_live_bytes_lower_bound": found.order.lower_bound_bytes,
        "plan": plan_document(found.plan),
    }


def cores_document(found: OnCores, run: CoresRun) -> dict[str, Any]:
    """A schedule on several cores: which core runs which unit, from when to when."""
    placement = found.placement
    return {
        "latency_ps": found.cost.latency_ps,
        "energy_pj": found.cost.energy_pj,
        "objective": found.schedule.objective,
        "lower_bound": found.bound,
        "optimal": found.optimal,
        "gap": found.gap,
        "units_considered": found.considered,
        "shared_memory_busy_ps": run.shared_ps,
        f"{run.metrics.fidelity}_latency_ps": run.metrics.latency_ps,
        "one_core": schedule_document(found.alone),
        "units": [
            {
                "unit": unit.name,
                "core": unit.core,
                "tiles": unit.tiles,
                "start_ps": start,
                "end_ps": end,
                "run_start_ps": unit.span_ps[0],
                "run_end_ps": unit.span_ps[1],
                "port_wait_ps": unit.waited_ps,
            }
            for unit, (start, end) in zip(run.units, placement.spans_ps, strict=True)
        ],
    }


def placed_document(found: OnCores) -> dict[str, Any]:
    """The schedule and which core runs each unit of its plan."""
    return schedule_document(found.schedule) | {"cores": list(found.placement.cores)}


def plan_document(plan: Plan) -> dict[str, Any]:
    """``plan_of`` is its inverse."""
    return {"homes": dict(plan.homes), "units": [_unit(unit) for unit in plan.units]}


def _unit(unit: Unit) -> dict[str, Any]:
    match unit:
        case FusedMapping():
            return {
                "operators": list(unit.operators),
                "tiles": [{"dim": loop.dim, "tile": loop.tile} for loop in unit.tiles],
                "memory": unit.memory,
                "resident": list(unit.resident),
                "retained": unit.retained,
                "mappings": [mapping_document(mapping) for mapping in unit.mappings],
            }
        case _:
            return {"operators": [unit.operator], "mappings": [mapping_document(unit)]}


def plan_of(document: MappingABC[str, Any]) -> Plan:
    units = tuple(_unit_of(unit) for unit in document["units"])
    return Plan(units=units, homes=document["homes"])


def _unit_of(document: MappingABC[str, Any]) -> Unit:
    names = tuple(document["operators"])
    mappings = tuple(
        mapping_of(name, mapping) for name, mapping in zip(names, document["mappings"], strict=True)
    )
    if "tiles" not in document:
        return mappings[0]
    return FusedMapping(
        operators=names,
        tiles=tuple(Loop(loop["dim"], loop["tile"]) for loop in document["tiles"]),
        memory=document["memory"],
        resident=tuple(document["resident"]),
        retained=document["retained"],
        mappings=mappings,
    )

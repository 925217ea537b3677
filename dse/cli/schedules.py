"""Schedules for people: what is fused, tile by tile, and what that saves."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from arch.units import format_energy_pj, format_size, format_time_ps
from dse.cli.console import table
from dse.scheduling import OnCores
from mapper.cost import Metrics
from mapper.fusion import FusedMapping
from mapper.plan import Plan, Unit, operators_of
from mapper.search.schedule import Schedule
from mapper.workload.graph import Workload
from sim.multicore import CoreRun

UNIT_COLUMNS = (
    ">#",
    "operators",
    "tiles",
    ">count",
    "kept whole or sliding",
    ">latency",
    ">energy",
    "bound by",
)


def print_schedule(console: Console, workload: Workload, found: Schedule, metrics: Metrics) -> None:
    """Totals beside those of the plain plan, then unit by unit."""
    for name, text in totals(found):
        console.print(f"  {name:<12} {text}")
    console.print(table("", UNIT_COLUMNS, unit_rows(workload, found.plan, metrics)))
    kept = ", ".join(f"{tensor} in {memory}" for tensor, memory in found.plan.homes.items())
    if kept:
        console.print(f"Stay on the chip between units: {kept}.")


CORE_COLUMNS = (">#", "operators", ">core", ">tiles", ">from", ">to", ">port wait")


def print_on_cores(console: Console, found: OnCores, run: CoreRun) -> None:
    """Totals beside those of one core, then which core runs what, and when it is simulated."""
    placement, alone = found.placement, found.alone.cost
    space = f"cut into the {found.considered} units considered, on any cores"
    proof = f"no {space}, is better"
    if not found.optimal:
        proof = f"at most {100 * found.gap:.1f} % above the best {space}"
    one = found.cost.latency_ps, found.cost.energy_pj
    rows = (
        ("latency", f"{format_time_ps(one[0])} ({format_time_ps(alone.latency_ps)} on one core)"),
        ("energy", f"{format_energy_pj(one[1])} ({format_energy_pj(alone.energy_pj)} on one core)"),
        ("event model", f"{format_time_ps(run.latency_ps)}, every tile and its traffic simulated"),
        ("placement", proof),
        ("shared port", f"busy for {format_time_ps(placement.shared_ps)} in all"),
    )
    for name, text in rows:
        console.print(f"  {name:<12} {text}")
    console.print(table("", CORE_COLUMNS, core_rows(found, run)))


def core_rows(found: OnCores, run: CoreRun) -> Iterator[tuple[str, ...]]:
    cores = found.placement.cores
    placed = zip(found.tasks, cores, run.spans_ps, run.waited_ps, strict=True)
    for number, (task, core, (start, end), waited) in enumerate(placed, 1):
        times = (format_time_ps(time) for time in (start, end, waited))
        yield (str(number), task.name, str(core), str(task.tiles), *times)


def totals(found: Schedule) -> Iterator[tuple[str, str]]:
    before, after = found.unfused, found.cost
    yield "latency", _change(before.latency_ps, after.latency_ps, format_time_ps)
    yield "energy", _change(before.energy_pj, after.energy_pj, format_energy_pj)
    yield "EDP", _gain(before.value("edp") / after.value("edp"))
    yield "saved", f"{format_size(found.bytes_saved)} not written to and read from outside"
    yield "gap", f"{100 * found.gap:.1f} % above what no schedule of any kind could beat"
    yield "cut", _cut(found)
    order = found.order
    proof = "no order has less" if order.optimal else f"at least {_size(order.lower_bound_bytes)}"
    yield "live bytes", f"{_size(order.peak_bytes)} at most in this order ({proof})"
    yield "calls", f"{found.calls:,} evaluations"


def _cut(found: Schedule) -> str:
    """Given each unit's plan, are there better ways to cut the network into units?"""
    ways = found.thinned.ways
    if not ways:
        return "no other way to cut into the units considered is better"
    gap = f"{100 * found.cut_gap:.1f} %"
    return f"{ways:,} ways not followed to the end, which could be up to {gap} better"


def _size(size_bytes: int) -> str:
    return format_size(size_bytes)


def _gain(gain: float) -> str:
    if round(gain, 2) == 1:
        return "as unfused"
    return f"{gain:.2f} times less" if gain > 1 else f"{1 / gain:.2f} times more"


def _change(before: float, after: float, show: object) -> str:
    assert callable(show)
    return f"{show(after)} ({show(before)} unfused)"


def unit_rows(workload: Workload, plan: Plan, metrics: Metrics) -> Iterator[tuple[str, ...]]:
    for number, (unit, cost) in enumerate(zip(plan.units, metrics.operators, strict=True), 1):
        yield (
            str(number),
            ", ".join(operators_of(unit)),
            _tiles(unit),
            _count(workload, unit),
            _resident(unit),
            format_time_ps(cost.latency_ps),
            format_energy_pj(cost.energy_pj),
            cost.bound_by,
        )


def _tiles(unit: Unit) -> str:
    match unit:
        case FusedMapping(tiles=tiles) if tiles:
            return " ".join(f"{loop.dim}:{loop.tile}" for loop in tiles)
        case FusedMapping():
            return "whole"
        case _:
            return "not fused"


def _count(workload: Workload, unit: Unit) -> str:
    if not isinstance(unit, FusedMapping):
        return ""
    extents = workload.operator(unit.operators[-1]).extents
    count = 1
    for loop in unit.tiles:
        count *= -(-extents[loop.dim] // loop.tile)
    return str(count)


def _resident(unit: Unit) -> str:
    if not isinstance(unit, FusedMapping):
        return ""
    overlap = "" if unit.retained or not unit.tiles else "; overlaps computed again"
    return f"{len(unit.resident)} tensors{overlap}" if unit.resident else overlap.lstrip("; ")

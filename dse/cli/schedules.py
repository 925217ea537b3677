"""Schedules for people: what is fused, tile by tile, and what that saves."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from arch.units import format_energy_pj, format_size, format_time_ps
from dse.cli.console import table
from dse.on_cores import PlacedRun
from dse.scheduling import OnCores
from mapper.cost import Metrics
from mapper.fusion import FusedMapping
from mapper.plan import Plan, Unit, operators_of
from mapper.search.schedule import Schedule
from mapper.workload.graph import Workload
from sim.plan_cores import CoresRun

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


def print_on_cores(console: Console, found: OnCores, run: CoresRun) -> None:
    """Totals beside those of one core, then which core runs what, and when it is simulated."""
    alone = found.alone.cost
    one = found.cost.latency_ps, found.cost.energy_pj
    latency = format_time_ps(run.metrics.latency_ps)
    rows = (
        ("latency", f"{format_time_ps(one[0])} ({format_time_ps(alone.latency_ps)} on one core)"),
        ("energy", f"{format_energy_pj(one[1])} ({format_energy_pj(alone.energy_pj)} on one core)"),
        ("event model", f"{latency}, every tile and its traffic simulated"),
        *placement_totals(found, run),
    )
    for name, text in rows:
        console.print(f"  {name:<12} {text}")
    console.print(table("", CORE_COLUMNS, core_rows(run)))


def print_cores(console: Console, placed: PlacedRun) -> None:
    """Beside the metrics of a run: how the cores share it."""
    found, run = placed.found, placed.run
    alone = found.alone.cost
    console.print(f"on {run.cores} cores, placed for least {found.schedule.objective}")
    one = f"{format_time_ps(alone.latency_ps)}, {format_energy_pj(alone.energy_pj)}"
    console.print(f"  {'one core':<12} {one} by the analytical model")
    for name, text in placement_totals(found, run):
        console.print(f"  {name:<12} {text}")
    console.print(table("", CORE_COLUMNS, core_rows(run)))
    console.print(
        "Units of different cores run at the same time, so shares may add up to more than 100 %; "
        "they leave out what a unit waits for the port.",
        soft_wrap=True,
    )


def placement_totals(found: OnCores, run: CoresRun) -> Iterator[tuple[str, str]]:
    """How good the placement is known to be, and what the cores share."""
    space = f"cut into the {found.considered} units considered, on any cores"
    proof = f"no {space}, is better"
    if not found.optimal:
        proof = f"at most {100 * found.gap:.1f} % above the best {space}"
    yield "placement", proof
    homes = found.schedule.plan.homes
    if homes:
        yield "on the chip", ", ".join(f"{tensor} in {memory}" for tensor, memory in homes.items())
    yield "shared port", f"busy for {format_time_ps(run.shared_ps)} in all"
    shares = (f"{100 * run.busy_ps(core) / run.metrics.latency_ps:.0f} %" for core in _cores(run))
    yield "cores busy", ", ".join(shares)


def _cores(run: CoresRun) -> range:
    return range(run.cores)


def core_rows(run: CoresRun) -> Iterator[tuple[str, ...]]:
    for number, unit in enumerate(run.units, 1):
        times = (format_time_ps(time) for time in (*unit.span_ps, unit.waited_ps))
        yield (str(number), unit.name, str(unit.core), str(unit.tiles), *times)


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

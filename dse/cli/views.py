"""What people read: results as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from arch.spec import Architecture
from arch.units import (
    format_area_mm2,
    format_energy_pj,
    format_power_w,
    format_size,
    format_time_ps,
)
from dse.cli.console import table
from dse.cli.folded import folded_summary
from dse.cli.repeats import repeated
from dse.tokens import flops_utilization, token_rates
from mapper.cost import Metrics
from mapper.workload.graph import Workload

#: MACs, latency, share and energy are sums where a row stands for several operators.
OPERATOR_COLUMNS = (
    "operator",
    ">times",
    "kind",
    ">MACs",
    ">latency",
    ">share",
    ">energy",
    "bound by",
)
COMPONENT_COLUMNS = ("component", ">busy", ">util.", ">energy", ">read", ">written", ">peak use")


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def print_metrics(
    console: Console, workload: Workload, architecture: Architecture, metrics: Metrics
) -> None:
    """Totals, then where time goes by operator, then by component."""
    engine = f" ({metrics.engine} engine)" if metrics.engine else ""
    console.print(f"{workload.name} on {architecture.name}, {metrics.fidelity} model{engine}")
    for name, text in totals(metrics):
        console.print(f"  {name:<8} {text}", soft_wrap=True)
    if workload.folded:
        console.print(
            f"  folded   {folded_summary(workload)} (dse show lists them)", soft_wrap=True
        )
    for number, note in enumerate(metrics.notes):
        console.print(f"  {'counted' if not number else '':<8} {note}", soft_wrap=True)
    console.print(table("", OPERATOR_COLUMNS, operator_rows(workload, metrics)))
    console.print(table("", COMPONENT_COLUMNS, component_rows(architecture, metrics)))


def totals(metrics: Metrics) -> Iterator[tuple[str, str]]:
    energy = format_energy_pj(metrics.energy_pj)
    if metrics.dynamic_energy_pj:  # a board's power is not told apart
        energy += f" ({format_energy_pj(metrics.dynamic_energy_pj)} without leakage)"
    yield "latency", format_time_ps(metrics.latency_ps)
    yield "energy", energy
    yield "power", format_power_w(metrics.power_w)
    if metrics.area_mm2:
        without = f" without {', '.join(metrics.area_without)}" if metrics.area_without else ""
        yield "area", f"{format_area_mm2(metrics.area_mm2)}{without}"
    yield "MACs", f"{metrics.macs:,}"
    if metrics.gap:
        yield "gap", gap_text(metrics)


def rates(
    workload: Workload, architecture: Architecture, metrics: Metrics
) -> Iterator[tuple[str, str]]:
    """Utilization of a GPU's peak, and what a language model costs per token."""
    used = flops_utilization(architecture, metrics)
    if used is not None:
        yield "MFU", f"{100 * used:.1f} %"
    found = token_rates(workload, metrics)
    if found is not None:
        yield "tokens", f"{found.tokens:,} in a step, {found.tokens_per_s:,.0f} a second"
        yield "per token", format_energy_pj(found.energy_pj_per_token)


def gap_text(metrics: Metrics) -> str:
    """How much the simulation is above the analytical model, and why."""
    parts = sorted(metrics.gap.items(), key=lambda part: -part[1])
    total = sum(ps for _, ps in parts)
    shown = ", ".join(f"{cause.replace('_', ' ')} {format_time_ps(ps)}" for cause, ps in parts)
    share = percent(total / metrics.latency_ps)
    return f"{format_time_ps(total)} ({share}) above the analytical model: {shown}"


def operator_rows(workload: Workload, metrics: Metrics) -> Iterator[tuple[str, ...]]:
    """Operators of repeated layers share a row."""
    kinds = {operator.name: operator.kind for operator in workload.operators}
    for row in repeated(metrics.operators, kinds):
        one, latency_ps = row.sample, row.times * row.sample.latency_ps
        yield (
            row.name,
            str(row.times) if row.times > 1 else "",
            kinds.get(one.name, one.kind),
            f"{row.times * one.macs:,}" if one.macs else "",
            format_time_ps(latency_ps),
            percent(latency_ps / metrics.latency_ps),
            format_energy_pj(row.times * one.energy_pj),
            one.bound_by,
        )


def component_rows(architecture: Architecture, metrics: Metrics) -> Iterator[tuple[str, ...]]:
    rooms = {memory.name: memory.size_bytes for memory in architecture.memories}
    for name, component in metrics.components.items():
        moves = name in rooms
        yield (
            name,
            format_time_ps(component.busy_ps),
            percent(component.utilization),
            format_energy_pj(component.energy_pj),
            format_size(component.read_bytes) if moves else "",
            format_size(component.write_bytes) if moves else "",
            f"{format_size(metrics.memory[name])} of {format_size(rooms[name])}"
            if name in metrics.memory and moves
            else "",
        )

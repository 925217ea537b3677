"""From estimates per operator to the metrics of the whole run; the same for every fidelity."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from arch.spec import Architecture, Component
from mapper.cost import ComponentMetrics, Metrics, OperatorMetrics
from mapper.program import Work
from mapper.workload.graph import Workload
from sim.estimate import Estimate
from sim.lowered import Lowered
from sim.memory import check_outermost
from sim.ports import Prices, ports_of

#: An operator is bound by ``latency`` (waiting: fill, drain, round trips, tiles that cannot
#: overlap) if it takes longer than this many times what its busiest port needs.
LATENCY_BOUND = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One operator or fused group, executed. ``lowered`` may be that of an equal one."""

    name: str
    macs: int
    lowered: Lowered
    estimate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class _Totals:
    """One component over some time. ``useful_ps`` is what a fully used component would need."""

    work: Work
    busy_ps: int
    useful_ps: int
    dynamic_pj: float


def assemble(
    fidelity: str,
    workload: Workload,
    architecture: Architecture,
    prices: Prices,
    runs: Sequence[Run],
    on_chip: Collection[str] = (),
) -> Metrics:
    """Metrics of operators that run one after the other; tensors ``on_chip`` never leave it."""
    per_operator = [_operator_totals(run, architecture, prices) for run in runs]
    latency = sum(run.estimate.latency_ps for run in runs)
    totals = {c.name: _sum(t[c.name] for t in per_operator) for c in architecture.components}
    dynamic = math.fsum(total.dynamic_pj for total in totals.values())
    energy = dynamic + architecture.leakage_w * latency
    return Metrics(
        fidelity=fidelity,
        latency_ps=latency,
        energy_pj=energy,
        dynamic_energy_pj=dynamic,
        area_mm2=architecture.area_mm2,
        area_without=architecture.without_area,
        power_w=energy / latency if latency else 0.0,
        macs=workload.macs,
        memory=_peak_bytes(workload, architecture, runs, on_chip),
        components=_component_metrics(architecture, totals, latency),
        operators=tuple(
            _operator_metrics(run, architecture, each)
            for run, each in zip(runs, per_operator, strict=True)
        ),
    )


def _operator_totals(run: Run, architecture: Architecture, prices: Prices) -> dict[str, _Totals]:
    busy = run.estimate.busy_ps
    used = {execution.compute.name for execution in run.lowered.executions}
    totals = {}
    for component in architecture.components:
        name = component.name
        work = run.lowered.work.get(name, Work())
        busy_ps = max(busy.get(port, 0) for port in ports_of(name))
        totals[name] = _Totals(
            work=work,
            busy_ps=busy_ps,
            useful_ps=_full_rate_ps(run.lowered, name, prices) if name in used else busy_ps,
            dynamic_pj=prices[name].energy_pj(work),
        )
    return totals


def _full_rate_ps(lowered: Lowered, compute: str, prices: Prices) -> int:
    """Time that the compute unit would need with every lane of every step in use."""
    needed = 0
    for run in lowered.executions:
        if run.compute.name == compute:
            lanes = math.prod(axis.size for axis in run.intrinsic.axes)
            issues = run.operator.points * run.issues_per_point
            needed += math.ceil(issues * prices[compute].step_ps / lanes)
    return needed


def _sum(parts: Iterable[_Totals]) -> _Totals:
    parts = list(parts)
    return _Totals(
        work=sum((part.work for part in parts), Work()),
        busy_ps=sum(part.busy_ps for part in parts),
        useful_ps=sum(part.useful_ps for part in parts),
        dynamic_pj=math.fsum(part.dynamic_pj for part in parts),
    )


def _component_metrics(
    architecture: Architecture, totals: Mapping[str, _Totals], latency_ps: int
) -> dict[str, ComponentMetrics]:
    return {
        component.name: _metrics_of(component, totals[component.name], latency_ps)
        for component in architecture.components
    }


def _metrics_of(component: Component, total: _Totals, latency_ps: int) -> ComponentMetrics:
    leakage_pj = component.leakage_w * component.count * latency_ps
    return ComponentMetrics(
        busy_ps=total.busy_ps,
        energy_pj=total.dynamic_pj + leakage_pj,
        read_bytes=math.ceil(total.work.read_bits / 8),
        write_bytes=math.ceil(total.work.write_bits / 8),
        utilization=total.useful_ps / latency_ps if latency_ps else 0.0,
    )


def _operator_metrics(
    run: Run, architecture: Architecture, totals: Mapping[str, _Totals]
) -> OperatorMetrics:
    latency = run.estimate.latency_ps
    components = _component_metrics(architecture, totals, latency)
    dynamic = math.fsum(total.dynamic_pj for total in totals.values())
    return OperatorMetrics(
        name=run.name,
        latency_ps=latency,
        energy_pj=dynamic + architecture.leakage_w * latency,
        bound_by=_bound_by(components, run.lowered, latency),
        macs=run.macs,
        components=components,
        gap=run.estimate.gap_ps,
    )


def _bound_by(components: Mapping[str, ComponentMetrics], lowered: Lowered, latency_ps: int) -> str:
    """The busiest component; of several, the compute unit: feeding it more would not help."""
    used = {run.compute.name for run in lowered.executions}
    busiest = max(components, key=lambda name: (components[name].busy_ps, name in used))
    if latency_ps > LATENCY_BOUND * components[busiest].busy_ps:
        return "latency"
    return busiest


def _peak_bytes(
    workload: Workload, architecture: Architecture, runs: Sequence[Run], on_chip: Collection[str]
) -> dict[str, int]:
    """Most bytes held in each memory (in one instance of it, where there are several)."""
    outermost = architecture.memories[0].name
    peaks = {
        memory.name: max((_held_bytes(run, memory.name) for run in runs), default=0)
        for memory in architecture.memories
    }
    return peaks | {outermost: check_outermost(workload, architecture, on_chip)}


def _held_bytes(run: Run, memory: str) -> int:
    return int(-(-run.lowered.program.peak_bits.get(memory, 0) // 8))

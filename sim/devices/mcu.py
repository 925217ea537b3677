"""Microcontrollers: kernels one after the other, activations where a planner puts them.

Roofline is the core's peak and the flash's bandwidth; analytical adds what the library's kernels
take beside their multiply-accumulates; event adds the time that the core waits for weights that
it reads for the first time. Power is that of the supply while the core computes, so energy is
power times time, as measurements of whole boards show.
"""

from __future__ import annotations

from fractions import Fraction

from arch.families.mcu import McuCore, McuFlash, McuSram
from arch.spec import PS_PER_S, Architecture
from mapper.cost import ComponentMetrics, InfeasibleError, Metrics, OperatorMetrics, Price
from mapper.memory_plan.formats import refusal
from mapper.memory_plan.layers import Layer, layers_of
from mapper.memory_plan.mcu import (
    core_of,
    flash_bytes,
    layer_cycles,
    parameter_bytes,
    plan_on,
    weight_memory,
    weights_in_sram,
)
from mapper.memory_plan.plan import MemoryPlan
from mapper.memory_plan.stages import ring_accesses
from mapper.workload.graph import Workload
from sim.kernel_models import kernel_model
from sim.prices import prices

#: Why the event model is above the analytical one.
NO_OVERLAP = "waiting for weights"


@prices(McuCore)
def core(component: McuCore) -> Price:
    return Price(step_ps=component.intrinsics[0].interval_ps)


@prices(McuSram)
def sram(component: McuSram) -> Price:
    """Part of the kernels' cycles and of the active power."""
    return Price()


@prices(McuFlash)
def flash(component: McuFlash) -> Price:
    assert component.read_bytes_per_s is not None
    return Price(read_ps_per_bit=Fraction(PS_PER_S, 8 * component.read_bytes_per_s))


@kernel_model("mcu")
def run(workload: Workload, architecture: Architecture, fidelity: str) -> Metrics:
    """The metrics of a network on a microcontroller.

    Raises ``InfeasibleError`` if its activations do not fit into the SRAM or its weights and code
    not into the flash, if a limit is not kept, or if there are no kernels for its formats. A
    roofline needs no plan and checks the flash only.
    """
    refused = refusal(workload, architecture)
    if refused is not None:
        raise refused
    layers = layers_of(workload)
    kernels = core_of(architecture).kernels
    store = architecture.memories[0]
    used = flash_bytes(kernels, layers)
    _check(f"bytes of {store.name}", used, store.size_bytes, "weights and code")
    plan = None if fidelity == "roofline" else plan_on(workload, architecture)
    memory = {store.name: used} | ({} if plan is None else _sram(plan, architecture, layers))
    spent = _spent(layers, plan)
    runs = tuple(_operator(architecture, layer, *spent[layer.name], fidelity) for layer in layers)
    metrics = _assembled(workload, architecture, fidelity, memory, runs)
    if kernels.latency_limit_ps is not None:
        detail = "picoseconds of the fastest plan within the limit of memory"
        _check("latency limit", metrics.latency_ps, kernels.latency_limit_ps, detail)
    return metrics


def _check(limit: str, needed: int, allowed: int, detail: str) -> None:
    if needed > allowed:
        raise InfeasibleError(limit=limit, needed=needed, allowed=allowed, detail=detail)


def _sram(
    plan: MemoryPlan, architecture: Architecture, layers: tuple[Layer, ...]
) -> dict[str, int]:
    """Peak, and what it consists of: the pool, scratch buffers, what is reserved, weights."""
    working = architecture.memories[1]
    kernels = core_of(architecture).kernels
    weights = weights_in_sram(kernels, layers)
    peak = plan.peak_bytes + kernels.reserved_bytes + weights
    parts = {
        f"{plan.planner} plan": plan.peak_bytes,
        "reserved": kernels.reserved_bytes,
        "weights": weights,
    }
    text = [f"{name} {size:,}" for name, size in parts.items() if size]
    detail = f"{' and '.join(text)} bytes; {max(0, peak - working.size_bytes):,} are missing"
    _check(f"bytes of {working.name}", peak, working.size_bytes, detail)
    if kernels.ram_limit_bytes is not None:
        detail = f"bytes of the {plan.planner} plan"
        _check("memory limit", plan.peak_bytes, kernels.ram_limit_bytes, detail)
    return {
        working.name: peak,
        "arena": plan.pool_bytes,
        "scratch": sum(plan.extra_bytes.values()),
        "reserved": kernels.reserved_bytes,
        "parameters": parameter_bytes(kernels, layers),
        "code": kernels.code_bytes,
    }


def _spent(layers: tuple[Layer, ...], plan: MemoryPlan | None) -> dict[str, tuple[int, int]]:
    """Multiply-accumulates and ring accesses of each layer; without a plan what is needed."""
    if plan is None:
        return {layer.name: (layer.macs, 0) for layer in layers}
    by_name = {layer.name: layer for layer in layers}
    return {
        name: (macs, ring_accesses(by_name[name], step.segment_bytes))
        for step in plan.steps
        for name, macs in zip(step.layers, step.layer_macs, strict=True)
    }


def _operator(
    architecture: Architecture, layer: Layer, macs: int, accesses: int, fidelity: str
) -> OperatorMetrics:
    processor, store = core_of(architecture), weight_memory(architecture)
    period_ps = PS_PER_S / architecture.clock_hz
    assert store.read_bytes_per_s is not None
    weights_ps = _ceil(layer.weight_bytes * PS_PER_S / store.read_bytes_per_s)
    peak = layer.macs / processor.macs_per_cycle
    needed = max(peak, layer_cycles(processor.kernels, layer, macs, accesses))
    computing_ps = _ceil((peak if fidelity == "roofline" else needed) * period_ps)
    latency, gap = max(computing_ps, weights_ps), {}
    if fidelity == "event":
        latency = computing_ps + weights_ps
        gap = {NO_OVERLAP: min(computing_ps, weights_ps)}
    busy = {processor.name: computing_ps, store.name: weights_ps}
    moved = {store.name: layer.weight_bytes}
    energy = architecture.leakage_w * latency
    return OperatorMetrics(
        name=layer.name,
        latency_ps=latency,
        energy_pj=energy,
        bound_by=max(busy, key=lambda name: busy[name]),
        macs=layer.macs,
        components=_components(architecture, busy, moved, latency),
        gap={cause: ps for cause, ps in gap.items() if ps},
    )


def _components(
    architecture: Architecture, busy: dict[str, int], read: dict[str, int], latency_ps: int
) -> dict[str, ComponentMetrics]:
    return {
        c.name: ComponentMetrics(
            busy_ps=busy.get(c.name, 0),
            energy_pj=c.leakage_w * latency_ps,
            read_bytes=read.get(c.name, 0),
            write_bytes=0,
            utilization=busy.get(c.name, 0) / latency_ps if latency_ps else 0.0,
        )
        for c in architecture.components
    }


def _assembled(
    workload: Workload,
    architecture: Architecture,
    fidelity: str,
    memory: dict[str, int],
    runs: tuple[OperatorMetrics, ...],
) -> Metrics:
    latency = sum(run.latency_ps for run in runs)
    names = [c.name for c in architecture.components]
    busy = {n: sum(run.components[n].busy_ps for run in runs) for n in names}
    read = {n: sum(run.components[n].read_bytes for run in runs) for n in names}
    energy = architecture.leakage_w * latency
    return Metrics(
        fidelity=fidelity,
        latency_ps=latency,
        energy_pj=energy,
        dynamic_energy_pj=0.0,
        area_mm2=architecture.area_mm2,
        power_w=energy / latency if latency else 0.0,
        macs=workload.macs,
        memory=memory,
        components=_components(architecture, busy, read, latency),
        operators=runs,
    )


def _ceil(value: float) -> int:
    return -int(-value // 1)

"""A workload on a GPU: its kernels one after the other, again and again, all at one clock."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mapper.cost import InfeasibleError
from mapper.workload.graph import Workload
from sim.gpu.between import between, between_key
from sim.gpu.chip import Chip
from sim.gpu.correction import peak_rate
from sim.gpu.demand import Array, Call
from sim.gpu.event import block_times
from sim.gpu.formats import with_formats
from sim.gpu.launch import Launch, noted
from sim.gpu.launches import FUSED, launches
from sim.gpu.power import Load, Machine, steady
from sim.gpu.predict import GpuModel, load_of

AT_PEAK = "the peak of the tensor cores or the HBM, which the kernel model would exceed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRun:
    """A workload run again and again, all of it at one clock; arrays have a value per launch.

    The clock is the highest at which the analytical times keep the power within its limit, for all
    three fidelities. ``least_us`` is what the peaks of tensor cores and HBM and the power limit
    alone would take, ``times_us`` the kernel model, ``event_us`` its thread blocks over time, of
    which ``dispatch_us`` is because blocks do not start at once. ``peak_us`` is what
    the peak of the tensor cores at the highest clock would take. ``energy_uj`` is above the idle
    power, ``hbm_uj`` the part of it that is spent in the HBM.
    """

    launches: tuple[Launch, ...]
    least_us: Array
    times_us: Array
    event_us: Array
    dispatch_us: Array
    core_us: Array
    memory_us: Array
    peak_us: Array
    energy_uj: Array
    hbm_uj: Array
    read_bytes: Array
    written_bytes: Array


def run_workload(workload: Workload, model: GpuModel, epilogues: str = FUSED) -> GpuRun:
    """Times and energies of every launch, the workload being repeated without a pause."""
    chosen = tuple(launches(workload, epilogues))
    calls = [launch.call for launch in chosen]
    load = with_formats(in_order(load_of(calls, model)), chosen, model.chip)
    load = _with_epilogues(load, chosen, model)
    whole = replace(load, owner=np.zeros_like(load.owner), devices=np.ones(1))
    slowdown = _slowdown(whole, model.machine)
    demand = load.demand
    peak = np.array([launch.useful_macs / _rate(launch.call, model.chip) for launch in chosen])
    roof = np.maximum(peak * slowdown, demand.hbm_bytes / model.chip.hbm_bytes_per_us)
    # Constants fitted on an H200 may promise more than the peaks of another GPU.
    promised = demand.time_us(slowdown)
    times = np.maximum(promised, roof)
    at_peak = promised < roof * (1 - 1e-9)
    energy = model.machine.energy_uj(load, np.full_like(times, slowdown), times)
    blocks = [block_times(demand, number, slowdown, model.chip) for number in range(len(calls))]
    return GpuRun(
        launches=tuple(
            noted(launch, AT_PEAK if is_at_peak else "")
            for launch, is_at_peak in zip(chosen, at_peak, strict=True)
        ),
        least_us=_least(roof, times, energy, model),
        times_us=times,
        event_us=np.maximum(times, [found.time_us for found in blocks]),
        dispatch_us=np.array([found.time_us - found.together_us for found in blocks]),
        core_us=demand.core_us * slowdown,
        memory_us=demand.memory_us,
        peak_us=peak,
        energy_uj=energy,
        hbm_uj=demand.hbm_bytes * load.prices.hbm_pj_per_byte * 1e-6,
        read_bytes=demand.hbm_bytes - demand.written_bytes,
        written_bytes=demand.written_bytes,
    )


def _with_epilogues(load: Load, chosen: tuple[Launch, ...], model: GpuModel) -> Load:
    """What epilogues read besides: after the sums, as fast as a kernel that adds two tensors."""
    beside = np.array([float(launch.beside_bytes) for launch in chosen])
    calls = [Call(kind="sum", params={"n": 0, "moved": b}, dtype="bf16") for b in beside]
    constants = model.constants[between_key(calls[0])]
    more = between(calls, constants, model.chip)
    demand = load.demand
    return replace(
        load,
        demand=replace(
            demand,
            fixed_us=demand.fixed_us + more.time_us() - more.fixed_us,
            hbm_bytes=demand.hbm_bytes + more.hbm_bytes,
            l2_bytes=demand.l2_bytes + beside,
        ),
    )


def _slowdown(load: Load, machine: Machine) -> float:
    """Of the one call; ``InfeasibleError`` if even the lowest clock draws more than the limit."""
    found = steady(load, machine)
    power_w, limit_w = float(found.power_w[0]), machine.chip.power_limit_w
    if power_w > machine.limit_w * (1 + 1e-9):
        detail = f"power at the lowest clock is {power_w:.1f} W, limit {limit_w:g} W"
        raise InfeasibleError(limit="power_limit", needed=power_w, allowed=limit_w, detail=detail)
    return float(found.slowdown[0])


def in_order(load: Load) -> Load:
    """Kernels in the order of their calls, each of which is one kernel."""
    order = np.argsort(load.owner)
    return Load(
        demand=load.demand.reordered(order),
        owner=load.owner[order],
        prices=load.prices.reordered(order),
        devices=load.devices,
    )


def _least(roof: Array, times: Array, energy: Array, model: GpuModel) -> Array:
    """Roofline: peaks of the tensor cores and of the HBM and, over the whole, of the power."""
    needed = float(energy.sum()) / (model.machine.limit_w - model.chip.idle_w)
    missing = max(0.0, needed - float(roof.sum()))
    room = times - roof
    return np.asarray(roof + room * min(1.0, missing / max(float(room.sum()), 1e-12)))


def _rate(call: Call, chip: Chip) -> float:
    """Multiply-adds per microsecond of the whole GPU."""
    if call.kind == "gemm_2of4":
        return chip.sparse_rate(call.dtype) * chip.sms * chip.clock_mhz
    return peak_rate(call, chip) * chip.sms * chip.clock_mhz

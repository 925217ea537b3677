"""GPUs: a workload as the kernels that libraries would run, and prices for loop mappings.

Roofline is the peak of the tensor cores, of the HBM and of the power; analytical the kernel model;
event its thread blocks over time. All are at the highest clock that the power limit allows while
the workload is repeated.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from arch.errors import InputError, Problem
from arch.families.gpu import Board, CudaCores, GpuL2, Hbm, SharedMemory, TensorCores
from arch.spec import PS_PER_S, Architecture, Component, Compute, Memory
from arch.units import format_size
from mapper.cost import ComponentMetrics, InfeasibleError, Metrics, OperatorMetrics, Price
from mapper.workload.graph import Workload
from sim.gpu.chip import Chip
from sim.gpu.constants import gpu_model
from sim.gpu.launches import kernel_groups, never_written, notes_of
from sim.gpu.workload import GpuRun, run_workload
from sim.kernel_models import kernel_model
from sim.memory import peak_live_bytes, size_bytes
from sim.prices import prices

_Part = TypeVar("_Part", bound=Component)


@prices(Hbm)
def hbm(component: Hbm) -> Price:
    return _memory(component)


@prices(GpuL2)
def l2(component: GpuL2) -> Price:
    return _memory(component)


@prices(SharedMemory)
def shared_memory(component: SharedMemory) -> Price:
    return _memory(component)


@prices(TensorCores)
def tensor_cores(component: TensorCores) -> Price:
    return _compute(component)


@prices(CudaCores)
def cuda_cores(component: CudaCores) -> Price:
    return _compute(component)


@prices(Board)
def board(component: Board) -> Price:
    """The board does no work of its own."""
    return Price()


def _memory(memory: Memory) -> Price:
    assert memory.read_bytes_per_s is not None
    ps_per_bit = Fraction(PS_PER_S, 8 * memory.read_bytes_per_s)
    return Price(
        read_ps_per_bit=ps_per_bit,
        write_ps_per_bit=ps_per_bit,
        shared_port=True,
        read_pj_per_bit=memory.read_pj_per_byte / 8,
        write_pj_per_bit=memory.write_pj_per_byte / 8,
    )


def _compute(unit: Compute) -> Price:
    """All instructions of a unit take one cycle; they differ in how much they do."""
    first = unit.intrinsics[0]
    return Price(
        step_ps=first.interval_ps, latency_ps=first.latency_ps, operation_pj=first.energy_pj
    )


def _part(architecture: Architecture, kind: type[_Part]) -> _Part:
    for component in architecture.components:
        if isinstance(component, kind):
            return component
    message = f"{architecture.name} is of family {architecture.family} and has no {kind.__name__}"
    raise InputError(Problem(f"{message}; the kernel model is of GPUs"))


def is_gpu(architecture: Architecture) -> bool:
    return any(isinstance(component, TensorCores) for component in architecture.components)


def chip_of(architecture: Architecture, efficiency: float = 1.0) -> Chip:
    """The peaks of a GPU, for the kernel model; ``InputError`` for other hardware."""
    tensor = _part(architecture, TensorCores)
    cuda = _part(architecture, CudaCores)
    memory, cache, rest = (_part(architecture, kind) for kind in (Hbm, GpuL2, Board))
    shared = _part(architecture, SharedMemory)
    assert isinstance(memory, Hbm)
    assert isinstance(cache, GpuL2)
    assert isinstance(rest, Board)
    assert memory.read_bytes_per_s is not None
    assert cache.read_bytes_per_s is not None
    return Chip(
        name=architecture.name,
        sms=tensor.sms,
        clock_mhz=architecture.clock_hz / 1e6,
        least_clock_mhz=rest.least_clock_hz / 1e6,
        mma=tensor.macs_per_cycle,
        sparse_mma=tensor.sparse_macs_per_cycle,
        fma=cuda.lanes,
        sfu=cuda.special_functions,
        hbm_bytes_per_us=memory.read_bytes_per_s / 1e6,
        l2_bytes=cache.size_bytes,
        l2_bytes_per_us=cache.read_bytes_per_s / 1e6,
        shared_bytes=shared.size_bytes // tensor.sms,
        link_bytes_per_us=rest.link_bytes_per_s / 1e6,
        power_limit_w=rest.power_limit_w,
        idle_w=rest.idle_w,
        tensor_path=tensor.path,
        efficiency=efficiency,
    )


PS_PER_US = 10**6
PJ_PER_UJ = 1e6


@kernel_model("gpu")
def run(workload: Workload, architecture: Architecture, fidelity: str) -> Metrics:
    """The metrics of a workload on a GPU, repeated without a pause.

    Raises ``InfeasibleError`` if its weights and what is alive at the worst moment do not fit into
    the HBM.
    """
    store = _part(architecture, Hbm)
    needed = _held(workload, architecture, store)
    chip = chip_of(architecture)
    board = _part(architecture, Board)
    found = run_workload(workload, gpu_model(chip), board.epilogues)
    times = {"roofline": found.least_us, "analytical": found.times_us, "event": found.event_us}
    latencies = [round(float(us) * PS_PER_US) for us in times[fidelity]]
    operators = tuple(
        _operator(number, latency_ps, found, architecture, fidelity)
        for number, latency_ps in enumerate(latencies)
    )
    whole = _assembled(workload, architecture, fidelity, {store.name: needed}, operators)
    return replace(whole, notes=notes_of(found.launches))


def _held(workload: Workload, architecture: Architecture, store: Hbm) -> int:
    """Bytes of the HBM that are needed; scores of fused attention never get there."""
    groups = kernel_groups(workload)
    needed = peak_live_bytes(workload, never_written(groups), groups)
    if needed > store.size_bytes:
        parameters = sum(size_bytes(t) for t in workload.tensors if t.kind == "weight")
        raise InfeasibleError(
            limit=f"capacity of {store.name} in bytes",
            needed=needed,
            allowed=store.size_bytes,
            detail=(
                f"weights take {format_size(parameters)}, what is alive besides at the worst "
                f"moment {format_size(needed - parameters)}, {architecture.name} has "
                f"{format_size(store.size_bytes)}; smaller batch, context or number format?"
            ),
        )
    return needed


def _operator(
    number: int, latency_ps: int, found: GpuRun, architecture: Architecture, fidelity: str
) -> OperatorMetrics:
    launch = found.launches[number]
    components = _components(number, latency_ps, found, architecture)
    busiest = max(components.values(), key=lambda part: part.busy_ps)
    names = [name for name, part in components.items() if part is busiest]
    return OperatorMetrics(
        name=launch.name,
        latency_ps=latency_ps,
        energy_pj=sum(c.energy_pj for c in components.values()),
        bound_by=names[0] if busiest.busy_ps > latency_ps / 2 else "latency",
        macs=launch.macs,
        components=components,
        gap=_gap(number, latency_ps, found) if fidelity == "event" else {},
        kind="after it" if launch.is_after else "fused",
    )


def _components(
    number: int, latency_ps: int, found: GpuRun, architecture: Architecture
) -> dict[str, ComponentMetrics]:
    """HBM, tensor cores and the board: how long each is kept busy, and the share that is used.

    The tensor cores are used for what their peak would take, the HBM for as long as it is busy.
    """
    rest = _part(architecture, Board)
    core_ps, memory_ps, peak_ps = (
        min(latency_ps, round(float(us[number]) * PS_PER_US))
        for us in (found.core_us, found.memory_us, found.peak_us)
    )
    energy, in_hbm = (float(e[number]) * PJ_PER_UJ for e in (found.energy_uj, found.hbm_uj))

    def part(busy_ps: int, energy_pj: float, used_ps: int) -> ComponentMetrics:
        return ComponentMetrics(
            busy_ps=busy_ps,
            energy_pj=energy_pj,
            read_bytes=0,
            write_bytes=0,
            utilization=used_ps / latency_ps if latency_ps else 0.0,
        )

    memory = replace(
        part(memory_ps, in_hbm, memory_ps),
        read_bytes=int(found.read_bytes[number]),
        write_bytes=int(found.written_bytes[number]),
    )
    return {
        _part(architecture, Hbm).name: memory,
        _part(architecture, TensorCores).name: part(core_ps, energy - in_hbm, peak_ps),
        rest.name: part(0, rest.idle_w * latency_ps, 0),
    }


def _gap(number: int, latency_ps: int, found: GpuRun) -> dict[str, int]:
    """Why the event simulation is above the analytical time: blocks that start one by one, and
    rounds of blocks that do not overlap with each other."""
    analytical_ps = round(float(found.times_us[number]) * PS_PER_US)
    gap_ps = latency_ps - analytical_ps
    dispatch_ps = max(0, min(gap_ps, round(float(found.dispatch_us[number]) * PS_PER_US)))
    rest_ps = gap_ps - dispatch_ps
    return {cause: ps for cause, ps in (("dispatch", dispatch_ps), ("rounds", rest_ps)) if ps}


def _assembled(
    workload: Workload,
    architecture: Architecture,
    fidelity: str,
    memory: dict[str, int],
    operators: tuple[OperatorMetrics, ...],
) -> Metrics:
    latency_ps = sum(o.latency_ps for o in operators)
    energy_pj = sum(o.energy_pj for o in operators)
    return Metrics(
        fidelity=fidelity,
        latency_ps=latency_ps,
        energy_pj=energy_pj,
        dynamic_energy_pj=energy_pj - architecture.leakage_w * latency_ps,
        area_mm2=architecture.area_mm2,
        power_w=energy_pj / latency_ps,
        macs=workload.macs,
        memory=memory,
        components={name: _sum(name, operators, latency_ps) for name in operators[0].components},
        operators=operators,
    )


def _sum(name: str, operators: tuple[OperatorMetrics, ...], latency_ps: int) -> ComponentMetrics:
    parts = [(o.components[name], o.latency_ps) for o in operators]
    return ComponentMetrics(
        busy_ps=sum(p.busy_ps for p, _ in parts),
        energy_pj=sum(p.energy_pj for p, _ in parts),
        read_bytes=sum(p.read_bytes for p, _ in parts),
        write_bytes=sum(p.write_bytes for p, _ in parts),
        utilization=sum(p.utilization * ps for p, ps in parts) / latency_ps,
    )

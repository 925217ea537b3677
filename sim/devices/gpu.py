"""Prices of the components of family ``gpu``, and what its kernel model reads from them."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

from arch.errors import InputError, Problem
from arch.families.gpu import Board, CudaCores, GpuL2, Hbm, SharedMemory, TensorCores
from arch.spec import PS_PER_S, Architecture, Component, Compute, Memory
from mapper.cost import Price
from sim.gpu.chip import Chip
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
        fma=cuda.lanes,
        sfu=cuda.special_functions,
        hbm_bytes_per_us=memory.read_bytes_per_s / 1e6,
        l2_bytes=cache.size_bytes,
        l2_bytes_per_us=cache.read_bytes_per_s / 1e6,
        link_bytes_per_us=rest.link_bytes_per_s / 1e6,
        power_limit_w=rest.power_limit_w,
        idle_w=rest.idle_w,
        tensor_path=tensor.path,
        efficiency=efficiency,
    )

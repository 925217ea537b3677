"""A network on a microcontroller: its plan and its cycles, by the kernels that run there."""

from __future__ import annotations

import math
from functools import lru_cache

from arch.families.mcu import Kernels, McuCore
from arch.spec import PS_PER_S, Architecture, Memory
from mapper.memory_plan.layers import Layer, layers_of
from mapper.memory_plan.plan import MemoryPlan
from mapper.memory_plan.planners import Request, plan, tradeoffs
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator


def is_planned(architecture: Architecture) -> bool:
    """Whether the architecture is a microcontroller, whose SRAM is planned."""
    return any(isinstance(c, McuCore) for c in architecture.components)


def core_of(architecture: Architecture) -> McuCore:
    """The core of a microcontroller; ``LookupError`` for any other hardware."""
    return next(c for c in architecture.components if isinstance(c, McuCore))


def plan_on(workload: Workload, architecture: Architecture) -> MemoryPlan:
    """The plan of the device's planner, within the limits of memory and time if it has any; the
    fastest one has what the SRAM leaves beside the reserved bytes."""
    core = core_of(architecture)
    limits = (
        [free_bytes(architecture, workload)] if core.kernels.goal == "fastest_that_fits" else []
    )
    if core.kernels.ram_limit_bytes is not None:
        limits.append(core.kernels.ram_limit_bytes)
    return _planned(workload, core, min(limits, default=None), _most_cycles(workload, architecture))


def free_bytes(architecture: Architecture, workload: Workload) -> int:
    """SRAM for a plan: without what is reserved, and without weights that lie there."""
    weights = weights_in_sram(core_of(architecture).kernels, layers_of(workload))
    return free_sram_bytes(architecture) - weights


def tradeoffs_on(workload: Workload, architecture: Architecture) -> list[tuple[int, int]]:
    """Bytes and latency (picoseconds) of the plans that ``optimal`` chooses from, by memory."""
    core = core_of(architecture)
    found = tradeoffs(_request(workload, core, None, None)).found
    reading_ps = weights_ps(workload, architecture)
    return [
        (r.size_bytes, round(r.cycles * PS_PER_S / architecture.clock_hz) + reading_ps)
        for r in found
    ]


def weights_ps(workload: Workload, architecture: Architecture) -> int:
    """Time to read all weights once, from where they lie."""
    store = weight_memory(architecture)
    assert store.read_bytes_per_s is not None
    total = sum(layer.weight_bytes for layer in layers_of(workload))
    return -(-total * PS_PER_S // store.read_bytes_per_s)


def weight_memory(architecture: Architecture) -> Memory:
    """The memory that kernels read weights from."""
    flash, sram = architecture.memories[0], architecture.memories[1]
    return sram if core_of(architecture).kernels.weights_in == "sram" else flash


def _most_cycles(workload: Workload, architecture: Architecture) -> float | None:
    """What the limit of time leaves when all weights are read once."""
    limit = core_of(architecture).kernels.latency_limit_ps
    if limit is None:
        return None
    # Every layer's time is rounded up to a picosecond, twice.
    left_ps = limit - weights_ps(workload, architecture) - 2 * len(workload.operators)
    return max(0, left_ps) * architecture.clock_hz / PS_PER_S


@lru_cache(maxsize=64)
def _planned(
    workload: Workload, core: McuCore, ram_bytes: int | None, most_cycles: float | None
) -> MemoryPlan:
    return plan(core.kernels.planner, _request(workload, core, ram_bytes, most_cycles))


def _request(
    workload: Workload, core: McuCore, ram_bytes: int | None, most_cycles: float | None
) -> Request:
    def cycles(layer: Layer, macs: int, accesses: int) -> float:
        return layer_cycles(core.kernels, layer, macs, accesses)

    return Request(workload=workload, cycles=cycles, ram_bytes=ram_bytes, most_cycles=most_cycles)


def layer_cycles(kernels: Kernels, layer: Layer, macs: int, accesses: int) -> float:
    """Cycles of a layer that computes ``macs`` (with repetitions) and addresses a ring.

    The values that it makes are repeated as its multiply-accumulates are.
    """
    rate = kernels.rates[layer.kind]
    again = macs / layer.macs if layer.macs else 1.0
    work = macs if layer.macs else layer.operations
    outputs = again * layer.output.size_bytes / layer.output.bytes_per_value
    return (
        rate.per_mac * work
        + rate.per_output * outputs
        + kernels.per_segment * accesses
        + kernels.per_layer
    )


def operator_cycles(kernels: Kernels, operator: Operator) -> int:
    """Cycles of any operator, of a backward pass too, by the rates of the kind that it is like.

    No library was measured on backward passes: a product costs what it costs forward.
    """
    spatial = operator.operation == "mac" and len(operator.output.index) == 4
    products = {True: "depthwise" if "G" in operator.extents else "conv2d", False: "dense"}
    kind = products[spatial] if operator.operation == "mac" else "other"
    outputs = math.prod(e for d, e in operator.extents.items() if d in operator.output.dims)
    rate = kernels.rates[kind]
    cycles = rate.per_mac * operator.operations + rate.per_output * outputs + kernels.per_layer
    return math.ceil(cycles)


def free_sram_bytes(architecture: Architecture) -> int:
    """What the SRAM leaves beside the reserved bytes."""
    sram = next(m for m in architecture.memories if "input" in m.roles)
    return sram.size_bytes - core_of(architecture).kernels.reserved_bytes


def flash_bytes(kernels: Kernels, layers: tuple[Layer, ...]) -> int:
    """Weights, what comes with every output channel, and code."""
    return parameter_bytes(kernels, layers) + kernels.code_bytes


def parameter_bytes(kernels: Kernels, layers: tuple[Layer, ...]) -> int:
    """Weights, and what comes with every output channel."""
    channels = sum(layer.output.channels for layer in layers if layer.weight_bytes)
    weights = sum(layer.weight_bytes for layer in layers)
    return weights + kernels.bytes_per_channel * channels


def weights_in_sram(kernels: Kernels, layers: tuple[Layer, ...]) -> int:
    """What the SRAM holds of them."""
    return parameter_bytes(kernels, layers) if kernels.weights_in == "sram" else 0

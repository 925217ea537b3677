"""A network on a microcontroller: its plan and its cycles, by the kernels that run there."""

from __future__ import annotations

import math
from functools import lru_cache

from arch.families.mcu import Kernels, McuCore
from arch.spec import Architecture
from mapper.memory_plan.layers import Layer
from mapper.memory_plan.plan import MemoryPlan
from mapper.memory_plan.planners import Request, plan
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator


def is_planned(architecture: Architecture) -> bool:
    """Whether the architecture is a microcontroller, whose SRAM is planned."""
    return any(isinstance(c, McuCore) for c in architecture.components)


def core_of(architecture: Architecture) -> McuCore:
    """The core of a microcontroller; ``LookupError`` for any other hardware."""
    return next(c for c in architecture.components if isinstance(c, McuCore))


def plan_on(workload: Workload, architecture: Architecture) -> MemoryPlan:
    """The plan of the device's planner; the fastest one has what the SRAM leaves beside the
    reserved bytes."""
    core = core_of(architecture)
    limit = free_sram_bytes(architecture) if core.kernels.goal == "fastest_that_fits" else None
    return _planned(workload, core, limit)


@lru_cache(maxsize=64)
def _planned(workload: Workload, core: McuCore, ram_bytes: int | None) -> MemoryPlan:
    kernels = core.kernels

    def cycles(layer: Layer, macs: int, accesses: int) -> float:
        return layer_cycles(kernels, layer, macs, accesses)

    return plan(kernels.planner, Request(workload=workload, cycles=cycles, ram_bytes=ram_bytes))


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
    channels = sum(layer.output.channels for layer in layers if layer.weight_bytes)
    weights = sum(layer.weight_bytes for layer in layers)
    return weights + kernels.bytes_per_channel * channels + kernels.code_bytes

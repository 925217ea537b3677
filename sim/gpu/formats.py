"""In which format a kernel computes whose operands are stored in different ones.

Weights narrower than the activations are widened by the kernel's thread blocks, each for itself:
the tensor cores compute in the activations' format, memories move the weights' bytes. Keys and
values likewise. Everything that is no product is in 16 bits at the narrowest, as libraries have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from arch.datatypes import bits_of, datatype
from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from sim.gpu.chip import BYTES, Chip
from sim.gpu.demand import Array, Call, Demand
from sim.gpu.launch import Launch
from sim.gpu.power import Load

#: Formats that kernels widen others to: activations of products, queries of attention.
WIDENING = ("bf16", "fp16", "int8")
QUERIES = ("bf16", "fp16")

#: Weights that an SM widens in a cycle, and the rows of activations that share them, fitted to the
#: four shapes of ``gemm_w4a16`` in kernels_ref/data/h200_fused.csv: Triton kernels of our own,
#: since torch's is slower but for one row. docs/validation.md has what is left over.
WIDENED_PER_CYCLE = 11.0
ROWS = 128
#: Of the tensor cores' peak, what such kernels reach besides.
REACHED = 0.9
#: ``gemm_w4a8`` widens while the tensor cores work, as its largest shape shows.
HIDDEN = ("int8",)
#: Widths of the weights that were measured, scales included; wider ones are priced alike.
MOST_MEASURED_BITS = 4.5

AS_STORED = "bytes as stored, computed in"


def wide(dtype: str) -> str:
    """What is no product."""
    return dtype if dtype in ("bf16", "fp16", "fp32") else "bf16"


def product_format(workload: Workload, operator: Operator) -> tuple[str, str]:
    """Of a product: the format it computes in and a note, if weights are stored in another one."""
    activations, weights = (workload.tensor(a.tensor).dtype for a in operator.inputs[:2])
    if weights == activations:
        if activations not in BYTES:
            message = f"{operator.name} is in {activations}"
            raise _refusal(workload, f"{message}; the kernel model has {', '.join(BYTES)}")
        return activations, ""
    if not _widens(activations, weights):
        message = (
            f"{operator.name} multiplies {activations} with {weights}; GPU kernels widen narrower "
            f"weights to {', '.join(WIDENING)} (to int8 only integers), and else need equal formats"
        )
        raise _refusal(workload, message)
    what = "weights" if workload.tensor(operator.inputs[1].tensor).kind == "weight" else "operands"
    measured = "" if bits_of(weights) <= MOST_MEASURED_BITS else " (not measured)"
    return activations, f"{weights} {what}: {AS_STORED} {activations}{measured}"


def _widens(activations: str, weights: str) -> bool:
    if activations not in WIDENING or bits_of(weights) >= bits_of(activations):
        return False
    return datatype(activations).is_float or not datatype(weights).is_float


def attention_format(workload: Workload, operator: Operator, caches: Sequence[str]) -> str:
    """The format that a kernel of attention computes in, with these keys and values."""
    query = workload.tensor(operator.inputs[0].tensor).dtype
    if query not in BYTES:
        message = f"{operator.name} is in {query}; the kernel model has {', '.join(BYTES)}"
        raise _refusal(workload, message)
    kernel = wide(query)
    for dtype in sorted({workload.tensor(name).dtype for name in caches} - {query, kernel}):
        if kernel not in QUERIES or bits_of(dtype) >= bits_of(kernel):
            message = (
                f"{operator.name} has {query} queries and {dtype} keys and values; GPU kernels "
                f"widen narrower ones to {' or '.join(QUERIES)}, and else need equal formats"
            )
            raise _refusal(workload, message)
    return kernel


def narrow_caches(workload: Workload, operator: Operator, caches: Sequence[str]) -> list[str]:
    """Those that are narrower than what their kernel computes in.

    What an operator before has written is there as the kernel wants it, unless the workload asks
    for a format of its own.
    """
    query = workload.tensor(operator.inputs[0].tensor).dtype
    tensors = [workload.tensor(name) for name in caches]
    return [
        tensor.name
        for tensor in tensors
        if tensor.bits < 8 * BYTES[wide(query)]
        and (tensor.dtype != query or tensor.kind != "activation")
    ]


def spared(workload: Workload, name: str, kernel: str, elements: int) -> int:
    """Bytes that so many elements of a tensor take less than in the kernel's format."""
    return elements * BYTES[kernel] - int(elements * workload.tensor(name).bits / 8)


def note_of(workload: Workload, caches: Sequence[str], kernel: str) -> str:
    dtypes = sorted({workload.tensor(name).dtype for name in caches})
    if not dtypes:
        return ""
    return f"{' and '.join(dtypes)} keys and values: {AS_STORED} {kernel} (not measured)"


def spared_weights(workload: Workload, operator: Operator, call: Call) -> tuple[int, int]:
    """Of a product: bytes that its weights take less, and how many values its blocks widen."""
    p = call.params
    weights = p.get("B", 1) * p["N"] * p["K"]
    stored = workload.tensor(operator.inputs[1].tensor)
    less = weights * BYTES[call.dtype] - int(weights * stored.bits / 8)
    return less, weights * -(-p["M"] // ROWS)


def with_formats(load: Load, chosen: Sequence[Launch], chip: Chip) -> Load:
    """Narrower operands: fewer bytes, and widening them."""
    less = np.array([float(launch.spared_bytes) for launch in chosen])
    if not less.any():
        return load
    demand = load.demand
    left = 1 - np.minimum(1.0, less / np.maximum(demand.hbm_bytes, 1.0))
    widened = np.array([float(launch.widened) for launch in chosen])
    return replace(
        load,
        demand=replace(
            demand,
            core_us=_core(demand, chosen, left, chip),
            memory_us=demand.memory_us * left,
            hbm_bytes=demand.hbm_bytes * left,
            l2_bytes=demand.l2_bytes * left,
            scalar=demand.scalar + widened,
        ),
    )


def _core(demand: Demand, chosen: Sequence[Launch], left: Array, chip: Chip) -> Array:
    """Blocks load less, multiply as much, and widen before they multiply or meanwhile."""
    widened = np.array([float(launch.widened) for launch in chosen])
    hidden = np.array([launch.call.dtype in HIDDEN for launch in chosen])
    rates = np.array([chip.rate(launch.call.dtype) * REACHED for launch in chosen])
    cycles = chip.sms * chip.clock_mhz
    products = np.minimum(demand.core_us, demand.macs / (rates * cycles))
    loaded = np.maximum(products, demand.core_us * left)
    widening = widened / (WIDENED_PER_CYCLE * cycles)
    both = np.where(hidden, np.maximum(loaded, widening), loaded + widening)
    return np.asarray(np.where(widened > 0, both, demand.core_us))


def _refusal(workload: Workload, message: str) -> InputError:
    return InputError(Problem(message, where=f"workload {workload.name}"))

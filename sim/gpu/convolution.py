"""Convolutions, channels last: a product over gathered inputs, or one thread per output.

A dense convolution is a matrix product of ``N * P * Q`` rows whose A is gathered from the input
(implicit GEMM); one of 1x1 with stride 1 is a plain product. A depthwise one has no reuse over
channels and runs on the CUDA cores. Others with groups are repacked first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sim.gpu import gemm
from sim.gpu.chip import BYTES, Chip
from sim.gpu.demand import Array, Call, Constants, Demand, sizes, warm_up_us

#: A step of the reduction takes so many channels of one tap: fewer leave lanes idle.
CHANNEL_STEP = 32

#: Kernels of at least this size run on the older instructions (mma), whatever the channels.
LARGE_KERNEL = 7

#: Batches of at least this many images have a depthwise kernel of their own.
LARGE_BATCH = 8


def conv_key(call: Call) -> str:
    p, size = call.params, BYTES[call.dtype]
    if p["groups"] == p["C"] and p["C"] == p["K"] and p["groups"] > 1:
        return f"conv2d.depthwise{'' if p['N'] < LARGE_BATCH or size == 4 else '_batch'}"
    if p["groups"] > 1:
        return "conv2d.grouped2" if p["groups"] == 2 else "conv2d.grouped"
    if p["R"] == 1 and p["stride"] == 1 and p["C"] % 8 == 0 and p["K"] % 8 == 0 and size == 2:
        return "conv2d.plain"
    shape = "padded" if p["C"] % 8 else "large" if p["R"] >= LARGE_KERNEL else "implicit"
    return f"conv2d.{shape}{size}"


def output_side(h: Array, r: Array, stride: Array) -> Array:
    return np.asarray(np.floor((h + 2 * np.floor(r / 2) - r) / stride) + 1)


def convolution(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    functions = {
        "conv2d.depthwise": _depthwise,
        "conv2d.depthwise_batch": _depthwise,
        "conv2d.grouped": _grouped,
        "conv2d.grouped2": _grouped,
    }
    return functions.get(conv_key(calls[0]), _implicit)(calls, constants, chip)


def _tensors(calls: Sequence[Call]) -> tuple[Array, Array, Array]:
    """Bytes of input and weights, pixels of the result, bytes of the result."""
    n, c, h, k, r, stride, groups = sizes(calls, "N", "C", "H", "K", "R", "stride", "groups")
    size = np.array([float(BYTES[call.dtype]) for call in calls])
    pixels = n * output_side(h, r, stride) ** 2
    used = np.where(r < stride, (r / stride) ** 2, 1.0)
    inputs = n * h * h * c * size * used + k * r * r * c / groups * size
    return inputs, pixels, pixels * k * size


def _implicit(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    c, k, r = sizes(calls, "C", "K", "R")
    inputs, pixels, _ = _tensors(calls)
    path = "wgmma" if conv_key(calls[0]) == "conv2d.plain" else "conv"
    products = gemm.Products(
        batch=np.ones_like(c),
        m=pixels,
        n=k,
        k=np.ceil(c / CHANNEL_STEP) * CHANNEL_STEP * r * r,
        dtype=calls[0].dtype,
        path=path,
        result_bytes=BYTES[calls[0].dtype],
        operand_bytes=inputs,
    )
    tf32 = {**chip.mma, "fp32": chip.mma["bf16"] / 2}
    return gemm.demand(products, constants, replace(chip, mma=tf32))


def _direct(
    calls: Sequence[Call], moved: Array, core: Array, constants: Constants, chip: Chip
) -> Demand:
    zeros = np.zeros_like(moved)
    return Demand(
        core_us=core,
        memory_us=moved / (chip.hbm_bytes_per_us * constants["hbm"]),
        fixed_us=warm_up_us(moved, constants),
        overlap=zeros + constants["overlap"],
        macs=zeros,
        scalar=moved,
        hbm_bytes=moved,
        l2_bytes=moved,
    )


def _depthwise(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    k, r = sizes(calls, "K", "R")
    inputs, pixels, result = _tensors(calls)
    rate = chip.sms * chip.clock_mhz
    taps = r**2 + constants["output_cycles"]
    core = pixels * k * taps * constants["tap_cycles"] / rate
    alone = constants["tap_latency_us"] * r**2
    demand = _direct(calls, inputs + result, core, constants, chip)
    return replace(demand, fixed_us=demand.fixed_us + alone)


def _grouped(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    c, r, groups = sizes(calls, "C", "R", "groups")
    inputs, pixels, result = _tensors(calls)
    (k,) = sizes(calls, "K")
    moved = (inputs + result) * constants["passes"]
    rate = chip.mma["bf16"] * chip.sms * chip.clock_mhz * constants["rate"]
    core = pixels * k * c * r * r / groups / rate
    demand = _direct(calls, moved, core, constants, chip)
    return replace(demand, fixed_us=demand.fixed_us + constants["group_us"] * groups)

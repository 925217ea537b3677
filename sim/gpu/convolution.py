"""Convolutions, channels last: a product over gathered inputs, or one thread per output.

A dense convolution is a matrix product of ``N * P * Q`` rows whose A is gathered from the input
(implicit GEMM), after padding channels if need be; one of 1x1 with stride 1 is a plain product. A
depthwise one has no reuse over channels and runs on the CUDA cores. Others with groups are cut or
repacked first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sim.gpu import blocks, gemm
from sim.gpu.chip import BYTES, Chip
from sim.gpu.demand import Array, Call, Constants, Demand, fastest, sizes, warm_up_us
from sim.gpu.products import product, product_key

#: Bytes to whose multiples channels are padded, for the tensor cores.
CHANNEL_BYTES = 16

#: Groups of fewer channels run on the CUDA cores; several of at most so many are repacked.
NARROW_GROUP = 4
THIN_GROUP = 16
#: Groups of equally many channels in and out, up to this many, have kernels that know groups.
SQUARE_GROUP = 32

#: Kernels of at least this size run on the older instructions (mma), whatever the channels.
LARGE_KERNEL = 7

#: Batches of at least this many images have a depthwise kernel of their own.
LARGE_BATCH = 8


def conv_key(call: Call) -> str:
    """Depthwise, grouped, a plain product (1x1), or gathered (``dense``)."""
    p, size = call.params, BYTES[call.dtype]
    if p["groups"] == p["C"] == p["K"] and p["groups"] > 1:
        return f"conv2d.depthwise{_depthwise_class(call)}"
    if p["groups"] > 1:
        return f"conv2d.grouped{_grouped_class(call)}"
    if p["R"] == 1 and p["stride"] == 1 and size == 2:
        key = product_key(_as_product(call))
        return "conv2d.plain" if key == "gemm.wgmma.2" else key
    return f"conv2d.{'large' if p['R'] >= LARGE_KERNEL else 'dense'}{size}"


def correction_group(call: Call) -> str:
    """Convolutions whose times are corrected together: a class belongs to one of these."""
    p = call.params
    if p["groups"] > 1:
        return "depthwise" if p["groups"] == p["C"] == p["K"] else "grouped"
    if BYTES[call.dtype] == 4:
        return "fp32"
    return "plain" if p["R"] == p["stride"] == 1 else "dense"


def _depthwise_class(call: Call) -> str:
    p = call.params
    if p["C"] < CHANNEL_BYTES // 2 or p["R"] < p["stride"]:
        return ".direct"
    return ".batch" if p["N"] >= LARGE_BATCH and BYTES[call.dtype] == 2 else ""


def _grouped_class(call: Call) -> str:
    """Groups whose channels fill 16 bytes are cut out one by one; others are repacked together."""
    p, size = call.params, BYTES[call.dtype]
    depth, width = p["C"] // p["groups"], p["K"] // p["groups"]
    each = math.gcd(depth, width)
    if depth == width <= SQUARE_GROUP:
        return f".native{size}"
    if size == 4:
        return ".fp32"
    if depth < NARROW_GROUP:
        return ".narrow"
    thin = p["groups"] > 2 and depth <= THIN_GROUP and p["R"] < LARGE_KERNEL
    cut = each * size % CHANNEL_BYTES == 0 and p["R"] > 1 and not thin
    return ".cut" if cut else ".repacked"


def _as_product(call: Call) -> Call:
    p = call.params
    return Call(
        kind="gemm",
        params={"M": p["N"] * p["H"] ** 2, "N": p["K"], "K": p["C"]},
        dtype=call.dtype,
    )


def output_side(h: Array, r: Array, stride: Array) -> Array:
    return np.asarray(np.floor((h + 2 * np.floor(r / 2) - r) / stride) + 1)


def convolution(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    functions = {
        "depthwise": _depthwise,
        "grouped": _grouped,
        "plain": _plain,
        "dense2": _dense,
        "dense4": _dense,
        "large2": _dense,
        "large4": _dense,
    }
    key = conv_key(calls[0])
    kind, name = key.split(".")[:2]
    if kind == "conv2d":
        return functions[name](calls, constants, chip)
    return product([_as_product(call) for call in calls], constants, chip)


def _plain(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    c, k = sizes(calls, "C", "K")
    inputs, pixels, _ = _tensors(calls)
    return gemm.demand(
        gemm.Products(
            batch=np.ones_like(c),
            m=pixels,
            n=k,
            k=c,
            dtype=calls[0].dtype,
            path=chip.tensor_path,
            result_bytes=BYTES[calls[0].dtype],
            operand_bytes=inputs,
        ),
        constants,
        chip,
    )


def _tensors(calls: Sequence[Call]) -> tuple[Array, Array, Array]:
    """Bytes of input and weights, pixels of the result, bytes of the result."""
    n, c, h, k, r, stride, groups = sizes(calls, "N", "C", "H", "K", "R", "stride", "groups")
    size = np.array([float(BYTES[call.dtype]) for call in calls])
    pixels = n * output_side(h, r, stride) ** 2
    used = np.where(r < stride, (r / stride) ** 2, 1.0)
    inputs = n * h * h * c * size * used + k * r * r * c / groups * size
    return inputs, pixels, pixels * k * size


def _dense(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    """With padded channels on the tensor cores, or as they are on the CUDA cores."""
    return fastest([_padded(calls, constants, chip), _unpadded(calls, constants, chip)])


def _gathered(calls: Sequence[Call], path: str, channels: Array, results: Array) -> gemm.Products:
    """The product of a convolution with so many channels."""
    c, r = sizes(calls, "C", "R")
    inputs, pixels, _ = _tensors(calls)
    return gemm.Products(
        batch=np.ones_like(c),
        m=pixels,
        n=results,
        k=channels * r * r,
        dtype=calls[0].dtype,
        path=path,
        result_bytes=BYTES[calls[0].dtype],
        operand_bytes=inputs * channels / c,
        taps=r * r,
    )


def _unpadded(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    c, k = sizes(calls, "C", "K")
    products = replace(_gathered(calls, "conv2d.direct", c, k), dtype="fp32", taps=None)
    return blocks.demand(products, constants, chip)


def _padded(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    """Channels that do not fill 16 bytes are padded before, and cut off after the product, by
    kernels that copy the whole tensor."""
    c, k = sizes(calls, "C", "K")
    unit = CHANNEL_BYTES // BYTES[calls[0].dtype]
    channels, results = np.ceil(c / unit) * unit, np.ceil(k / unit) * unit
    inputs, _, result = _tensors(calls)
    products = _gathered(calls, conv_key(calls[0]), channels, results)
    tf32 = {**chip.mma, "fp32": chip.mma["bf16"] / 2}
    demand = blocks.demand(products, constants, replace(chip, mma=tf32))
    before, after = channels > c, results > k
    copied = np.where(before, inputs * (1 + channels / c), 0) + np.where(after, 2 * result, 0)
    copies = 2.0 * before + after + (after & ~before)
    bandwidth = chip.hbm_bytes_per_us * constants["copy_hbm"]
    copy_us = copies * constants["copy_us"] + copied / bandwidth
    return replace(
        demand,
        fixed_us=demand.fixed_us + copy_us,
        hbm_bytes=demand.hbm_bytes + copied,
        written_bytes=demand.written_bytes + copied / 2,
    )


def _direct(
    calls: Sequence[Call], moved: Array, core: Array, constants: Constants, chip: Chip
) -> Demand:
    _, _, result = _tensors(calls)
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
        written_bytes=result,
        rounds=zeros + 1,
        last_share=zeros + 1,
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
    """Copies of input and result to and from packed groups, and a product of each group."""
    c, k, r, groups = sizes(calls, "C", "K", "R", "groups")
    inputs, pixels, result = _tensors(calls)
    copied = inputs * constants["input_passes"] + result * constants["result_passes"]
    rate = chip.mma["bf16"] * chip.sms * chip.clock_mhz * constants["rate"]
    core = pixels * k * c * r * r / groups / rate
    demand = _direct(calls, copied, core, constants, chip)
    return replace(demand, fixed_us=demand.fixed_us + constants["group_us"] * groups)

"""Kernels that stream through memory: elementwise ones and those along rows.

A row kernel is latency (of a row that is alone) and throughput (of all rows); which of a library's
kernels runs depends on the length of the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sim.gpu.chip import BYTES, Chip, chip_scale
from sim.gpu.demand import Array, Call, Constants, Demand, missing_share, sizes, warm_up_us

#: Tensors read and written by an elementwise kernel.
ELEMENTWISE_TENSORS = {"ew_add": 3, "ew_gelu": 2, "ew_scale": 2}


def elementwise_key(call: Call) -> str:
    return f"{call.kind}.{BYTES[call.dtype]}"


def elementwise(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    (n,) = sizes(calls, "n")
    tensors = np.array([ELEMENTWISE_TENSORS[c.kind] * BYTES[c.dtype] for c in calls])
    written = n * np.array([float(BYTES[c.dtype]) for c in calls])
    return _streaming(
        (n * tensors - written, written),
        n * constants["cycles"] / chip.sms / chip.clock_mhz,
        n,
        constants,
        chip,
    )


def _streaming(
    bytes_each: tuple[Array, Array],
    core_us: Array,
    scalar: Array,
    constants: Constants,
    chip: Chip,
) -> Demand:
    """Of bytes read and written."""
    moved = bytes_each[0] + bytes_each[1]
    zeros = np.zeros_like(moved)
    return Demand(
        core_us=core_us,
        memory_us=moved / (chip.hbm_bytes_per_us * constants["hbm"]),
        fixed_us=warm_up_us(moved, constants),
        overlap=zeros + constants["overlap"],
        macs=zeros,
        scalar=scalar,
        hbm_bytes=moved,
        l2_bytes=moved,
        written_bytes=bytes_each[1],
        rounds=zeros + 1,
        last_share=zeros + 1,
    )


def _softmax_class(call: Call) -> str:
    """One warp per row, or a block that keeps the row in registers, in shared memory, or nowhere.

    Limits as in torch's ``SoftMax.cu``: 1024 threads hold 8 or 9 values each, a block's shared
    memory is 48 KiB, 16-byte accesses need aligned rows.
    """
    cols, size = call.params["C"], BYTES[call.dtype]
    if cols <= 2048 and cols * size <= 8192:
        return "warp"
    if cols <= 9216:
        return "registers"
    aligned = cols * size % 16 == 0
    return "shared" if aligned and cols * size < 48 * 1024 else "block"


def _layernorm_class(call: Call) -> str:
    return "vector" if call.params["C"] % 4 == 0 else "plain"


def _sum_class(call: Call) -> str:
    """A row per warp, or per block if a thread would have more than 256 values of its row.

    Short rows share a warp; below 128 values loads are of single elements.
    """
    cols = call.params["C"]
    if cols < 256:
        return "short" if cols < 128 else "pair"
    return "warp" if cols < SUM_THREADS * 16 else "block"


#: Threads of a block that adds up rows (torch's ``Reduce.cuh``): a warp for each of 16 rows, more
#: for each of fewer, all for one long row.
SUM_THREADS = 512

ROW_CLASSES = {
    "row_softmax": _softmax_class,
    "row_layernorm": _layernorm_class,
    "row_sum": _sum_class,
}


def row_key(call: Call) -> str:
    return f"{call.kind}.{ROW_CLASSES[call.kind](call)}"


def _per_thread(calls: Sequence[Call], count: Array, cols: Array) -> Array:
    """Values of a row that one thread goes through, up to a factor common to the class."""
    together = np.minimum(16, 2 ** np.floor(np.log2(np.maximum(count, 1))))
    return np.where(
        [row_key(c) in ("row_sum.warp", "row_sum.pair") for c in calls], cols * together / 16, cols
    )


#: Softmax with so many values per row in the registers of one warp has few warps on an SM.
HEAVY_COLS = 2048

#: Row bytes at which half of a second pass over the row misses the L1.
L1_ROW_BYTES = 16_384


#: Kernels that read a row twice, and of how many rows an SM does so at once: blocks of 128 threads.
SECOND_PASS = ("row_layernorm.vector", "row_softmax.block")
ROWS_OF_SM = 16


def _spilled(count: Array, row_bytes: Array, chip: Chip) -> Array:
    """How much of a second pass finds its rows neither in the L1 nor in the L2."""
    at_once = np.minimum(count, ROWS_OF_SM * chip.sms) * row_bytes
    return np.asarray(1 / (1 + (HELD * chip.l2_bytes / at_once) ** SPILL_SHARPNESS))


#: Share of the L2 that holds rows until they are read again, and how sharply that ends.
HELD = 0.7
SPILL_SHARPNESS = 4


def _padded(calls: Sequence[Call], cols: Array, constants: Constants) -> Array:
    """Softmax of short rows computes on the next power of two."""
    power = 2 ** np.ceil(np.log2(np.maximum(cols, 32)))
    heavy = power * np.where(power >= HEAVY_COLS, constants["heavy"], 1.0)
    return np.where([row_key(c) == "row_softmax.warp" for c in calls], heavy, cols)


def rows(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    count, cols = sizes(calls, "R", "C")
    size = np.array([float(BYTES[c.dtype]) for c in calls])
    result = np.where([c.kind == "row_sum" for c in calls], count, count * cols) * size
    moved = count * cols * size + result
    wide = np.where(size > 2, constants["wide"], 1.0)
    stretch = 1 + constants["miss_stretch"] * missing_share(moved, constants)
    chain_ns = constants["element_latency_ns"] * _per_thread(calls, count, cols) * wide * stretch
    alone = (constants["row_latency_ns"] + chain_ns) * 1e-3
    element_ns = constants["element_ns"] * _padded(calls, cols, constants) * wide
    row_ns = constants["row_ns"] * np.where(size > 2, constants["wide_row"], 1.0)
    through = count * (row_ns + element_ns) * 1e-3 * chip_scale(chip)
    demand = _streaming((moved - result, result), through, count * cols, constants, chip)
    again = cols * size / (cols * size + L1_ROW_BYTES) * constants["second_pass"]
    if row_key(calls[0]) in SECOND_PASS:
        again = again + constants["spilled"] * _spilled(count, cols * size, chip)
    return replace(
        demand, memory_us=demand.memory_us * (1 + again), fixed_us=demand.fixed_us + alone
    )

"""Products by kernels whose thread blocks share SMs: those before wgmma, and convolutions.

A kernel is a tile, the depth of a pipeline step, the number of stages in shared memory, and what a
block holds of an SM, which says how many blocks an SM runs at once. Blocks on one SM hide each
other's latencies, until its pipes are full: a step of ``b`` blocks takes the longer of one block's
latency and ``b`` times its work. Of the kernels in ``catalogue`` that a library has for a class of
calls, and of the ways to split their sums, the fastest is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from sim.gpu.catalogue import Kernel, kernels
from sim.gpu.chip import BYTES, Chip
from sim.gpu.demand import Array, Constants, Demand, warm_up_us
from sim.gpu.gemm import Products, shared_sectors

#: How sharply a step passes from latency to throughput.
SHARPNESS = 3

#: Lanes that the four schedulers of an SM issue to in a cycle, since Volta (arXiv:1804.06826).
ISSUED_LANES = 128

#: Sums are split into parts of at least this depth.
LEAST_PART = 8

#: Constants of every family of kernels, by name. Cycles are of one SM:
#: ``rate`` multiply-adds per cycle, ``load_cycles`` for each element that a step brings in,
#: ``step_cycles`` for each step; latencies of a step: ``latency_cycles`` within the SM,
#: ``memory_cycles`` shared by the stages, ``element_latency`` for each element of a step; then
#: ``round_cycles`` for each round of blocks, ``result_cycles`` for each element of a result.
FAMILY_CONSTANTS = (
    "rate",
    "load_cycles",
    "step_cycles",
    "latency_cycles",
    "memory_cycles",
    "element_latency",
    "round_cycles",
    "result_cycles",
    "launch_us",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Kernels times splits, one column each."""

    family: Array
    rows: Array
    cols: Array
    step: Array
    stages: Array
    resident: Array
    swizzled: Array
    split: Array


@cache
def candidates(path: str, shared_bytes: int) -> tuple[tuple[str, ...], Candidates]:
    """Names of the families, and what a library has, on SMs with so much shared memory."""
    chosen, splits = kernels(path)
    names = families(chosen)
    pairs = [(kernel, split) for kernel in chosen for split in splits]

    def column(values: list[float]) -> Array:
        return np.array(values, dtype=np.float64)[None, :]

    return names, Candidates(
        family=np.array([names.index(k.family) for k, _ in pairs]),
        rows=column([k.rows for k, _ in pairs]),
        cols=column([k.cols for k, _ in pairs]),
        step=column([k.step for k, _ in pairs]),
        stages=column([k.stages for k, _ in pairs]),
        resident=column([k.resident(shared_bytes) for k, _ in pairs]),
        swizzled=column([k.swizzled for k, _ in pairs]),
        split=column([s for _, s in pairs]),
    )


def families(chosen: tuple[Kernel, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kernel.family for kernel in chosen))


def demand(products: Products, constants: Constants, chip: Chip) -> Demand:
    """The demand of each product with its fastest kernel and split; ``path`` names a catalogue."""
    names, found = candidates(products.path, chip.shared_bytes)
    own = {
        name: np.array([constants[f"{family}.{name}"] for family in names])[found.family]
        for name in FAMILY_CONSTANTS
    }
    all_kernels = _with_kernels(products, found, {**constants, **own}, chip)
    return all_kernels.at(np.argmin(all_kernels.time_us(), axis=1))


def _column(values: Array) -> Array:
    return np.asarray(values, dtype=np.float64)[:, None]


def _per_sm(across: Array, blocks: Array, found: Candidates, chip: Chip) -> Array:
    """Blocks that the busiest SM gets.

    Rasterization is swizzled: up to eight columns of tiles at a time. The last of such groups has
    blocks without a tile, which end at once; while all blocks fit onto the SMs together, these have
    taken their places, so that others share an SM although some SMs are idle.
    """
    group = np.select([across >= 6, across >= 3, across >= 2], [8.0, 4.0, 2.0], 1.0)
    group = np.where(found.swizzled > 0, group, 1.0)
    launched = blocks / across * group * np.ceil(across / group)
    together = launched <= chip.sms * found.resident
    return np.asarray(np.ceil(np.where(together, launched, blocks) / chip.sms))


def _rates(products: Products, own: Constants, chip: Chip) -> tuple[Array, Array]:
    """Multiply-adds that an SM can do, and issue, in a cycle.

    CUDA cores issue a warp to 32 lanes per scheduler and cycle. A GPU with half as many lanes takes
    two cycles for each, in one of which its schedulers are free for loads.
    """
    rate = chip.rate(products.dtype)
    if products.dtype in chip.mma or rate >= ISSUED_LANES:
        limited = np.minimum(own["rate"], rate) * chip.efficiency
        return limited, limited
    issued = np.minimum(own["rate"], ISSUED_LANES) * chip.efficiency
    return np.asarray(issued * rate / ISSUED_LANES), np.asarray(issued)


def _rounds(
    loaded: Array, rates: tuple[Array, Array], per_sm: Array, found: Candidates, own: Constants
) -> Array:
    """Cycles in which the busiest SM takes all its blocks one step further."""
    macs = found.rows * found.cols * found.step
    issued = macs / rates[1] + loaded * own["load_cycles"] + own["step_cycles"]
    work = np.maximum(macs / rates[0], issued)
    latency = (
        own["latency_cycles"]
        + own["memory_cycles"] / np.maximum(found.stages - 1, 0.6)
        + own["element_latency"] * loaded
    )

    def step(resident: Array) -> Array:
        busy = resident * work
        return np.asarray((latency**SHARPNESS + busy**SHARPNESS) ** (1 / SHARPNESS))

    full = np.floor(per_sm / found.resident)
    rest = per_sm - full * found.resident
    return np.asarray(full * step(found.resident) + np.where(rest > 0, step(rest), 0))


def _moved(products: Products) -> Array:
    """Bytes of operands and result, each once."""
    batch, m, n, k = (_column(v) for v in (products.batch, products.m, products.n, products.k))
    operands = (
        batch * (m * k + n * k) * BYTES[products.dtype]
        if products.operand_bytes is None
        else _column(products.operand_bytes)
    )
    return np.asarray(operands + batch * m * n * products.result_bytes)


def _with_kernels(products: Products, found: Candidates, own: Constants, chip: Chip) -> Demand:
    """Demand of every product (rows) with every candidate (columns)."""
    batch, m, n, k = (_column(v) for v in (products.batch, products.m, products.n, products.k))
    down, across = np.ceil(m / found.rows), np.ceil(n / found.cols)
    blocks = batch * down * across * found.split
    taps = 1.0 if products.taps is None else _column(products.taps)
    steps = np.ceil(taps * np.ceil(k / taps / found.step) / found.split)
    # Tiles at the edges load and store only what there is, but compute all.
    filled = m / down, n / across
    loaded = (filled[0] + filled[1]) * found.step
    rates = _rates(products, own, chip)
    per_sm = _per_sm(across, blocks, found, chip)
    cycles = (
        steps * _rounds(loaded, rates, per_sm, found, own)
        + np.ceil(per_sm / found.resident) * own["round_cycles"]
        + per_sm * own["result_cycles"] * filled[0] * filled[1]
    )
    split = found.split > 1
    partial = np.where(split, batch * m * n * found.split, 0.0) * 8
    hbm = _moved(products)
    again_bytes = shared_sectors(products, chip) * own.get("shared_sectors", 0.0)
    possible = np.where(np.ceil(k / LEAST_PART) >= found.split, 0.0, np.inf)
    fixed = warm_up_us(hbm, own) + np.where(split, own["reduce_us"], 0.0)
    return Demand(
        core_us=cycles / chip.clock_mhz,
        memory_us=(hbm + again_bytes) / (chip.hbm_bytes_per_us * own["hbm"]),
        fixed_us=fixed + partial * own["reduce_passes"] / chip.l2_bytes_per_us + possible,
        overlap=np.full_like(blocks, own["overlap"]),
        macs=batch * m * n * k,
        scalar=np.zeros_like(blocks),
        hbm_bytes=hbm,
        l2_bytes=blocks * steps * loaded * BYTES[products.dtype] + partial,
        written_bytes=batch * m * n * products.result_bytes,
        rounds=np.ceil(per_sm / found.resident),
        last_share=np.full_like(blocks, 1.0),
    )

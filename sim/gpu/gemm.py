"""Matrix products: tiles, split sums, waves of thread blocks; the tile that is fastest is taken.

Libraries choose among some hundred compiled tiles by a heuristic of their own. We take the one
that the model finds fastest, which needs no table of their choices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sim.gpu.chip import BYTES, Chip
from sim.gpu.demand import Array, Constants, Demand, joined, warm_up_us

#: Bytes of the reduction dimension that one pipeline step takes: a row of swizzled shared memory.
STEP_BYTES = 128

#: Rows of A that a tensor-core instruction of a warp group takes (PTX ISA, wgmma), and the cycles
#: that it needs at least, to read them from shared memory: 64 x 32 bytes at 128 bytes per cycle.
GROUP_ROWS = 64
INSTRUCTION_BYTES = 32
LEAST_CYCLES = 16

#: Most elements of the accumulators: nearly three quarters of the registers of an SM in fp32.
MOST_TILE = 41_000

#: Of 2:4 sparse weights half is kept, with two bits each that say where it was.
SPARSE_KEPT = 0.5
SPARSE_INDEX_BYTES = SPARSE_KEPT * 2 / 8

#: Results of so many waves of square tiles are not split.
UNSPLIT_TILE = 128
UNSPLIT_WAVES = 3

#: What the memory is written in, whole.
SECTOR_BYTES = 32

SPLITS = (1, 2, 3, 4, 6, 8, 12, 18, 32)


def _candidates(
    long_sides: tuple[int, ...],
    short_sides: tuple[int, ...],
    splits: tuple[int, ...] = SPLITS,
) -> Array:
    """Rows (tile rows, tile columns, split): either side may be the long one."""
    tiles = {
        pair
        for a in long_sides
        for b in short_sides
        for pair in ((a, b), (b, a))
        if a * b <= MOST_TILE
    }
    return np.array([(m, n, s) for m, n in sorted(tiles) for s in splits], dtype=np.float64)


#: Tiles by the instructions that the library's kernels use.
CANDIDATES = {
    "wgmma": _candidates(
        (64, 128, 192, 256), (8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256)
    ),
    "mma": _candidates((64, 128, 256), (32, 64, 128)),
    "simt": _candidates((32, 64, 128), (32, 64, 128)),
    "few": _candidates((16, 32, 64, 256), (16, 32, 64)),
    # Batches are not split: the batch is parallel enough.
    "mma_batch": _candidates((64, 128, 256), (32, 64, 128), splits=(1,)),
    "simt_batch": _candidates((32, 64, 128), (32, 64, 128), splits=(1,)),
    # cuDNN hardly ever splits the sums of a convolution.
    "conv": _candidates((64, 128, 256), (32, 64, 128, 192), splits=(1,)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """Sizes of products, one element each; ``path`` is a key of ``CANDIDATES``."""

    batch: Array
    m: Array
    n: Array
    k: Array
    dtype: str
    path: str
    #: Bytes of an element of the result.
    result_bytes: int
    #: Bytes of the operands, where they are not those of two plain matrices.
    operand_bytes: Array | None = None
    #: Parts of the sums that are gathered one by one: the pixels of a convolution's kernel.
    taps: Array | None = None
    #: Whether the weights (``n`` by ``k``) are 2:4 sparse.
    sparse: bool = False

    def at(self, index: NDArray[np.intp]) -> Products:
        """Those of an index."""
        arrays = ("batch", "m", "n", "k", "operand_bytes", "taps")
        given = {name: getattr(self, name) for name in arrays}
        return replace(self, **{k: v[index] for k, v in given.items() if v is not None})


def demand(products: Products, constants: Constants, chip: Chip) -> Demand:
    """The demand of each product with its fastest tile; sums of large results are not split."""
    tiles = CANDIDATES[products.path]
    side = UNSPLIT_TILE
    large = products.batch * np.ceil(products.m / side) * np.ceil(products.n / side)
    unsplit = large >= UNSPLIT_WAVES * chip.sms
    found, order = [], []
    for own, candidates in ((unsplit, tiles[tiles[:, 2] == 1]), (~unsplit, tiles)):
        index = np.flatnonzero(own)
        if len(index):
            sides = tuple(side[None, :] for side in candidates.T)
            every = _with_tiles(products.at(index), sides, constants, chip)
            found.append(every.at(np.argmin(every.time_us(), axis=1)))
            order.append(index)
    return joined(found).reordered(np.argsort(np.concatenate(order)))


def shared_sectors(products: Products, chip: Chip) -> Array:
    """Bytes of results whose rows share sectors of the memory, as far as the L2 does not hold them.

    Two thread blocks write parts of such a sector, which is read and written again. Classes of
    kernels that were not fitted with it have no constant for it, and nothing of it.
    """
    row_bytes = products.n * products.result_bytes
    total = _column(products.batch * products.m * row_bytes)
    shared = _column(np.where(row_bytes % SECTOR_BYTES > 0, 1.0, 0.0))
    return np.asarray(shared * total * total / (total + chip.l2_bytes / 2))


def _column(values: Array) -> Array:
    return np.asarray(values, dtype=np.float64)[:, None]


def _step_cycles(path: str, size: int, tile: tuple[Array, Array], rate: float) -> Array:
    """Cycles of an SM's multiply-adds for one step of one tile."""
    tm, tn = tile
    if path != "wgmma":
        return np.asarray(tm * tn * STEP_BYTES / size / rate)
    long_side, short_side = np.maximum(tm, tn), np.minimum(tm, tn)
    rows = np.where(long_side % GROUP_ROWS == 0, long_side, short_side)
    instruction = GROUP_ROWS * (tm * tn / rows) * (INSTRUCTION_BYTES / size) / rate
    issues = rows / GROUP_ROWS * (STEP_BYTES / INSTRUCTION_BYTES)
    return np.asarray(issues * np.maximum(instruction, LEAST_CYCLES))


def _with_tiles(
    products: Products, tiles: tuple[Array, ...], constants: Constants, chip: Chip
) -> Demand:
    """Demand of every product (rows) with every given tile (columns)."""
    tm, tn, split = tiles
    size = BYTES[products.dtype]
    batch, m, n, k = (_column(v) for v in (products.batch, products.m, products.n, products.k))
    blocks = batch * np.ceil(m / tm) * np.ceil(n / tn) * split
    waves = np.ceil(blocks / chip.sms)
    busy = np.minimum(blocks, chip.sms)
    kept = SPARSE_KEPT if products.sparse else 1.0
    steps = np.ceil(np.ceil(k * kept * size / STEP_BYTES) / split)
    # Of what is kept: a sparse instruction takes as long as a dense one of half the depth.
    peak = chip.sparse_rate(products.dtype) * kept if products.sparse else chip.rate(products.dtype)
    rate = peak * constants["rate"] * chip.efficiency
    cycles = _step_cycles(products.path, size, (tm, tn), rate) + constants["step_cycles"]
    load = (tm / kept + tn) * STEP_BYTES * constants["load"]
    per_block = np.minimum(constants["block_bytes_per_us"], chip.l2_bytes_per_us / busy)
    step_us = np.maximum(cycles / chip.clock_mhz, load / per_block)
    tile_us = tm * tn * constants["tile_cycles"] / 1000 / chip.clock_mhz
    partial = np.where(split > 1, batch * m * n * split, 0.0)
    reduce_us = np.where(split > 1, constants["reduce_us"], 0.0)
    again = np.where(waves > 1, constants["again_us"], 0.0)
    if products.operand_bytes is None:
        weight_bytes = size * kept + (SPARSE_INDEX_BYTES if products.sparse else 0.0)
        operands = batch * (m * k * size + n * k * weight_bytes)
    else:
        operands = _column(products.operand_bytes)
    missed = np.maximum(operands / chip.l2_bytes - constants["kept"], 0)
    hbm = operands * (1 + constants["reread"] * missed / (1 + missed))
    hbm = hbm + batch * m * n * products.result_bytes
    again_bytes = shared_sectors(products, chip) * constants.get("shared_sectors", 0.0)
    return Demand(
        core_us=waves * (steps * step_us + tile_us),
        memory_us=(hbm + again_bytes) / (chip.hbm_bytes_per_us * constants["hbm"]),
        fixed_us=warm_up_us(hbm, constants)
        + reduce_us
        + again
        + partial * 8 / chip.l2_bytes_per_us,
        overlap=np.full_like(blocks, constants["overlap"]),
        macs=batch * m * n * k * kept,
        scalar=np.zeros_like(blocks),
        hbm_bytes=hbm,
        l2_bytes=blocks * steps * load + partial * 8,
        written_bytes=batch * m * n * products.result_bytes,
        rounds=waves,
        last_share=blocks / chip.sms - waves + 1,
    )

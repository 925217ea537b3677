"""Which kernels a library takes for a matrix product, by type and alignment of the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim.gpu import gemm
from sim.gpu.chip import BYTES, Chip, chip_scale
from sim.gpu.demand import Call, Constants, Demand, sizes, warm_up_us

#: Bytes of an element of the result, where they are not those of the operands: fp8 gives bf16,
#: int8 gives int32.
RESULT_BYTES = {"fp8": 2, "int8": 4}

#: Most rows of an unaligned product that is computed as few matrix-vector products.
FEW_ROWS = 8

#: Copy engines and the tensor-copy unit need rows that start at multiples of 16 bytes.
ROW_ALIGNMENT_BYTES = 16


def product_key(call: Call) -> str:
    """``gemm`` or ``bmm``, then the path and the data type's size."""
    p, size = call.params, BYTES[call.dtype]
    if call.dtype == "int8":
        return f"{call.kind}.mma.int8"
    few = _few(call)
    if few is not None:
        return f"{call.kind}.{few}"
    if size == 4:
        return f"{call.kind}.simt.{'aligned' if math.gcd(p['N'], p['K']) % 4 == 0 else 'odd'}"
    unit = math.gcd(p["N"], p["K"]) * size
    if unit % ROW_ALIGNMENT_BYTES == 0:
        return f"{call.kind}.wgmma.{size}"
    return f"{call.kind}.mma.{'even' if unit % 4 == 0 else 'odd'}"


#: Tiles of the older kernels, of single products and of batches.
PATHS = {
    "gemm": {"mma": "mma", "simt": "simt", "few": "few"},
    "bmm": {"mma": "mma_batch", "simt": "simt_batch"},
}


def _few(call: Call) -> str | None:
    """Whether the product runs as one matrix-vector product, or as few."""
    p, size = call.params, BYTES[call.dtype]
    unaligned = math.gcd(p["N"], p["K"]) * size % ROW_ALIGNMENT_BYTES != 0
    if call.kind != "gemm" or size == 1 or not (unaligned or size == 4):
        return None
    if p["M"] == 1:
        return "vector"
    return "few" if p["M"] <= FEW_ROWS and size == 2 else None


def _vectors(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    """A warp or more for each column of B goes along it, for all rows of A at once."""
    m, n, k = sizes(calls, "M", "N", "K")
    size = np.array([float(BYTES[c.dtype]) for c in calls])
    moved = (m * k + n * k + m * n) * size
    zeros = np.zeros_like(moved)
    alone = constants["row_latency_ns"] + constants["element_latency_ns"] * k
    each = constants["row_ns"] + constants["element_ns"] * k * (1 + constants["rows"] * (m - 1))
    return Demand(
        core_us=n * each * 1e-3 * chip_scale(chip),
        memory_us=moved / (chip.hbm_bytes_per_us * constants["hbm"]),
        fixed_us=warm_up_us(moved, constants) + alone * 1e-3,
        overlap=zeros + constants["overlap"],
        macs=m * n * k,
        scalar=zeros,
        hbm_bytes=moved,
        l2_bytes=moved,
    )


def product(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    kind, family = product_key(calls[0]).split(".")[:2]
    if family == "vector":
        return _vectors(calls, constants, chip)
    batch, m, n, k = sizes(calls, "B", "M", "N", "K")
    dtype = calls[0].dtype
    return gemm.demand(
        gemm.Products(
            batch=batch,
            m=m,
            n=n,
            k=k,
            dtype=dtype,
            path=chip.tensor_path if family == "wgmma" else PATHS[kind][family],
            result_bytes=RESULT_BYTES.get(dtype, BYTES[dtype]),
        ),
        constants,
        chip,
    )

"""Which kernels a library takes for a matrix product, by type and alignment of the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sim.gpu import gemm
from sim.gpu.chip import BYTES, Chip
from sim.gpu.demand import Call, Constants, Demand, sizes

#: Bytes of an element of the result, where they are not those of the operands: fp8 gives bf16,
#: int8 gives int32.
RESULT_BYTES = {"fp8": 2, "int8": 4}

#: Most rows (or columns) of a product that is computed as few matrix-vector products.
FEW_ROWS = 8

#: Copy engines and the tensor-copy unit need rows that start at multiples of 16 bytes.
ROW_ALIGNMENT_BYTES = 16


def product_key(call: Call) -> str:
    """``gemm`` or ``bmm``, then the path and the data type's size."""
    p, size = call.params, BYTES[call.dtype]
    if call.dtype == "int8":
        return f"{call.kind}.mma.int8"
    if size == 4:
        return f"{call.kind}.simt.{'aligned' if math.gcd(p['N'], p['K']) % 4 == 0 else 'odd'}"
    unit = math.gcd(p["N"], p["K"]) * size
    if unit % ROW_ALIGNMENT_BYTES == 0:
        return f"{call.kind}.wgmma.{size}"
    if p["M"] <= FEW_ROWS and call.kind == "gemm":
        return f"{call.kind}.few.{size}"
    return f"{call.kind}.mma.{'even' if unit % 4 == 0 else 'odd'}"


PATHS = {"wgmma": "wgmma", "mma": "mma", "simt": "simt", "few": "simt"}


def product(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    batch, m, n, k = sizes(calls, "B", "M", "N", "K")
    dtype = calls[0].dtype
    path = PATHS[product_key(calls[0]).split(".")[1]]
    return gemm.demand(
        gemm.Products(
            batch=batch,
            m=m,
            n=n,
            k=k,
            dtype=dtype,
            path=path if path != "wgmma" else chip.tensor_path,
            result_bytes=RESULT_BYTES.get(dtype, BYTES[dtype]),
        ),
        constants,
        chip,
    )

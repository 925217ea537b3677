"""Which kernels a library takes for a matrix product, by type and alignment of the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mapper.cost import InfeasibleError
from sim.gpu import blocks, gemm
from sim.gpu.catalogue import AMPERE_BATCH, FEW_ROWS
from sim.gpu.chip import BYTES, Chip, chip_scale
from sim.gpu.demand import Call, Constants, Demand, joined, sizes, warm_up_us

#: Bytes of an element of the result, where they are not those of the operands: fp8 gives bf16,
#: int8 gives int32.
RESULT_BYTES = {"fp8": 2, "int8": 4}

#: Copy engines and the tensor-copy unit need rows that start at multiples of 16 bytes.
ROW_ALIGNMENT_BYTES = 16


def product_key(call: Call) -> str:
    """``gemm`` or ``bmm``, then the path, by the data type and the alignment of the rows."""
    p, size = call.params, BYTES[call.dtype]
    unit = math.gcd(p["N"], p["K"]) * size
    aligned = unit % ROW_ALIGNMENT_BYTES == 0
    if call.dtype == "int8":
        return f"{call.kind}.int8"
    if call.kind == "gemm" and p["M"] == 1 and (size == 4 or (size == 2 and not aligned)):
        return "gemm.vector"
    if size == 4:
        return f"{call.kind}.simt"
    if aligned:
        return f"{call.kind}.wgmma.{size}"
    if unit % 4 == 0:
        return f"{call.kind}.even"
    return f"{call.kind}.odd.{call.dtype}"


def _catalogue(call: Call, key: str, chip: Chip) -> str:
    """Products of few rows may also run as matrix-vector products."""
    if key == "bmm.simt" and chip.tensor_path == "mma":
        return AMPERE_BATCH
    few = call.kind == "gemm" and call.params["M"] <= FEW_ROWS and call.dtype != "int8"
    return f"{key}.few" if few else key


def sparse_key(call: Call) -> str:
    """With 2:4 sparse weights, whose rows must be aligned; ``InfeasibleError`` if they are not."""
    p, size = call.params, BYTES[call.dtype]
    unit = math.gcd(p["N"], p["K"]) * size
    if unit % ROW_ALIGNMENT_BYTES:
        detail = f"2:4 sparse products need N and K in multiples of {ROW_ALIGNMENT_BYTES // size}"
        raise InfeasibleError(
            limit="alignment of rows", needed=ROW_ALIGNMENT_BYTES, allowed=unit, detail=detail
        )
    return f"gemm.sparse.{size}"


def sparse_product(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    dense = _products(calls, chip.tensor_path, calls[0].dtype)
    return gemm.demand(replace(dense, sparse=True), constants, chip)


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
        written_bytes=m * n * size,
        rounds=zeros + 1,
        last_share=zeros + 1,
    )


def product(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    key, dtype = product_key(calls[0]), calls[0].dtype
    if key == "gemm.vector":
        return _vectors(calls, constants, chip)
    if key.split(".")[1] == "wgmma":
        return gemm.demand(_products(calls, chip.tensor_path, dtype), constants, chip)
    paths = [_catalogue(call, key, chip) for call in calls]
    found, order = [], []
    for path in sorted(set(paths)):
        index = [i for i, own in enumerate(paths) if own == path]
        members = _products([calls[i] for i in index], path, dtype)
        found.append(blocks.demand(members, constants, chip))
        order += index
    return joined(found).reordered(np.argsort(order))


def _products(calls: Sequence[Call], path: str, dtype: str) -> gemm.Products:
    batch, m, n, k = sizes(calls, "B", "M", "N", "K")
    return gemm.Products(
        batch=batch,
        m=m,
        n=n,
        k=k,
        dtype=dtype,
        path=path,
        result_bytes=RESULT_BYTES.get(dtype, BYTES[dtype]),
    )

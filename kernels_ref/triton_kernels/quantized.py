"""Products with quantized operands: int8 and fp8 on both sides, or weights of few bits only.

Weights of few bits are packed so that a byte holds values that are ``DEPTH / pieces`` apart along
the reduction: a program then unpacks contiguous pieces of ``DEPTH`` and multiplies each with a
contiguous piece of the activations. A scale is one per column and ``DEPTH`` values, so that it is
applied to sums and not to weights.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

#: Values along the reduction per step and per scale.
DEPTH = 128

#: What a code of few bits stands for: code minus 8, an entry of the column's table, code minus 1.
SHIFTED, TABLE, TERNARY = 0, 1, 2


@triton.jit
def _narrow(
    a_ptr,
    b_ptr,
    out_ptr,
    m,
    n,
    k,
    tile_m: tl.constexpr,
    tile_n: tl.constexpr,
    tile_k: tl.constexpr,
    group: tl.constexpr,
    integer: tl.constexpr,
    widen: tl.constexpr,
):
    program = tl.program_id(0)
    tiles_n = tl.cdiv(n, tile_n)
    first = program // (group * tiles_n) * group
    here = tl.minimum(tl.cdiv(m, tile_m) - first, group)
    within = program % (group * tiles_n)
    rows = (first + within % here) * tile_m + tl.arange(0, tile_m)
    cols = within // here * tile_n + tl.arange(0, tile_n)
    depth = tl.arange(0, tile_k)
    a_ptrs = a_ptr + rows.to(tl.int64)[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + cols.to(tl.int64)[None, :] * k + depth[:, None]
    if integer:
        sums = tl.zeros((tile_m, tile_n), dtype=tl.int32)
    else:
        sums = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    for start in range(0, k, tile_k):
        inside = depth < k - start
        a = tl.load(a_ptrs + start, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        b = tl.load(b_ptrs + start, mask=(cols < n)[None, :] & inside[:, None], other=0.0)
        if widen:
            a, b = a.to(tl.float32), b.to(tl.float32)
        sums = tl.dot(a, b, sums, out_dtype=sums.dtype)
    out_ptrs = out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :]
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptrs, sums.to(out_ptr.dtype.element_ty), mask=mask)


def narrow_gemm(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """``a[M, K] @ b[N, K].T`` of int8 (result int32) or fp8."""
    (m, k), n = a.shape, b.shape[0]
    large = m > 64
    tile_m, tile_n = (128, 256 if n * m >= 132 * 128 * 256 else 128) if large else (64, 64)
    _narrow[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)](
        a,
        b,
        out,
        m,
        n,
        k,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=128,
        group=8,
        # The interpreter multiplies neither int8 nor fp8; fp32 holds sums of int8 up to 2**24.
        integer=a.dtype == torch.int8 and a.device.type != "cpu",
        widen=a.device.type == "cpu",
        num_warps=8 if large else 4,
        num_stages=3 if tile_n == 256 else 4,
    )
    return out


@triton.jit
def _packed(
    x_ptr,
    codes_ptr,
    scale_ptr,
    table_ptr,
    out_ptr,
    m,
    n,
    k,
    tile_m: tl.constexpr,
    tile_n: tl.constexpr,
    depth: tl.constexpr,
    bits: tl.constexpr,
    meaning: tl.constexpr,
    splits: tl.constexpr,
):
    pieces: tl.constexpr = 8 // bits
    piece: tl.constexpr = depth // pieces
    tiles_n = tl.cdiv(n, tile_n)
    rows = tl.program_id(0) // tiles_n * tile_m + tl.arange(0, tile_m)
    cols = tl.program_id(0) % tiles_n * tile_n + tl.arange(0, tile_n)
    along = tl.arange(0, piece)
    sums = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    steps = k // depth
    for step in range(tl.program_id(1), steps, splits):
        at = cols.to(tl.int64)[None, :] * (k // pieces) + step * piece + along[:, None]
        codes = tl.load(codes_ptr + at, mask=(cols < n)[None, :], other=0)
        part = tl.zeros((tile_m, tile_n), dtype=tl.float32)
        for number in tl.static_range(pieces):
            code = (codes >> (bits * number)) & ((1 << bits) - 1)
            if meaning == 1:
                w = tl.load(table_ptr + cols[None, :] * 16 + code, mask=(cols < n)[None, :])
            else:
                w = (code.to(tl.int8) - (8 if meaning == 0 else 1)).to(x_ptr.dtype.element_ty)
            x_at = rows.to(tl.int64)[:, None] * k + step * depth + number * piece + along[None, :]
            x = tl.load(x_ptr + x_at, mask=(rows < m)[:, None], other=0.0)
            part = tl.dot(x, w, part)
        scale = tl.load(scale_ptr + cols * steps + step, mask=cols < n, other=0.0)
        sums += part * scale.to(tl.float32)[None, :]
    out_ptrs = out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :]
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    if splits == 1:
        tl.store(out_ptrs, sums.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        tl.atomic_add(out_ptrs, sums, mask=mask)


def packed_gemm(
    x: torch.Tensor,
    codes: torch.Tensor,
    scales: torch.Tensor,
    table: torch.Tensor | None = None,
    bits: int = 4,
) -> torch.Tensor:
    """``x[M, K] @ W.T``, W of few bits: ``codes[N, K * bits / 8]``, ``scales[N, K / DEPTH]``."""
    (m, k), n = x.shape, codes.shape[0]
    few = m <= 16
    tile_m, tile_n = (16, 64) if few else (64, 64) if m <= 64 else (128, 128)
    programs = triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n)
    splits = 1 if x.device.type == "cpu" else max(1, min(8, 264 // programs, k // DEPTH // 4))
    shape = (m, n)
    out = torch.zeros(shape, dtype=torch.float32 if splits > 1 else x.dtype, device=x.device)
    meaning = TERNARY if bits == 2 else SHIFTED if table is None else TABLE
    _packed[(programs, splits)](
        x,
        codes,
        scales,
        scales if table is None else table,
        out,
        m,
        n,
        k,
        tile_m=tile_m,
        tile_n=tile_n,
        depth=DEPTH,
        bits=bits,
        meaning=meaning,
        splits=splits,
        num_warps=4 if tile_m <= 64 else 8,
        num_stages=4,
    )
    return out.to(x.dtype)

"""Products with weights of few bits.

A byte holds values that are ``DEPTH / pieces`` apart along the reduction: a program then unpacks
contiguous pieces of ``DEPTH`` and multiplies each with a contiguous piece of the activations. A
scale is one per row of weights and ``DEPTH`` values, so that it is applied to sums and not to
weights. Tiles are transposed, ``weights @ activations.T``: the operand that is made in registers
is then the one that the matrix instruction takes from there.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels_ref.triton_kernels.gemm import FULL_GPU_PROGRAMS
from kernels_ref.triton_kernels.tiles import GROUP_ROWS, interpreted, store_tile, tile_at

#: Values along the reduction per step and per scale.
DEPTH = 128

#: What a code of few bits stands for: code minus 8, an entry of the row's table, code minus 1.
SHIFTED, TABLE, TERNARY = 0, 1, 2


@triton.jit
def _weights(code, table, meaning: tl.constexpr):
    """The fp16 value of each code. 0x6400 are the bits of 1024, whose last bits count ones."""
    if meaning == 1:
        return tl.gather(table, code.to(tl.int32), axis=1)
    shifted = (code.to(tl.int16) | 0x6400).to(tl.float16, bitcast=True)
    return shifted - (1032.0 if meaning == 0 else 1025.0)


@triton.jit
def _packed(
    x_ptr, codes_ptr, scale_ptr, table_ptr, out_ptr, m, n, k, tile_m: tl.constexpr,
    tile_n: tl.constexpr, depth: tl.constexpr, bits: tl.constexpr, meaning: tl.constexpr,
    splits: tl.constexpr, group: tl.constexpr
):  # fmt: skip
    pieces: tl.constexpr = 8 // bits
    piece: tl.constexpr = depth // pieces
    split = tl.program_id(1)
    row, col = tile_at(tl.program_id(0), tl.cdiv(n, tile_n), tl.cdiv(m, tile_m), group)
    rows, cols = row * tile_n + tl.arange(0, tile_n), col * tile_m + tl.arange(0, tile_m)
    along = tl.arange(0, piece)
    steps = k // depth
    codes_at = codes_ptr + rows.to(tl.int64)[:, None] * (k // pieces) + along[None, :]
    x_at = x_ptr + cols.to(tl.int64)[None, :] * k + along[:, None]
    table = rows
    if meaning == 1:
        entry = rows[:, None] * 16 + tl.arange(0, 16)[None, :]
        table = tl.load(table_ptr + entry, mask=(rows < n)[:, None], other=0.0)
    sums = tl.zeros((tile_n, tile_m), dtype=tl.float32)
    for step in range(split, steps, splits):
        codes = tl.load(codes_at + step * piece, mask=(rows < n)[:, None], other=0)
        part = tl.zeros((tile_n, tile_m), dtype=tl.float32)
        for number in tl.static_range(pieces):
            code = (codes >> (bits * number)) & ((1 << bits) - 1)
            w = _weights(code, table, meaning)
            x_here = x_at + step * depth + number * piece
            x = tl.load(x_here, mask=(cols < m)[None, :], other=0.0)
            part = tl.dot(w, x, part)
        scale = tl.load(scale_ptr + rows * steps + step, mask=rows < n, other=0.0)
        sums += part * scale.to(tl.float32)[:, None]
    out_ptr += split.to(tl.int64) * m * n
    store_tile(out_ptr, tl.trans(sums), cols, rows, m, n)


@triton.jit
def _sum_parts(part_ptr, out_ptr, elements, splits: tl.constexpr, piece: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * piece + tl.arange(0, piece)
    total = tl.zeros((piece,), tl.float32)
    for split in tl.static_range(splits):
        total += tl.load(part_ptr + split * elements + at, mask=at < elements, other=0.0)
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=at < elements)


def sum_parts(parts: torch.Tensor, out: torch.Tensor) -> None:
    """``out[M, N]`` from ``parts[splits, M, N]``."""
    _sum_parts[(triton.cdiv(out.numel(), 1024),)](
        parts, out, out.numel(), splits=parts.shape[0], piece=1024, num_warps=4
    )


def splits_of(programs: int, steps: int, programs_per_sm: int) -> int:
    """Among how many programs a tile's reduction is split, so that the GPU is full."""
    return max(1, min(8, programs_per_sm * FULL_GPU_PROGRAMS // programs, steps // 4))


def few_bit_tile(m: int) -> tuple[int, int, int]:
    """Rows of activations, rows of weights and warps of a tile.

    The fastest tried on an H200 (2026-11-30, ``kernels_ref.measure.tune packed``).
    """
    return (16, 64, 4) if m <= 16 else (64, 64, 4) if m <= 128 else (128, 128, 8)


def packed_gemm(
    x: torch.Tensor,
    codes: torch.Tensor,
    scales: torch.Tensor,
    table: torch.Tensor | None = None,
    bits: int = 4,
    tile: tuple[int, int, int, int] | None = None,
) -> torch.Tensor:
    """``x[M, K] @ W.T``, W of few bits: ``codes[N, K * bits / 8]``, ``scales[N, K / DEPTH]``."""
    (m, k), n = x.shape, codes.shape[0]
    tile_m, tile_n, warps, stages = tile or (*few_bit_tile(m), 4)
    programs = triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n)
    splits = splits_of(programs, k // DEPTH, 6)
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    parts = torch.empty((splits, m, n), device=x.device) if splits > 1 else out
    _packed[(programs, splits)](
        x,
        codes,
        scales,
        scales if table is None else table,
        parts,
        m,
        n,
        k,
        tile_m=tile_m,
        tile_n=tile_n,
        depth=DEPTH,
        bits=bits,
        meaning=TERNARY if bits == 2 else SHIFTED if table is None else TABLE,
        splits=splits,
        group=GROUP_ROWS,
        num_warps=warps,
        num_stages=stages,
    )
    if splits > 1:
        sum_parts(parts, out)
    return out


@triton.jit
def _w4a8(
    x_ptr, codes_ptr, x_scale_ptr, w_scale_ptr, out_ptr, m, n, k, tile_m: tl.constexpr,
    tile_n: tl.constexpr, depth: tl.constexpr, group: tl.constexpr, sum_type: tl.constexpr,
    widen: tl.constexpr
):  # fmt: skip
    row, col = tile_at(tl.program_id(0), tl.cdiv(n, tile_n), tl.cdiv(m, tile_m), group)
    rows, cols = row * tile_n + tl.arange(0, tile_n), col * tile_m + tl.arange(0, tile_m)
    along = tl.arange(0, depth // 2)
    codes_at = codes_ptr + rows.to(tl.int64)[:, None] * (k // 2) + along[None, :]
    x_at = x_ptr + cols.to(tl.int64)[None, :] * k + along[:, None]
    sums = tl.zeros((tile_n, tile_m), dtype=sum_type)
    for step in range(k // depth):
        codes = tl.load(codes_at + step * (depth // 2), mask=(rows < n)[:, None], other=0)
        for number in tl.static_range(2):
            # The nibble as the upper half of a byte is 16 times its value, sign included.
            w = ((codes & 0xF0) if number == 1 else (codes << 4)).to(tl.int8, bitcast=True)
            x_here = x_at + step * depth + number * (depth // 2)
            x = tl.load(x_here, mask=(cols < m)[None, :], other=0)
            if widen:
                w, x = w.to(tl.float32), x.to(tl.float32)
            sums = tl.dot(w, x, sums, out_dtype=sum_type)
    w_scale = tl.load(w_scale_ptr + rows, mask=rows < n, other=0.0) / 16
    x_scale = tl.load(x_scale_ptr + cols, mask=cols < m, other=0.0)
    result = sums.to(tl.float32) * w_scale[:, None] * x_scale[None, :]
    store_tile(out_ptr, tl.trans(result), cols, rows, m, n)


def w4a8_gemm(
    x: torch.Tensor, codes: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor
) -> torch.Tensor:
    """int8 ``x[M, K]`` by int4 ``codes[N, K / 2]``, scales in fp32, result fp16."""
    (m, k), n = x.shape, codes.shape[0]
    tile_m, tile_n, warps = few_bit_tile(m)
    out = torch.empty((m, n), dtype=torch.float16, device=x.device)
    _w4a8[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)](
        x,
        codes,
        x_scale,
        w_scale,
        out,
        m,
        n,
        k,
        tile_m=tile_m,
        tile_n=tile_n,
        depth=DEPTH,
        group=GROUP_ROWS,
        sum_type=tl.float32 if interpreted() else tl.int32,
        widen=interpreted(),
        num_warps=warps,
        num_stages=5,
    )
    return out

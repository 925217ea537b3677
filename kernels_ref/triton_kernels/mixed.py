"""int8 products whose outlier columns stay fp16, and products of planes of bits."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels_ref.triton_kernels.tiles import GROUP_ROWS, interpreted, store_tile, tile_at


@triton.jit
def _quantize(
    x_ptr, column_ptr, codes_ptr, scale_ptr, outlier_ptr, k, outliers, width: tl.constexpr,
    spread: tl.constexpr
):  # fmt: skip
    """A row as int8, with zeros for outliers, which are gathered elsewhere."""
    row = tl.program_id(0).to(tl.int64)
    number = tl.arange(0, spread)
    given = number < outliers
    column = tl.load(column_ptr + number, mask=given, other=0)
    kept = tl.load(x_ptr + row * k + column, mask=given, other=0.0)
    tl.store(outlier_ptr + row * outliers + number, kept, mask=given)
    lane = tl.arange(0, width)
    x = tl.load(x_ptr + row * k + lane, mask=lane < k, other=0.0).to(tl.float32)
    flagged = tl.zeros((width,), tl.int1)
    for index in range(outliers):
        flagged = flagged | (lane == tl.load(column_ptr + index))
    x = tl.where(flagged, 0.0, x)
    scale = tl.max(tl.abs(x), axis=0) / 127
    codes = tl.floor(x / scale + 0.5)
    tl.store(codes_ptr + row * k + lane, codes.to(tl.int8), mask=lane < k)
    tl.store(scale_ptr + row, scale)


@triton.jit
def _mixed(
    codes_ptr, w_ptr, x_scale_ptr, w_scale_ptr, outlier_ptr, column_ptr, out_ptr, m, n, k, outliers,
    tile_m: tl.constexpr, tile_n: tl.constexpr, depth: tl.constexpr, piece: tl.constexpr,
    group: tl.constexpr, sum_type: tl.constexpr, widen: tl.constexpr
):  # fmt: skip
    row, col = tile_at(tl.program_id(0), tl.cdiv(m, tile_m), tl.cdiv(n, tile_n), group)
    rows, cols = row * tile_m + tl.arange(0, tile_m), col * tile_n + tl.arange(0, tile_n)
    along = tl.arange(0, depth)
    a_at = codes_ptr + rows.to(tl.int64)[:, None] * k + along[None, :]
    b_at = w_ptr + cols.to(tl.int64)[None, :] * k + along[:, None]
    sums = tl.zeros((tile_m, tile_n), dtype=sum_type)
    for start in range(0, k, depth):
        inside = along < k - start
        a = tl.load(a_at + start, mask=(rows < m)[:, None] & inside[None, :], other=0)
        b = tl.load(b_at + start, mask=(cols < n)[None, :] & inside[:, None], other=0)
        if widen:
            a, b = a.to(tl.float32), b.to(tl.float32)
        sums = tl.dot(a, b, sums, out_dtype=sum_type)
    x_scale = tl.load(x_scale_ptr + rows, mask=rows < m, other=0.0)
    total = sums.to(tl.float32) * x_scale[:, None]
    for start in range(0, outliers, piece):
        number = start + tl.arange(0, piece)
        column = tl.load(column_ptr + number, mask=number < outliers, other=0)
        a_mask = (rows < m)[:, None] & (number < outliers)[None, :]
        x = tl.load(outlier_ptr + rows[:, None] * outliers + number[None, :], a_mask, other=0.0)
        b_mask = (cols < n)[None, :] & (number < outliers)[:, None]
        w = tl.load(w_ptr + cols.to(tl.int64)[None, :] * k + column[:, None], b_mask, other=0)
        total = tl.dot(x, w.to(x.dtype), total)
    w_scale = tl.load(w_scale_ptr + cols, mask=cols < n, other=0.0)
    store_tile(out_ptr, total * w_scale[None, :], rows, cols, m, n)


def mixed_gemm(
    x: torch.Tensor, weights: torch.Tensor, scales: torch.Tensor, columns: torch.Tensor
) -> torch.Tensor:
    """fp16 ``x[M, K]`` by int8 ``weights[N, K]``; ``columns`` of ``x`` hold outliers."""
    (m, k), n, outliers = x.shape, weights.shape[0], columns.numel()
    codes = torch.empty((m, k), dtype=torch.int8, device=x.device)
    row_scale = torch.empty((m,), device=x.device)
    kept = torch.empty((m, max(1, outliers)), dtype=x.dtype, device=x.device)
    width = triton.next_power_of_2(k)
    _quantize[(m,)](
        x, columns, codes, row_scale, kept, k, outliers,
        width=width, spread=triton.next_power_of_2(max(1, outliers)),
        num_warps=max(1, min(16, width // 512)),
    )  # fmt: skip
    tile_m, tile_n, warps = (64, 64, 4) if m <= 64 else (128, 128, 8)
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    _mixed[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)](
        codes, weights, row_scale, scales, kept, columns, out, m, n, k, outliers,
        tile_m=tile_m, tile_n=tile_n, depth=128, piece=16, group=GROUP_ROWS,
        sum_type=tl.float32 if interpreted() else tl.int32, widen=interpreted(),
        num_warps=warps, num_stages=4,
    )  # fmt: skip
    return out


@triton.jit
def _population(word, native: tl.constexpr):
    """How many bits are set."""
    if native:
        return tl.inline_asm_elementwise(
            "popc.b32 $0, $1;", "=r,r", [word], dtype=tl.int32, is_pure=True, pack=1
        )
    word = word.to(tl.uint32, bitcast=True)
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    word += word >> 8
    return ((word + (word >> 16)) & 0x3F).to(tl.int32)


@triton.jit
def _planes(
    a_ptr, b_ptr, out_ptr, m, n, words, a_bits: tl.constexpr, b_bits: tl.constexpr,
    tile_m: tl.constexpr, tile_n: tl.constexpr, tile_w: tl.constexpr, group: tl.constexpr,
    native: tl.constexpr
):  # fmt: skip
    row, col = tile_at(tl.program_id(0), tl.cdiv(m, tile_m), tl.cdiv(n, tile_n), group)
    rows, cols = row * tile_m + tl.arange(0, tile_m), col * tile_n + tl.arange(0, tile_n)
    along = tl.arange(0, tile_w)
    differ = tl.zeros((tile_m, tile_n), tl.int32)
    for start in range(0, words, tile_w):
        inside = along < words - start
        for i in tl.static_range(a_bits):
            a_at = (i * m + rows)[:, None] * words + start + along[None, :]
            a = tl.load(a_ptr + a_at, mask=(rows < m)[:, None] & inside[None, :], other=0)
            for j in tl.static_range(b_bits):
                b_at = (j * n + cols)[:, None] * words + start + along[None, :]
                b = tl.load(b_ptr + b_at, mask=(cols < n)[:, None] & inside[None, :], other=0)
                unequal = _population(a[:, None, :] ^ b[None, :, :], native)
                differ += tl.sum(unequal, axis=2) << (i + j)
    # Equal bits count one, unequal ones minus one; all pairs of planes have the same length.
    total: tl.constexpr = ((1 << a_bits) - 1) * ((1 << b_bits) - 1)
    store_tile(out_ptr, words * 32 * total - 2 * differ, rows, cols, m, n)


def plane_gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a[bits, M, K / 32]`` by ``b[bits, N, K / 32]``, planes of +-1 bits as words of int32."""
    (a_bits, m, words), (b_bits, n, _) = a.shape, b.shape
    tile_m, tile_n = (4, 32) if m <= 4 else (32, 32)
    out = torch.empty((m, n), dtype=torch.int32, device=a.device)
    _planes[(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n),)](
        a, b, out, m, n, words, a_bits=a_bits, b_bits=b_bits, tile_m=tile_m, tile_n=tile_n,
        tile_w=32 if tile_m == 4 else 4, group=GROUP_ROWS, native=not interpreted(), num_warps=4,
    )  # fmt: skip
    return out

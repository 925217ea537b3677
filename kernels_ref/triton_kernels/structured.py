"""Products with matrices of low-rank or permuted blocks."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels_ref.triton_kernels.tiles import interpreted

#: Blocks that are walked together, so that strided accesses take whole sectors of 32 bytes.
TOGETHER = 16


@triton.jit
def _per_block(
    x_ptr, w_ptr, out_ptr, tokens, blocks, p, q, tile_t: tl.constexpr, tile_q: tl.constexpr,
    depth: tl.constexpr
):  # fmt: skip
    """``out[t, b, :q] = x[t, b, :p] @ w[b, :q, :p].T``."""
    block = tl.program_id(1)
    tiles_q = tl.cdiv(q, tile_q)
    token = tl.program_id(0) // tiles_q * tile_t + tl.arange(0, tile_t)
    row = tl.program_id(0) % tiles_q * tile_q + tl.arange(0, tile_q)
    along = tl.arange(0, depth)
    x_at = x_ptr + (token.to(tl.int64) * blocks + block)[:, None] * p + along[None, :]
    w_at = w_ptr + (block.to(tl.int64) * q + row)[None, :] * p + along[:, None]
    sums = tl.zeros((tile_t, tile_q), tl.float32)
    for start in range(0, p, depth):
        inside = along < p - start
        x = tl.load(x_at + start, mask=(token < tokens)[:, None] & inside[None, :], other=0.0)
        w = tl.load(w_at + start, mask=(row < q)[None, :] & inside[:, None], other=0.0)
        sums = tl.dot(x, w, sums)
    out_at = out_ptr + (token.to(tl.int64) * blocks + block)[:, None] * q + row[None, :]
    mask = (token < tokens)[:, None] & (row < q)[None, :]
    tl.store(out_at, sums.to(out_ptr.dtype.element_ty), mask=mask)


def per_block(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    tokens, (blocks, q, p) = x.shape[0], w.shape
    tile_t, tile_q, warps = (16, 32, 4) if interpreted() else (128, 64, 4)
    if q >= 128 and not interpreted():
        tile_q, warps = 128, 8
    out = torch.empty((tokens, blocks, q), dtype=x.dtype, device=x.device)
    _per_block[(triton.cdiv(tokens, tile_t) * triton.cdiv(q, tile_q), blocks)](
        x, w, out, tokens, blocks, p, q, tile_t=tile_t, tile_q=tile_q, depth=32 if p <= 32 else 64,
        num_warps=warps, num_stages=3,
    )  # fmt: skip
    return out


@triton.jit
def _across_blocks(
    x_ptr, w_ptr, out_ptr, tokens, size: tl.constexpr, tile_t: tl.constexpr, together: tl.constexpr
):  # fmt: skip
    """``out[t, j, i] = sum over k of w[i, j, k] x[t, k, i]`` for ``together`` values of ``i``."""
    i = tl.program_id(1) * together + tl.arange(0, together)
    token = (tl.program_id(0) * tile_t + tl.arange(0, tile_t)).to(tl.int64)
    along = tl.arange(0, size)
    inside = (token < tokens)[:, None, None]
    at = (token[:, None, None] * size + along[None, :, None]) * size + i[None, None, :]
    x = tl.permute(tl.load(x_ptr + at, mask=inside, other=0.0), (2, 0, 1))
    w_at = (i[:, None, None] * size + along[None, None, :]) * size + along[None, :, None]
    sums = tl.permute(tl.dot(x, tl.load(w_ptr + w_at)), (1, 2, 0))
    tl.store(out_ptr + at, sums.to(out_ptr.dtype.element_ty), mask=inside)


def monarch(x: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """``x[T, n]`` times blocks ``right``, transposed blocks, ``left``; each is ``[b, b, b]``."""
    tokens, size = x.shape[0], left.shape[0]
    between = per_block(x, right)
    out = torch.empty_like(x)
    tile_t = 16
    _across_blocks[(triton.cdiv(tokens, tile_t), size // TOGETHER)](
        between, left, out, tokens, size=size, tile_t=tile_t, together=TOGETHER,
        num_warps=8,
    )  # fmt: skip
    return out


@triton.jit
def _mix(
    z_ptr, scale_ptr, out_ptr, rank, blocks: tl.constexpr, piece: tl.constexpr
):  # fmt: skip
    """``out[t, i] = sum over j of scale[i, j] * z[t, j]``."""
    token = tl.program_id(0).to(tl.int64)
    along = tl.program_id(1) * piece + tl.arange(0, piece)
    inside = along < rank
    for i in range(blocks):
        total = tl.zeros((piece,), tl.float32)
        for j in tl.static_range(blocks):
            scale_at = scale_ptr + (i * blocks + j) * rank + along
            z = tl.load(z_ptr + (token * blocks + j) * rank + along, mask=inside, other=0.0)
            scale = tl.load(scale_at, mask=inside, other=0.0)
            total += z.to(tl.float32) * scale.to(tl.float32)
        out_at = out_ptr + (token * blocks + i) * rank + along
        tl.store(out_at, total.to(out_ptr.dtype.element_ty), mask=inside)


def blast(
    x: torch.Tensor, right: torch.Tensor, scale: torch.Tensor, left: torch.Tensor
) -> torch.Tensor:
    """``x[T, n_in]``, ``right[b, r, n_in / b]``, ``scale[b, b, r]``, ``left[b, n_out / b, r]``."""
    tokens, (blocks, _, rank) = x.shape[0], left.shape
    z = per_block(x, right)
    mixed = torch.empty_like(z)
    piece = min(1024, triton.next_power_of_2(rank))
    _mix[(tokens, triton.cdiv(rank, piece))](
        z, scale, mixed, rank, blocks=blocks, piece=piece, num_warps=4
    )
    return per_block(mixed, left).flatten(1)

"""Attention of tokens on a grid to those around them, and of triples of tokens."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from kernels_ref.triton_kernels.attention import LOG2_E, begin, by_heads, rows_of
from kernels_ref.triton_kernels.tiles import interpreted


@triton.jit
def _window_start(at, extent, window: tl.constexpr):
    """A window around ``at`` that stays on the grid, so that every token sees as many others."""
    return tl.minimum(tl.maximum(at - window // 2, 0), extent - window)


@triton.jit
def _absorb(scores, v, state, scale):
    """Online softmax of scores of which a row may be masked altogether."""
    top, total, sums = state
    new_top = tl.maximum(top, tl.max(scores, axis=1) * scale)
    base = tl.where(new_top == float("-inf"), 0.0, new_top)
    weights = tl.exp2(scores * scale - base[:, None])
    shrink = tl.exp2(top - base)
    total = total * shrink + tl.sum(weights, axis=1)
    return new_top, total, tl.dot(weights.to(v.dtype), v, sums * shrink[:, None])


@triton.jit
def _neighborhood(
    q_ptr, k_ptr, v_ptr, out_ptr, height, width, scale, depth: tl.constexpr,
    window_h: tl.constexpr, window_w: tl.constexpr, tile_h: tl.constexpr, tile_w: tl.constexpr,
    tile_k: tl.constexpr
):  # fmt: skip
    reach_w: tl.constexpr = tile_w + window_w - 1
    reach: tl.constexpr = (tile_h + window_h - 1) * reach_w
    tiles_w = tl.cdiv(width, tile_w)
    top_row, left_col = (
        tl.program_id(0) // tiles_w * tile_h,
        tl.program_id(0) % tiles_w * tile_w,
    )
    index, along = tl.arange(0, tile_h * tile_w), tl.arange(0, depth)
    row, col = top_row + index // tile_w, left_col + index % tile_w
    inside = ((row < height) & (col < width))[:, None]
    base = tl.program_id(1).to(tl.int64) * height * width * depth
    q_at = base + (row * width + col)[:, None] * depth + along[None, :]
    q = tl.load(q_ptr + q_at, mask=inside, other=0.0)
    first_row = _window_start(row, height, window_h)[:, None]
    first_col = _window_start(col, width, window_w)[:, None]
    reach_row = _window_start(top_row, height, window_h)
    reach_col = _window_start(left_col, width, window_w)
    state = begin(tile_h * tile_w, depth)
    for start in range(0, reach, tile_k):
        number = start + tl.arange(0, tile_k)
        key_row, key_col = reach_row + number // reach_w, reach_col + number % reach_w
        real = (number < reach) & (key_row < height) & (key_col < width)
        k_at = base + (key_row * width + key_col)[:, None] * depth + along[None, :]
        k = tl.load(k_ptr + k_at, mask=real[:, None], other=0.0)
        v = tl.load(v_ptr + k_at, mask=real[:, None], other=0.0)
        seen = real[None, :] & (key_row[None, :] >= first_row) & (key_col[None, :] >= first_col)
        seen = seen & (key_row[None, :] < first_row + window_h)
        seen = seen & (key_col[None, :] < first_col + window_w)
        scores = tl.where(seen, tl.dot(q, tl.trans(k)), float("-inf"))
        state = _absorb(scores, v, state, scale)
    _, total, sums = state
    tl.store(out_ptr + q_at, (sums / total[:, None]).to(out_ptr.dtype.element_ty), mask=inside)


def neighborhood_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, window: tuple[int, int]
) -> torch.Tensor:
    """``[B, H, rows, columns, D]``; a token sees the window around it, which stays on the grid."""
    batch, heads, height, width, depth = q.shape
    tile_h, tile_w = (1, 16 if interpreted() else 64) if height == 1 else (4, 4)
    if height > 1 and not interpreted():
        tile_h, tile_w = 8, 8
    out = torch.empty_like(q)
    _neighborhood[(triton.cdiv(height, tile_h) * triton.cdiv(width, tile_w), batch * heads)](
        q, k, v, out, height, width, LOG2_E / math.sqrt(depth), depth=depth, window_h=window[0],
        window_w=window[1], tile_h=tile_h, tile_w=tile_w, tile_k=64, num_warps=4, num_stages=2,
    )  # fmt: skip
    return out


@triton.jit
def _simplicial(
    q_desc, k_desc, v_desc, k2_ptr, v2_ptr, out_desc, length, scale, depth: tl.constexpr,
    window: tl.constexpr, window2: tl.constexpr, tile_q: tl.constexpr, tile_k: tl.constexpr
):  # fmt: skip
    head, begin_q = tl.program_id(1), tl.program_id(0) * tile_q
    queries, along = begin_q + tl.arange(0, tile_q), tl.arange(0, depth)
    q = rows_of(q_desc, head, begin_q, tile_q, depth)
    stop = tl.minimum(begin_q + tile_q, length)
    state = begin(tile_q, depth)
    for second in range(tl.maximum(0, begin_q - window2 + 1), stop):
        at = (head.to(tl.int64) * length + second) * depth + along
        k2, v2 = tl.load(k2_ptr + at), tl.load(v2_ptr + at)
        paired = (q * k2[None, :]).to(q.dtype)
        near = ((second <= queries) & (second > queries - window2))[:, None]
        for start in range(tl.maximum(0, begin_q - window + 1) // tile_k * tile_k, stop, tile_k):
            k = rows_of(k_desc, head, start, tile_k, depth)
            v = rows_of(v_desc, head, start, tile_k, depth)
            keys = (start + tl.arange(0, tile_k))[None, :]
            seen = near & (keys <= queries[:, None]) & (keys > queries[:, None] - window)
            scores = tl.where(seen, tl.dot(paired, tl.trans(k)), float("-inf"))
            state = _absorb(scores, (v * v2[None, :]).to(v.dtype), state, scale)
    _, total, sums = state
    # The largest score of a query counts one; only queries past the end have seen none.
    out = (sums / tl.maximum(total, 1.0)[:, None]).to(out_desc.dtype)
    out_desc.store([head, begin_q, 0], tl.reshape(out, (1, tile_q, depth)))


def simplicial_attention(
    q: torch.Tensor,
    first: tuple[torch.Tensor, torch.Tensor],
    second: tuple[torch.Tensor, torch.Tensor],
    windows: tuple[int, int],
) -> torch.Tensor:
    """``[B, H, N, D]``; a token sees pairs of tokens, one of each of two windows ending at it."""
    batch, heads, length, depth = q.shape
    tile_q, tile_k = (16, 16) if interpreted() else (64, 64)
    out = torch.empty_like(q)
    _simplicial[(triton.cdiv(length, tile_q), batch * heads)](
        by_heads(q, tile_q),
        *(by_heads(x, tile_k) for x in first),
        *second,
        by_heads(out, tile_q),
        length,
        LOG2_E / math.sqrt(depth),
        depth=depth,
        window=windows[0],
        window2=windows[1],
        tile_q=tile_q,
        tile_k=tile_k,
        num_warps=4,
        num_stages=2,
    )
    return out

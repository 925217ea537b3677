"""Fused attention: forward for many queries, and decoding with the keys split among programs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels_ref.triton_kernels.gemm import FULL_GPU_PROGRAMS
from kernels_ref.triton_kernels.tiles import interpreted, tile_at

#: log2(e): exponentials are taken to base 2, which is what the hardware does.
LOG2_E = 1.4426950408889634


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTile:
    """Queries and keys of a program's step, and how Triton compiles it."""

    queries: int
    keys: int
    warps: int
    stages: int


SMALL_TILE = AttentionTile(queries=16, keys=16, warps=4, stages=1)


def by_heads(x: torch.Tensor, rows: int) -> TensorDescriptor:
    """``x[B, H, S, D]`` for loads of ``rows`` tokens of one head; past its end there are zeros."""
    batch, heads, length, depth = x.shape
    return TensorDescriptor.from_tensor(x.view(batch * heads, length, depth), [1, rows, depth])


@triton.jit
def rows_of(desc, head, start, rows: tl.constexpr, depth: tl.constexpr):
    return tl.reshape(desc.load([head, start, 0]), (rows, depth))


@triton.jit
def _scores(q, k, start, queries, length, tile_k: tl.constexpr, masked: tl.constexpr,
            causal: tl.constexpr, window: tl.constexpr):  # fmt: skip
    scores = tl.dot(q, tl.trans(k))
    if masked:
        keys = (start + tl.arange(0, tile_k))[None, :]
        seen = keys < length
        if causal:
            seen = seen & (keys <= queries[:, None])
        if window > 0:
            seen = seen & (keys > queries[:, None] - window)
        scores = tl.where(seen, scores, float("-inf"))
    return scores


@triton.jit
def step(
    q, k, v, state, start, queries, scale, length, tile_k: tl.constexpr, masked: tl.constexpr,
    causal: tl.constexpr, window: tl.constexpr
):  # fmt: skip
    """Online softmax over one tile of keys: maxima, sums of exponentials, weighted values."""
    top, total, sums = state
    scores = _scores(q, k, start, queries, length, tile_k, masked, causal, window)
    new_top = tl.maximum(top, tl.max(scores, axis=1) * scale)
    # Of a row that has seen no key yet, the maximum is no number to subtract.
    base = tl.where(new_top == float("-inf"), 0.0, new_top) if window > 0 else new_top
    weights = tl.exp2(scores * scale - base[:, None])
    shrink = tl.exp2(top - base)
    total = total * shrink + tl.sum(weights, axis=1)
    sums = tl.dot(weights.to(v.dtype), v, sums * shrink[:, None])
    return new_top, total, sums


@triton.jit
def begin(rows: tl.constexpr, depth: tl.constexpr):
    return (
        tl.full((rows,), float("-inf"), tl.float32),
        tl.zeros((rows,), tl.float32),
        tl.zeros((rows, depth), tl.float32),
    )


@triton.jit
def _forward(
    q_desc, k_desc, v_desc, out_desc, lse_ptr, length_q, length_k, heads_in_all, heads, group,
    scale, depth: tl.constexpr, tile_q: tl.constexpr, tile_k: tl.constexpr, causal: tl.constexpr,
    window: tl.constexpr, together: tl.constexpr
):  # fmt: skip
    tiles = tl.cdiv(length_q, tile_q)
    head, tile = tile_at(tl.program_id(0), heads_in_all, tiles, together)
    if causal:  # long rows of the triangle first
        tile = tiles - 1 - tile
    queries = tile * tile_q + tl.arange(0, tile_q)
    shared = (head // heads) * (heads // group) + (head % heads) // group
    q = rows_of(q_desc, head, tile * tile_q, tile_q, depth)
    state = begin(tile_q, depth)
    stop = tl.minimum(length_k, (tile + 1) * tile_q) if causal else length_k
    full = (tl.minimum(tile * tile_q, length_k) if causal else length_k) // tile_k * tile_k
    if window > 0:
        full = tl.maximum(0, tile * tile_q - window + 1) // tile_k * tile_k
    else:
        for start in range(0, full, tile_k):
            k = rows_of(k_desc, shared, start, tile_k, depth)
            v = rows_of(v_desc, shared, start, tile_k, depth)
            state = step(
                q, k, v, state, start, queries, scale, length_k, tile_k, False, causal, window
            )
    for start in range(full, stop, tile_k):
        k = rows_of(k_desc, shared, start, tile_k, depth)
        v = rows_of(v_desc, shared, start, tile_k, depth)
        state = step(q, k, v, state, start, queries, scale, length_k, tile_k, True, causal, window)
    top, total, sums = state
    out = (sums / total[:, None]).to(out_desc.dtype)
    out_desc.store([head, tile * tile_q, 0], tl.reshape(out, (1, tile_q, depth)))
    at = head.to(tl.int64) * length_q + queries
    tl.store(lse_ptr + at, top + tl.log2(total), mask=queries < length_q)


def forward_tile(depth: int) -> AttentionTile:
    """The fastest tried on an H200 (2026-11-30, ``kernels_ref.measure.tune forward``)."""
    if interpreted():
        return SMALL_TILE
    if depth <= 64:
        return AttentionTile(queries=128, keys=64, warps=8, stages=3)
    if depth <= 128:
        return AttentionTile(queries=128, keys=128, warps=8, stages=3)
    return AttentionTile(queries=128, keys=64, warps=8, stages=2)


def heads_together(tiles: int) -> int:
    """How many heads begin together, each with its longest tile.

    Twice as many programs as fit at a time: the last ones to begin are then short.
    """
    return max(1, 2 * FULL_GPU_PROGRAMS // tiles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """Which keys a query sees: all, those up to itself, or only the last ``window`` of these."""

    causal: bool = False
    window: int = 0


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Mask, tile: AttentionTile | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result, and per query the logarithm to base 2 of its sum of exponentials."""
    batch, heads, length, depth = q.shape
    tile = tile or forward_tile(depth)
    out = torch.empty_like(q)
    lse = torch.empty((batch, heads, length), device=q.device)
    tiles = triton.cdiv(length, tile.queries)
    _forward[(tiles * batch * heads,)](
        by_heads(q, tile.queries),
        by_heads(k, tile.keys),
        by_heads(v, tile.keys),
        by_heads(out, tile.queries),
        lse,
        length,
        k.shape[2],
        batch * heads,
        heads,
        heads // k.shape[1],
        LOG2_E / math.sqrt(depth),
        depth=depth,
        tile_q=tile.queries,
        tile_k=tile.keys,
        causal=mask.causal,
        window=mask.window,
        together=heads_together(tiles),
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return out, lse


def flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> torch.Tensor:
    """``q[B, H, Sq, D]``, ``k`` and ``v`` ``[B, Hkv, Skv, D]``; D is a power of two."""
    return attend(q, k, v, Mask(causal=causal))[0]


def window_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, window: int
) -> torch.Tensor:
    """A query sees itself and the ``window - 1`` tokens before it."""
    return attend(q, k, v, Mask(causal=True, window=window))[0]


@triton.jit
def _decode(
    q_ptr, k_desc, v_desc, part_ptr, stat_ptr, length, scale, per_split, group: tl.constexpr,
    depth: tl.constexpr, tile_k: tl.constexpr, rows: tl.constexpr
):  # fmt: skip
    head, split = tl.program_id(0), tl.program_id(1)
    row, along = tl.arange(0, rows), tl.arange(0, depth)
    q_at = (head.to(tl.int64) * group + row[:, None]) * depth + along[None, :]
    q = tl.load(q_ptr + q_at, mask=(row < group)[:, None], other=0.0)
    state = begin(rows, depth)
    stop = tl.minimum(length, (split + 1) * per_split)
    for start in range(split * per_split, stop, tile_k):
        k = rows_of(k_desc, head, start, tile_k, depth)
        v = rows_of(v_desc, head, start, tile_k, depth)
        state = step(q, k, v, state, start, row, scale, stop, tile_k, True, False, 0)
    top, total, sums = state
    at = (head.to(tl.int64) * tl.num_programs(1) + split) * rows + row
    tl.store(part_ptr + at[:, None] * depth + along[None, :], sums)
    tl.store(stat_ptr + at * 2, top)
    tl.store(stat_ptr + at * 2 + 1, total)


@triton.jit
def _merge(
    part_ptr, stat_ptr, out_ptr, group: tl.constexpr, depth: tl.constexpr, rows: tl.constexpr,
    splits: tl.constexpr
):  # fmt: skip
    head, row = tl.program_id(0), tl.program_id(1)
    split, along = tl.arange(0, splits), tl.arange(0, depth)
    at = (head.to(tl.int64) * splits + split) * rows + row
    top, total = tl.load(stat_ptr + at * 2), tl.load(stat_ptr + at * 2 + 1)
    weight = tl.exp2(top - tl.max(top, axis=0))
    parts = tl.load(part_ptr + at[:, None] * depth + along[None, :])
    sums = tl.sum(parts * weight[:, None], axis=0) / tl.sum(total * weight, axis=0)
    out_at = (head.to(tl.int64) * group + row) * depth + along
    tl.store(out_ptr + out_at, sums.to(out_ptr.dtype.element_ty))


#: Most programs that share one head's keys, and how many programs the GPU is given per SM.
MOST_SPLITS = 64
DECODE_PROGRAMS_PER_SM = 4


def decode_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tile: AttentionTile | None = None
) -> torch.Tensor:
    """One query per sequence: ``q[B, H, 1, D]``, ``k`` and ``v`` ``[B, Hkv, Skv, D]``."""
    batch, heads, _, depth = q.shape
    tile = tile or AttentionTile(queries=1, keys=64, warps=4, stages=2)
    shared, length = k.shape[1], k.shape[2]
    group, tile_k = heads // shared, tile.keys
    rows = max(16, triton.next_power_of_2(group))
    programs = DECODE_PROGRAMS_PER_SM * FULL_GPU_PROGRAMS
    wanted = max(1, min(MOST_SPLITS, programs // (batch * shared), triton.cdiv(length, tile_k)))
    splits = triton.next_power_of_2(wanted + 1) // 2
    per_split = triton.cdiv(triton.cdiv(length, splits), tile_k) * tile_k
    parts = torch.empty((batch * shared, splits, rows, depth), device=q.device)
    stats = torch.empty((batch * shared, splits, rows, 2), device=q.device)
    out = torch.empty_like(q)
    _decode[(batch * shared, splits)](
        q, by_heads(k, tile_k), by_heads(v, tile_k), parts, stats, length,
        LOG2_E / math.sqrt(depth), per_split, group=group, depth=depth, tile_k=tile_k, rows=rows,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    _merge[(batch * shared, group)](
        parts, stats, out, group=group, depth=depth, rows=rows, splits=splits, num_warps=4
    )
    return out

"""Fused attention: forward for many queries, and decoding with the keys split among programs."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

#: log2(e): exponentials are taken to base 2, which is what the hardware does.
LOG2_E = 1.4426950408889634


@triton.jit
def _step(
    q, k_ptr, v_ptr, state, start, queries, scale, length, depth: tl.constexpr,
    tile_k: tl.constexpr, masked: tl.constexpr, causal: tl.constexpr
):  # fmt: skip
    top, total, sums = state
    keys = start + tl.arange(0, tile_k)
    along = tl.arange(0, depth)
    inside = (keys < length)[:, None]
    k = tl.load(k_ptr + keys[:, None] * depth + along[None, :], mask=inside, other=0.0)
    scores = tl.dot(q, tl.trans(k)) * scale
    if masked:
        seen = (keys < length)[None, :]
        if causal:
            seen = seen & (keys[None, :] <= queries[:, None])
        scores = tl.where(seen, scores, float("-inf"))
    new_top = tl.maximum(top, tl.max(scores, axis=1))
    weights = tl.exp2(scores - new_top[:, None])
    shrink = tl.exp2(top - new_top)
    total = total * shrink + tl.sum(weights, axis=1)
    v = tl.load(v_ptr + keys[:, None] * depth + along[None, :], mask=inside, other=0.0)
    sums = tl.dot(weights.to(v.dtype), v, sums * shrink[:, None])
    return new_top, total, sums


@triton.jit
def _forward(
    q_ptr, k_ptr, v_ptr, out_ptr, length_q, length_k, heads, group, scale,
    depth: tl.constexpr, tile_q: tl.constexpr, tile_k: tl.constexpr, causal: tl.constexpr
):  # fmt: skip
    # Long rows of a causal triangle first.
    tile = tl.num_programs(0) - 1 - tl.program_id(0) if causal else tl.program_id(0)
    head = tl.program_id(1)
    queries = tile * tile_q + tl.arange(0, tile_q)
    along = tl.arange(0, depth)
    shared = (head // heads) * (heads // group) + (head % heads) // group
    q_at = (head.to(tl.int64) * length_q + queries[:, None]) * depth + along[None, :]
    q = tl.load(q_ptr + q_at, mask=(queries < length_q)[:, None], other=0.0)
    k_base = k_ptr + shared.to(tl.int64) * length_k * depth
    v_base = v_ptr + shared.to(tl.int64) * length_k * depth
    state = (
        tl.full((tile_q,), float("-inf"), tl.float32),
        tl.zeros((tile_q,), tl.float32),
        tl.zeros((tile_q, depth), tl.float32),
    )
    stop = tl.minimum(length_k, (tile + 1) * tile_q) if causal else length_k
    full = (tl.minimum(tile * tile_q, length_k) if causal else length_k) // tile_k * tile_k
    for start in range(0, full, tile_k):
        state = _step(
            q, k_base, v_base, state, start, queries, scale, length_k, depth, tile_k, False, causal
        )
    for start in range(full, stop, tile_k):
        state = _step(
            q, k_base, v_base, state, start, queries, scale, length_k, depth, tile_k, True, causal
        )
    _, total, sums = state
    out = (sums / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + q_at, out, mask=(queries < length_q)[:, None])


def flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> torch.Tensor:
    """``q[B, H, Sq, D]``, ``k`` and ``v`` ``[B, Hkv, Skv, D]``; D is a power of two."""
    batch, heads, length, depth = q.shape
    out = torch.empty_like(q)
    small = q.device.type == "cpu"
    tile_q, tile_k = (16, 16) if small else (128, 128 if depth <= 64 else 64)
    _forward[(triton.cdiv(length, tile_q), batch * heads)](
        q,
        k,
        v,
        out,
        length,
        k.shape[2],
        heads,
        heads // k.shape[1],
        LOG2_E / math.sqrt(depth),
        depth=depth,
        tile_q=tile_q,
        tile_k=tile_k,
        causal=causal,
        num_warps=8,
        num_stages=3 if depth <= 64 else 2,
    )
    return out


@triton.jit
def _decode(
    q_ptr, k_ptr, v_ptr, part_ptr, stat_ptr, length, scale, per_split, group: tl.constexpr,
    depth: tl.constexpr, tile_k: tl.constexpr, rows: tl.constexpr
):  # fmt: skip
    head, split = tl.program_id(0), tl.program_id(1)
    row, along = tl.arange(0, rows), tl.arange(0, depth)
    q_at = (head.to(tl.int64) * group + row[:, None]) * depth + along[None, :]
    q = tl.load(q_ptr + q_at, mask=(row < group)[:, None], other=0.0)
    base = head.to(tl.int64) * length * depth
    state = (
        tl.full((rows,), float("-inf"), tl.float32),
        tl.zeros((rows,), tl.float32),
        tl.zeros((rows, depth), tl.float32),
    )
    stop = tl.minimum(length, (split + 1) * per_split)
    for start in range(split * per_split, stop, tile_k):
        state = _step(
            q,
            k_ptr + base,
            v_ptr + base,
            state,
            start,
            row,
            scale,
            stop,
            depth,
            tile_k,
            True,
            False,
        )
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


def decode_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """One query per sequence: ``q[B, H, 1, D]``, ``k`` and ``v`` ``[B, Hkv, Skv, D]``."""
    batch, heads, _, depth = q.shape
    shared, length = k.shape[1], k.shape[2]
    group, tile_k = heads // shared, 64
    rows = max(16, triton.next_power_of_2(group))
    wanted = max(1, min(64, 528 // (batch * shared), triton.cdiv(length, tile_k)))
    splits = triton.next_power_of_2(wanted + 1) // 2
    per_split = triton.cdiv(triton.cdiv(length, splits), tile_k) * tile_k
    splits = triton.next_power_of_2(triton.cdiv(length, per_split))
    parts = torch.empty((batch * shared, splits, rows, depth), device=q.device)
    stats = torch.empty((batch * shared, splits, rows, 2), device=q.device)
    out = torch.empty_like(q)
    _decode[(batch * shared, splits)](
        q, k, v, parts, stats, length, LOG2_E / math.sqrt(depth), per_split,
        group=group, depth=depth, tile_k=tile_k, rows=rows, num_warps=4, num_stages=3,
    )  # fmt: skip
    _merge[(batch * shared, group)](
        parts, stats, out, group=group, depth=depth, rows=rows, splits=splits, num_warps=4
    )
    return out

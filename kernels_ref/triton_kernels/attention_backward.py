"""Gradients of attention: one program per tile of keys, which it keeps while it walks queries.

It makes the gradients of its keys and values in registers; its share of the queries' gradient is
added to memory in fp32, on a GPU by the tensor-copy engine.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from kernels_ref.triton_kernels.attention import (
    LOG2_E,
    SMALL_TILE,
    AttentionTile,
    Mask,
    attend,
    by_heads,
    heads_together,
    rows_of,
)
from kernels_ref.triton_kernels.tiles import interpreted, tile_at


@triton.jit
def _prepare(out_ptr, grad_ptr, delta_ptr, sums_ptr, rows_in_all, depth: tl.constexpr,
             tile: tl.constexpr):  # fmt: skip
    """Each query's product of result and gradient, and zeros for the sums of its gradient."""
    row, along = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, depth)
    at = row.to(tl.int64)[:, None] * depth + along[None, :]
    inside = (row < rows_in_all)[:, None]
    out = tl.load(out_ptr + at, mask=inside, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(delta_ptr + row, tl.sum(out * grad, axis=1), mask=row < rows_in_all)
    tl.store(sums_ptr + at, tl.zeros((tile, depth), tl.float32), mask=inside)


@triton.jit
def _finish(sums_ptr, out_ptr, elements, scale, piece: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * piece + tl.arange(0, piece)
    values = tl.load(sums_ptr + at, mask=at < elements, other=0.0) * scale
    tl.store(out_ptr + at, values.to(out_ptr.dtype.element_ty), mask=at < elements)


@triton.jit
def _add_rows(desc, ptr, head, start, values, length, tile_q: tl.constexpr, depth: tl.constexpr,
              bulk: tl.constexpr):  # fmt: skip
    if bulk:
        desc.atomic_add([head, start, 0], tl.reshape(values, (1, tile_q, depth)))
    else:
        rows, along = start + tl.arange(0, tile_q), tl.arange(0, depth)
        at = (head.to(tl.int64) * length + rows)[:, None] * depth + along[None, :]
        tl.atomic_add(ptr + at, values, mask=(rows < length)[:, None])


@triton.jit
def _backward(
    q_desc, k_desc, v_desc, grad_desc, sums_desc, sums_ptr, lse_ptr, delta_ptr, k_grad_desc,
    v_grad_desc, length_q, length_k, shared_in_all, heads, group, scale, depth: tl.constexpr,
    tile_q: tl.constexpr, tile_k: tl.constexpr, causal: tl.constexpr, bulk: tl.constexpr,
    together: tl.constexpr
):  # fmt: skip
    # The first keys of a causal triangle are seen by most queries.
    shared, tile = tile_at(tl.program_id(0), shared_in_all, tl.cdiv(length_k, tile_k), together)
    first = tile * tile_k
    keys, row = first + tl.arange(0, tile_k), tl.arange(0, tile_q)
    k = rows_of(k_desc, shared, first, tile_k, depth)
    v = rows_of(v_desc, shared, first, tile_k, depth)
    k_sums, v_sums = (
        tl.zeros((tile_k, depth), tl.float32),
        tl.zeros((tile_k, depth), tl.float32),
    )
    shared_heads = heads // group
    head0 = (shared // shared_heads) * heads + (shared % shared_heads) * group
    begin = first // tile_q * tile_q if causal else 0
    for member in range(group):
        head = head0 + member
        for start in range(begin, length_q, tile_q):
            queries = start + row
            at = head.to(tl.int64) * length_q + queries
            lse = tl.load(lse_ptr + at, mask=queries < length_q, other=float("inf"))
            delta = tl.load(delta_ptr + at, mask=queries < length_q, other=0.0)
            q = rows_of(q_desc, head, start, tile_q, depth)
            grad = rows_of(grad_desc, head, start, tile_q, depth)
            weights = tl.exp2(tl.dot(k, tl.trans(q)) * scale - lse[None, :])
            if causal:
                weights = tl.where(keys[:, None] <= queries[None, :], weights, 0.0)
            v_sums = tl.dot(weights.to(v.dtype), grad, v_sums)
            change = weights * (tl.dot(v, tl.trans(grad)) - delta[None, :])
            change = change.to(k.dtype)
            k_sums = tl.dot(change, q, k_sums)
            q_part = tl.dot(tl.trans(change), k)
            _add_rows(sums_desc, sums_ptr, head, start, q_part, length_q, tile_q, depth, bulk)
    # ``scale`` has the factor log2(e) of exponentials to base 2.
    k_sums *= scale * 0.6931471805599453
    k_grad_desc.store([shared, first, 0], tl.reshape(k_sums.to(k.dtype), (1, tile_k, depth)))
    v_grad_desc.store([shared, first, 0], tl.reshape(v_sums.to(v.dtype), (1, tile_k, depth)))


def backward_tile(depth: int) -> AttentionTile:
    """The fastest tried on an H200 (2026-11-30, ``kernels_ref.measure.tune backward``).

    Heads of 256 were not tried there; their tile is the one that fits in registers.
    """
    if interpreted():
        return SMALL_TILE
    if depth <= 64:
        return AttentionTile(queries=128, keys=128, warps=8, stages=2)
    if depth <= 128:
        return AttentionTile(queries=64, keys=128, warps=8, stages=3)
    return AttentionTile(queries=32, keys=64, warps=8, stages=1)


Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def gradients(
    inputs: Triple,
    result: tuple[torch.Tensor, torch.Tensor],
    grad: torch.Tensor,
    causal: bool,
    tile: AttentionTile | None = None,
) -> Triple:
    """Of queries, keys and values; ``result`` is what ``attend`` returned."""
    (q, k, v), (out, lse) = inputs, result
    batch, heads, length, depth = q.shape
    shared = k.shape[1]
    tile = tile or backward_tile(depth)
    rows, scale = batch * heads * length, 1 / math.sqrt(depth)
    delta = torch.empty_like(lse)
    sums = torch.empty(q.shape, device=q.device)
    q_grad, k_grad, v_grad = (torch.empty_like(x) for x in (q, k, v))
    _prepare[(triton.cdiv(rows, 32),)](out, grad, delta, sums, rows, depth=depth, tile=32)
    tiles = triton.cdiv(k.shape[2], tile.keys)
    _backward[(tiles * batch * shared,)](
        by_heads(q, tile.queries),
        by_heads(k, tile.keys),
        by_heads(v, tile.keys),
        by_heads(grad, tile.queries),
        by_heads(sums, tile.queries),
        sums,
        lse,
        delta,
        by_heads(k_grad, tile.keys),
        by_heads(v_grad, tile.keys),
        length,
        k.shape[2],
        batch * shared,
        heads,
        heads // shared,
        scale * LOG2_E,
        depth=depth,
        tile_q=tile.queries,
        tile_k=tile.keys,
        causal=causal,
        bulk=not interpreted(),
        together=heads_together(tiles),
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    _finish[(triton.cdiv(sums.numel(), 2048),)](sums, q_grad, sums.numel(), scale, piece=2048)
    return q_grad, k_grad, v_grad


def flash_attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor, causal: bool
) -> Triple:
    """Forward, and the gradients of ``q``, ``k`` and ``v``."""
    return gradients((q, k, v), attend(q, k, v, Mask(causal=causal)), grad, causal)

"""Gated linear attention in chunks, and the triangular inverses of the delta rule."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels_ref.triton_kernels.tiles import interpreted

#: Tokens between two states that are kept, and tokens whose decays are related to one of them.
CHUNK, PART = 64, 16


@triton.jit
def _decays(gate_ptr, decay_ptr, length, depth: tl.constexpr, chunk: tl.constexpr,
            width: tl.constexpr):  # fmt: skip
    """Logarithms of decay since the chunk began."""
    token = tl.program_id(0) * chunk + tl.arange(0, chunk)
    along = tl.program_id(2) * width + tl.arange(0, width)
    at = (tl.program_id(1).to(tl.int64) * length + token)[:, None] * depth + along[None, :]
    gate = tl.load(gate_ptr + at, mask=(token < length)[:, None], other=0.0)
    tl.store(decay_ptr + at, tl.cumsum(gate, axis=0), mask=(token < length)[:, None])


@triton.jit
def _states(
    k_ptr, v_ptr, decay_ptr, state_ptr, length, depth_k: tl.constexpr, depth_v: tl.constexpr,
    chunk: tl.constexpr, tile_k: tl.constexpr, tile_v: tl.constexpr
):  # fmt: skip
    """The state before every chunk, one chunk after another."""
    head = tl.program_id(0).to(tl.int64)
    row, col = (
        tl.program_id(1) * tile_k + tl.arange(0, tile_k),
        tl.program_id(2) * tile_v + tl.arange(0, tile_v),
    )
    state = tl.zeros((tile_k, tile_v), tl.float32)
    chunks = tl.cdiv(length, chunk)
    for number in range(chunks):
        state_at = ((head * chunks + number) * depth_k + row)[:, None] * depth_v + col[None, :]
        tl.store(state_ptr + state_at, state)
        token = number * chunk + tl.arange(0, chunk)
        inside = (token < length)[:, None]
        k_at = (head * length + token)[:, None] * depth_k + row[None, :]
        k = tl.load(k_ptr + k_at, mask=inside, other=0.0).to(tl.float32)
        decay = tl.load(decay_ptr + k_at, mask=inside, other=0.0)
        last = tl.minimum((number + 1) * chunk, length) - 1
        whole = tl.load(decay_ptr + (head * length + last) * depth_k + row)
        v_at = (head * length + token)[:, None] * depth_v + col[None, :]
        v = tl.load(v_ptr + v_at, mask=inside, other=0.0)
        kept = (k * tl.exp(whole[None, :] - decay)).to(v.dtype)
        state = tl.dot(tl.trans(kept), v, state * tl.exp(whole)[:, None])


@triton.jit
def _outputs(
    q_ptr, k_ptr, v_ptr, decay_ptr, state_ptr, out_ptr, length, depth_k: tl.constexpr,
    depth_v: tl.constexpr, chunk: tl.constexpr, part: tl.constexpr, tile_v: tl.constexpr
):  # fmt: skip
    """A part of a chunk: what came before the chunk by its state, the rest by products."""
    head = tl.program_id(1).to(tl.int64)
    begin = tl.program_id(0) * part
    number = begin // chunk
    row, along = begin + tl.arange(0, part), tl.arange(0, depth_k)
    col = tl.program_id(2) * tile_v + tl.arange(0, tile_v)
    at = (head * length + row)[:, None] * depth_k + along[None, :]
    inside = (row < length)[:, None]
    q = tl.load(q_ptr + at, mask=inside, other=0.0).to(tl.float32)
    decay = tl.load(decay_ptr + at, mask=inside, other=0.0)
    chunks = tl.cdiv(length, chunk)
    state_at = ((head * chunks + number) * depth_k + along)[:, None] * depth_v + col[None, :]
    sums = tl.dot(q * tl.exp(decay), tl.load(state_ptr + state_at))
    # Related to the part's first token, decays of earlier tokens and of queries are below one.
    origin = tl.load(decay_ptr + (head * length + begin) * depth_k + along)
    query = q * tl.exp(decay - origin[None, :])
    for start in range(number * chunk, begin + part, part):
        token = start + tl.arange(0, part)
        k_at = (head * length + token)[:, None] * depth_k + along[None, :]
        there = (token < length)[:, None]
        k = tl.load(k_ptr + k_at, mask=there, other=0.0).to(tl.float32)
        since = tl.load(decay_ptr + k_at, mask=there, other=0.0)
        scores = tl.dot(query, tl.trans(k * tl.exp(origin[None, :] - since)))
        scores = tl.where(token[None, :] <= row[:, None], scores, 0.0)
        v_at = (head * length + token)[:, None] * depth_v + col[None, :]
        v = tl.load(v_ptr + v_at, mask=there, other=0.0).to(tl.float32)
        sums = tl.dot(scores, v, sums)
    out_at = (head * length + row)[:, None] * depth_v + col[None, :]
    tl.store(out_ptr + out_at, sums.to(out_ptr.dtype.element_ty), mask=inside)


def gated_linear_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gate: torch.Tensor
) -> torch.Tensor:
    """``q``, ``k`` and log-gates ``[B, H, N, Dk]``, ``v[B, H, N, Dv]``; gates are fp32."""
    batch, heads, length, depth_k = q.shape
    depth_v = v.shape[3]
    chunks = triton.cdiv(length, CHUNK)
    decay, out = torch.empty_like(gate), torch.empty_like(v)
    states = torch.empty((batch * heads, chunks, depth_k, depth_v), device=q.device)
    width, tile_v = min(depth_k, 32), min(depth_v, 64)
    both = batch * heads
    _decays[(chunks, both, depth_k // width)](
        gate, decay, length, depth=depth_k, chunk=CHUNK, width=width, num_warps=4
    )
    _states[(both, depth_k // min(depth_k, 64), depth_v // tile_v)](
        k, v, decay, states, length, depth_k=depth_k, depth_v=depth_v, chunk=CHUNK,
        tile_k=min(depth_k, 64), tile_v=tile_v, num_warps=4, num_stages=3,
    )  # fmt: skip
    _outputs[(triton.cdiv(length, PART), both, depth_v // tile_v)](
        q, k, v, decay, states, out, length, depth_k=depth_k, depth_v=depth_v, chunk=CHUNK,
        part=PART, tile_v=tile_v, num_warps=4, num_stages=1 if interpreted() else 2,
    )  # fmt: skip
    return out


@triton.jit
def _product(a, b):
    """To nearly fp32: each factor as a sum of three of the tensor cores' formats."""
    return tl.dot(a, b, input_precision="tf32x3")


@triton.jit
def _block(ptr, base, i: tl.constexpr, j: tl.constexpr, size: tl.constexpr, part: tl.constexpr):
    row, col = i * part + tl.arange(0, part), j * part + tl.arange(0, part)
    return ptr + base + row[:, None] * size + col[None, :]


@triton.jit
def _diagonal(a, identity):
    """(1 + a)^-1 = (1 - a)(1 + a^2)(1 + a^4)(1 + a^8), since a^16 is zero."""
    inverse, power = identity - a, _product(a, a)
    inverse = _product(inverse, identity + power)
    power = _product(power, power)
    inverse = _product(inverse, identity + power)
    return _product(inverse, identity + _product(power, power))


@triton.jit
def _invert(a_ptr, out_ptr, size: tl.constexpr, part: tl.constexpr):
    """Of four by four blocks: the diagonal first, then every other from those above and left."""
    base = tl.program_id(0).to(tl.int64) * size * size
    step = tl.arange(0, part)
    identity = tl.where(step[:, None] == step[None, :], 1.0, 0.0)
    zero = tl.zeros((part, part), tl.float32)
    t00 = _diagonal(tl.load(_block(a_ptr, base, 0, 0, size, part)), identity)
    t11 = _diagonal(tl.load(_block(a_ptr, base, 1, 1, size, part)), identity)
    t22 = _diagonal(tl.load(_block(a_ptr, base, 2, 2, size, part)), identity)
    t33 = _diagonal(tl.load(_block(a_ptr, base, 3, 3, size, part)), identity)
    a10 = tl.load(_block(a_ptr, base, 1, 0, size, part))
    a20 = tl.load(_block(a_ptr, base, 2, 0, size, part))
    a21 = tl.load(_block(a_ptr, base, 2, 1, size, part))
    a30 = tl.load(_block(a_ptr, base, 3, 0, size, part))
    a31 = tl.load(_block(a_ptr, base, 3, 1, size, part))
    a32 = tl.load(_block(a_ptr, base, 3, 2, size, part))
    t10 = -_product(t11, _product(a10, t00))
    t21 = -_product(t22, _product(a21, t11))
    t32 = -_product(t33, _product(a32, t22))
    t20 = -_product(t22, _product(a20, t00) + _product(a21, t10))
    t31 = -_product(t33, _product(a31, t11) + _product(a32, t21))
    t30 = -_product(t33, _product(a30, t00) + _product(a31, t10) + _product(a32, t20))
    tl.store(_block(out_ptr, base, 0, 0, size, part), t00)
    tl.store(_block(out_ptr, base, 1, 0, size, part), t10)
    tl.store(_block(out_ptr, base, 1, 1, size, part), t11)
    tl.store(_block(out_ptr, base, 2, 0, size, part), t20)
    tl.store(_block(out_ptr, base, 2, 1, size, part), t21)
    tl.store(_block(out_ptr, base, 2, 2, size, part), t22)
    tl.store(_block(out_ptr, base, 3, 0, size, part), t30)
    tl.store(_block(out_ptr, base, 3, 1, size, part), t31)
    tl.store(_block(out_ptr, base, 3, 2, size, part), t32)
    tl.store(_block(out_ptr, base, 3, 3, size, part), t33)
    for i in tl.static_range(3):
        for j in tl.static_range(i + 1, 4):
            tl.store(_block(out_ptr, base, i, j, size, part), zero)


def triangular_inverse(a: torch.Tensor) -> torch.Tensor:
    """``(1 + a)^-1`` of strictly lower triangular ``a[B, 64, 64]`` in fp32."""
    out = torch.empty_like(a)
    _invert[(a.shape[0],)](a, out, size=CHUNK, part=PART, num_warps=1)
    return out

"""Transformer layers as eager torch runs them: which kernels, one after the other.

``llama`` has RMS norms, rotary positions, grouped-query attention and a gated feed-forward part;
``gpt`` has layer norms, biases and a GELU. Between two kernels most data stays in the L2, so the
small elementwise kernels have constants of their own: ``hot`` for contiguous ones, ``strided`` for
those over views (rotary positions, writing the key-value cache).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mapper.workload.models.layer import LAYERS, LayerSizes
from sim.gpu.chip import Chip
from sim.gpu.demand import Call, Constants, Demand, sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer on one device of ``tp``: ``new`` tokens of ``batch`` sequences after ``ctx``."""

    model: LayerSizes
    batch: int
    new: int
    ctx: int
    tp: int
    dtype: str

    @property
    def tokens(self) -> int:
        return self.batch * self.new

    @property
    def depth(self) -> int:
        return self.model.head_depth

    @property
    def heads(self) -> int:
        return self.model.heads // self.tp

    @property
    def kv_heads(self) -> int:
        return max(1, self.model.kv_heads // self.tp)

    def call(self, kind: str, **params: int) -> Call:
        return Call(kind=kind, params=params, dtype=self.dtype)

    def linear(self, n: int, k: int) -> Call:
        return self.call("gemm", M=self.tokens, N=n, K=k)

    def norm(self) -> Call:
        return self.call("row_layernorm", R=self.tokens, C=self.model.hidden)

    def hot(self, n: int, tensors: int) -> Call:
        return self.call("hot", n=n, tensors=tensors)

    def strided(self, heads: int, tensors: int) -> Call:
        return self.call("strided", n=self.tokens * heads * self.depth, tensors=tensors)

    def reduce(self) -> Iterator[Call]:
        if self.tp > 1:
            size = self.tokens * self.model.hidden * 2
            yield self.call("all_reduce", bytes=size, gpus=self.tp, inside=1)


def layer_of(call: Call) -> Layer:
    p = call.params
    return Layer(
        model=LAYERS[p["model"]],
        batch=p["B"],
        new=p["S"],
        ctx=p["ctx"],
        tp=p.get("tp", 1),
        dtype=call.dtype,
    )


def kernels(layer: Layer) -> Iterator[tuple[str, Call]]:
    """Names and kernels of a layer in the order of execution."""
    hidden, model = layer.model.hidden, layer.model
    yield "norm1", layer.norm()
    yield "qkv", layer.linear((layer.heads + 2 * layer.kv_heads) * layer.depth, hidden)
    if model.style == "llama":
        for name, heads in (("q", layer.heads), ("k", layer.kv_heads)):
            for part, tensors in (("cos", 2), ("neg", 1), ("cat", 2), ("sin", 2), ("add", 3)):
                yield f"rope_{name}_{part}", layer.strided(heads, tensors)
    for name in ("cache_k", "cache_v"):
        yield name, layer.strided(layer.kv_heads, 2)
    yield "attention", _attention(layer)
    yield "output", layer.linear(hidden, layer.heads * layer.depth)
    yield from (("reduce1", call) for call in layer.reduce())
    yield "residual1", layer.hot(layer.tokens * hidden, 3)
    yield "norm2", layer.norm()
    yield from _feed_forward(layer)
    yield from (("reduce2", call) for call in layer.reduce())
    yield "residual2", layer.hot(layer.tokens * hidden, 3)


def _attention(layer: Layer) -> Call:
    return layer.call(
        "sdpa",
        B=layer.batch,
        H=layer.heads,
        Hkv=layer.kv_heads,
        Sq=layer.new,
        Skv=layer.ctx + layer.new,
        D=layer.depth,
        causal=int(layer.new > 1),
    )


def _feed_forward(layer: Layer) -> Iterator[tuple[str, Call]]:
    hidden, width = layer.model.hidden, layer.model.feed_forward // layer.tp
    if layer.model.style == "llama":
        yield "gate", layer.linear(width, hidden)
        yield "silu", layer.hot(layer.tokens * width, 2)
    yield "up", layer.linear(width, hidden)
    if layer.model.style == "llama":
        yield "gated", layer.hot(layer.tokens * width, 3)
    else:
        yield "gelu", layer.hot(layer.tokens * width, 2)
    yield "down", layer.linear(hidden, width)


def hot_key(call: Call) -> str:
    return call.kind


def hot(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    """A small elementwise kernel whose operands may still be in the L2."""
    n, tensors = sizes(calls, "n", "tensors")
    moved = n * tensors * 2
    zeros = np.zeros_like(moved)
    cached = np.minimum(1.0, chip.l2_bytes * constants["kept"] / np.maximum(moved, 1))
    bandwidth = constants["hbm"] * chip.hbm_bytes_per_us
    return Demand(
        core_us=moved / (constants["l2"] * chip.l2_bytes_per_us),
        memory_us=moved * (1 - cached) / bandwidth,
        fixed_us=constants["launch_us"] + zeros,
        overlap=zeros + 2,
        macs=zeros,
        scalar=n,
        hbm_bytes=moved * (1 - cached),
        l2_bytes=moved,
        written_bytes=n * 2 * (1 - cached),
        rounds=zeros + 1,
        last_share=zeros + 1,
    )

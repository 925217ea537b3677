"""Transformer blocks as eager torch runs them: one kernel after the other.

``llama`` is RMS norm, rotary positions, grouped-query attention and a gated feed-forward part
(arXiv:2407.21783); ``gpt`` is layer norm, biases and a GELU feed-forward part (Radford et al.,
Language Models are Unsupervised Multitask Learners, 2019). A block computes ``S`` new tokens of
each of ``B`` sequences; ``ctx`` tokens are in the key-value cache already. ``tp`` devices share the
heads and the feed-forward part, and add up after each of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernels_ref.library.kinds import Kind, Params, Spec
from mapper.workload.models.layer import LAYERS

if TYPE_CHECKING:
    import torch


#: Those that are measured.
MODELS = {
    name: LAYERS[name]
    for name in ("llama3-8b", "llama3-70b", "llama2-7b", "gpt2", "gpt2-xl", "gpt3-6.7b")
}

#: Adds up a tensor over the devices of a tensor-parallel group, in place.
Reduce = Callable[["torch.Tensor"], Any]


def _nothing(x: torch.Tensor) -> None:
    """One device has nothing to add."""


def weight(rows: int, cols: int, dtype: str) -> Spec:
    return Spec(shape=(rows, cols), dtype=dtype, scale=cols**-0.5)


def block_inputs(params: Params, dtype: str) -> tuple[Spec, ...]:
    """Activations, key and value cache, then norms (and biases), projections and tables."""
    model, tp = MODELS[params["model"]], params["tp"]
    batch, new, ctx = params["B"], params["S"], params["ctx"]
    d, depth = model.hidden, model.head_depth
    heads, kv_heads, ffn = model.heads // tp, max(1, model.kv_heads // tp), model.feed_forward // tp
    qkv = (heads + 2 * kv_heads) * depth
    x = Spec(shape=(batch, new, d), dtype=dtype)
    cache = Spec(shape=(batch, kv_heads, ctx + new, depth), dtype=dtype)
    vector = Spec(shape=(d,), dtype=dtype)
    shared = (x, cache, cache, weight(qkv, d, dtype), weight(d, heads * depth, dtype))
    if model.style == "gpt":
        bias = Spec(shape=(qkv,), dtype=dtype), Spec(shape=(ffn,), dtype=dtype)
        feed = weight(ffn, d, dtype), weight(d, ffn, dtype)
        return (*shared, *feed, *(vector,) * 6, *bias)
    table = Spec(shape=(new, depth), dtype=dtype)
    feed3 = weight(ffn, d, dtype), weight(ffn, d, dtype), weight(d, ffn, dtype)
    return (*shared, *feed3, vector, vector, table, table)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    import torch

    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def _attend(
    params: Params, parts: tuple[torch.Tensor, ...], keys: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Put new keys and values into the cache and attend to all; heads side by side again."""
    import torch.nn.functional as nn

    q, k, v = parts
    ctx = params["ctx"]
    keys[:, :, ctx:].copy_(k)
    values[:, :, ctx:].copy_(v)
    y = nn.scaled_dot_product_attention(
        q, keys, values, is_causal=params["S"] > 1, enable_gqa=q.shape[1] != keys.shape[1]
    )
    return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)


def _heads(qkv: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, ...]:
    kv_heads, depth = keys.shape[1], keys.shape[3]
    x = qkv.view(*qkv.shape[:2], -1, depth).transpose(1, 2)
    heads = x.shape[1] - 2 * kv_heads
    return x[:, :heads], x[:, heads : heads + kv_heads], x[:, heads + kv_heads :]


def _llama(params: Params, reduce: Reduce, *tensors: torch.Tensor) -> torch.Tensor:
    import torch.nn.functional as nn

    x, keys, values, wqkv, wo, gate, up, down, norm1, norm2, cos, sin = tensors
    width = (x.shape[-1],)
    q, k, v = _heads(nn.linear(nn.rms_norm(x, width, norm1), wqkv), keys)
    q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
    y = nn.linear(_attend(params, (q, k, v), keys, values), wo)
    reduce(y)
    x = x + y
    h = nn.rms_norm(x, width, norm2)
    y = nn.linear(nn.silu(nn.linear(h, gate)) * nn.linear(h, up), down)
    reduce(y)
    return x + y


def _gpt(params: Params, reduce: Reduce, *tensors: torch.Tensor) -> torch.Tensor:
    import torch.nn.functional as nn

    x, keys, values, wqkv, wo, up, down = tensors[:7]
    scale1, shift1, scale2, shift2, bias_o, bias_down, bias_qkv, bias_up = tensors[7:]
    width = (x.shape[-1],)
    parts = _heads(nn.linear(nn.layer_norm(x, width, scale1, shift1), wqkv, bias_qkv), keys)
    y = nn.linear(_attend(params, parts, keys, values), wo, bias_o)
    reduce(y)
    x = x + y
    h = nn.layer_norm(x, width, scale2, shift2)
    y = nn.linear(nn.gelu(nn.linear(h, up, bias_up), approximate="tanh"), down, bias_down)
    reduce(y)
    return x + y


STYLES: dict[str, Callable[..., Any]] = {"llama": _llama, "gpt": _gpt}


def run_block(params: Params, reduce: Reduce, *tensors: torch.Tensor) -> Any:
    return STYLES[MODELS[params["model"]].style](params, reduce, *tensors)


BLOCK = Kind(
    params=("model", "B", "S", "ctx", "tp"),
    dtypes=("bf16",),
    inputs=block_inputs,
    output=lambda params, dtype: block_inputs(params, dtype)[0],
    call=lambda params, *tensors: run_block(params, _nothing, *tensors),
)

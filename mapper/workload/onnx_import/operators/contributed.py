"""Operators of onnxruntime's own domain: attention with caches, and layers put together."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from mapper.workload.onnx_import.operators.attention import in_heads, rotated
from mapper.workload.onnx_import.values import NodeCall, onnx_operator

_MICROSOFT = "com.microsoft"


@onnx_operator("RotaryEmbedding", domain=_MICROSOFT)
def run_rotary(call: NodeCall) -> Any:
    """Pairs of elements turned by the angles of their positions, which are rows of two tables."""
    data, places = call.tensor(0), call.tensor(1)
    in_rows = data.ndim == 3
    cosines = call.tensor(2)
    if in_rows:
        turned = call.attribute("rotary_embedding_dim", 0)
        heads = call.attribute("num_heads", 0) if turned else 0
        data = in_heads(data, heads or data.shape[-1] // (2 * cosines.shape[-1]))
    if places.numel() == 1:
        # The first position alone: those after it follow.
        angles = [table[: data.shape[2]].unsqueeze(0) for table in (cosines, call.tensor(3))]
    else:
        angles = [functional.embedding(places.long(), table) for table in (cosines, call.tensor(3))]
    result = rotated(data, *angles, interleaved=bool(call.attribute("interleaved", 0)))
    return result.transpose(1, 2).flatten(2) if in_rows else result


@onnx_operator("GroupQueryAttention", domain=_MICROSOFT)
def run_grouped_attention(call: NodeCall) -> Any:
    """Queries share keys and values; new ones are put behind the earlier ones.

    With a window, a single new token reads only as many positions; of several, all scores are
    computed.
    """
    heads, kv_heads = call.attributes["num_heads"], call.attributes["kv_num_heads"]
    query, key, value = _separate(call, heads, kv_heads)
    past = call.tensor(3).shape[2] if call.has(3) else 0
    if call.attribute("do_rotary", 0):
        query, key = (_turned(call, each, past) for each in (query, key))
    if past:
        key = torch.cat([call.tensor(3), key], dim=2)
        value = torch.cat([call.tensor(4), value], dim=2)
    window = call.attribute("local_window_size", -1)
    seen = slice(-window, None) if window > 0 and query.shape[2] == 1 else slice(None)
    result = functional.scaled_dot_product_attention(
        query,
        key[:, :, seen],
        value[:, :, seen],
        is_causal=query.shape[2] > 1,
        scale=call.attribute("scale", 0.0) or None,
        enable_gqa=heads != kv_heads,
    )
    return result.transpose(1, 2).flatten(2), key, value


def _separate(call: NodeCall, heads: int, kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Three inputs, or one with the heads of queries, keys and values behind each other."""
    rows = call.tensor(0)
    if call.has(1):
        query, key, value = in_heads(rows, heads), call.tensor(1), call.tensor(2)
        return query, in_heads(key, kv_heads), in_heads(value, kv_heads)
    packed = in_heads(rows, heads + 2 * kv_heads)
    query, key, value = torch.split(packed, [heads, kv_heads, kv_heads], dim=1)
    return query, key, value


def _turned(call: NodeCall, data: Tensor, past: int) -> Tensor:
    angles = [table[past : past + data.shape[2]].unsqueeze(0) for table in map(call.tensor, (7, 8))]
    return rotated(data, *angles, interleaved=bool(call.attribute("rotary_interleaved", 0)))


@onnx_operator("MultiHeadAttention", domain=_MICROSOFT)
def run_many_headed_attention(call: NodeCall) -> Any:
    """Three inputs with all heads in a row, or keys and values in heads; biases before heads."""
    heads = call.attributes["num_heads"]
    if call.has(0) and not call.has(1):
        # ``[batch, token, head, 3, element]``
        query, key, value = call.tensor(0).permute(3, 0, 2, 1, 4).unbind(0)
    else:
        biases = _thirds(call, 3)
        parts = [call.tensor(at) for at in range(3)]
        query, key, value = (
            _biased(part, bias, heads) for part, bias in zip(parts, biases, strict=True)
        )
    if call.has(6):
        key = torch.cat([call.tensor(6), key], dim=2)
        value = torch.cat([call.tensor(7), value], dim=2)
    merged = _attended(call, query, key, value)
    return (merged, key, value)[: max(call.outputs, 1)]


def _attended(call: NodeCall, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The context in rows, heads side by side; mask and scale stand at the same places in both."""
    result = functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=call.optional(5),
        is_causal=bool(call.attribute("unidirectional", 0)) and query.shape[2] > 1,
        scale=call.attribute("scale", 0.0) or None,
    )
    return result.transpose(1, 2).flatten(2)


def _thirds(call: NodeCall, position: int) -> tuple[Tensor | None, ...]:
    bias = call.optional(position)
    return (None,) * 3 if bias is None else bias.chunk(3)


def _biased(part: Tensor, bias: Tensor | None, heads: int) -> Tensor:
    if part.ndim == 4:
        return part
    return in_heads(part if bias is None else part + bias, heads)


@onnx_operator("Attention", domain=_MICROSOFT)
def run_attention_with_projection(call: NodeCall) -> Any:
    """Queries, keys and values from one product, then attention."""
    heads = call.attributes["num_heads"]
    rows = functional.linear(call.tensor(0), call.tensor(1).t(), call.optional(2))
    sizes = call.attribute("qkv_hidden_sizes", None) or [rows.shape[-1] // 3] * 3
    query, key, value = (in_heads(part, heads) for part in torch.split(rows, list(sizes), dim=-1))
    if call.has(4):
        # ``[keys and values, batch, head, position, element]``
        key, value = (
            torch.cat([past, new], dim=2)
            for past, new in zip(call.tensor(4).unbind(0), (key, value), strict=True)
        )
    merged = _attended(call, query, key, value)
    return (merged, torch.stack([key, value])) if call.outputs > 1 else merged


@onnx_operator("EmbedLayerNormalization", domain=_MICROSOFT)
def run_embedding(call: NodeCall) -> Any:
    """The sum of a word's, a position's and a segment's row, normalized."""
    tokens = call.tensor(0).long()
    total = functional.embedding(tokens, call.tensor(2))
    total = total + call.tensor(3)[: tokens.shape[-1]]
    if call.has(1) and call.has(4):
        total = total + functional.embedding(call.tensor(1).long(), call.tensor(4))
    normed = functional.layer_norm(total, total.shape[-1:], call.tensor(5), call.tensor(6))
    return (normed, None, total)[: max(call.outputs, 1)]


@onnx_operator("QuickGelu", domain=_MICROSOFT)
def run_quick_gelu(call: NodeCall) -> Any:
    data = call.tensor(0)
    return data * torch.sigmoid(data * call.attribute("alpha", 1.702))


@onnx_operator("BiasSplitGelu", domain=_MICROSOFT)
def run_split_gelu(call: NodeCall) -> Any:
    left, right = (call.tensor(0) + call.tensor(1)).chunk(2, dim=-1)
    return left * functional.gelu(right)


@onnx_operator("BiasAdd", domain=_MICROSOFT)
def run_biased_sum(call: NodeCall) -> Any:
    return call.tensor(0) + call.tensor(1) + call.tensor(2)

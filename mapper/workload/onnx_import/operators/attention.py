"""Attention and rotary positions as ONNX has them, and products with packed weights."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from mapper.workload.onnx_import.values import NodeCall, onnx_operator

#: Outputs: contexts, keys and values with the earlier ones.
_WITH_CACHES = 3


@onnx_operator("Attention")
def run_attention(call: NodeCall) -> Any:
    """Opset 23: of heads, or of rows that hold all heads; with earlier keys and values."""
    if call.attribute("softcap", 0.0) or call.outputs > _WITH_CACHES:
        raise call.error("softcap and the scores as an output cannot be imported")
    query, key, value = (call.tensor(at) for at in range(3))
    in_rows = query.ndim == 3
    if in_rows:
        query = in_heads(query, call.attributes["q_num_heads"])
        key, value = (in_heads(each, call.attributes["kv_num_heads"]) for each in (key, value))
    if call.has(4):
        key = torch.cat([call.tensor(4), key], dim=2)
        value = torch.cat([call.tensor(5), value], dim=2)
    result = functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=call.optional(3),
        is_causal=bool(call.attribute("is_causal", 0)),
        scale=call.attribute("scale", None),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    if in_rows:
        result = result.transpose(1, 2).flatten(2)
    return (result, key, value)[: call.outputs] if call.outputs > 1 else result


def in_heads(rows: torch.Tensor, heads: int) -> torch.Tensor:
    return rows.reshape(*rows.shape[:2], heads, -1).transpose(1, 2)


@onnx_operator("RotaryEmbedding")
def run_rotary(call: NodeCall) -> Any:
    """Opset 23: pairs of elements turned by the angles of their positions."""
    data = call.tensor(0)
    in_rows = data.ndim == 3
    if in_rows:
        data = in_heads(data, call.attributes["num_heads"])
    cosines, sines = call.tensor(1), call.tensor(2)
    if call.has(3):
        cosines, sines = (functional.embedding(call.tensor(3).long(), t) for t in (cosines, sines))
    interleaved = bool(call.attribute("interleaved", 0))
    result = rotated(data, cosines, sines, interleaved=interleaved)
    return result.transpose(1, 2).flatten(2) if in_rows else result


def rotated(
    data: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, *, interleaved: bool
) -> torch.Tensor:
    """Of every head, the first elements turned, two for each angle of a position."""
    turned = 2 * cosines.shape[-1]
    cosines, sines = (each.unsqueeze(1) for each in (cosines, sines))
    part, rest = data[..., :turned], data[..., turned:]
    if interleaved:
        first, second = part.reshape(*part.shape[:-1], -1, 2).unbind(-1)
    else:
        first, second = part.chunk(2, dim=-1)
    pair = first * cosines - second * sines, second * cosines + first * sines
    part = torch.stack(pair, dim=-1).flatten(-2) if interleaved else torch.cat(pair, dim=-1)
    return torch.cat([part, rest], dim=-1) if rest.shape[-1] else part

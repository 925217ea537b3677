"""Scaled dot-product attention, as the two products and the softmax that it consists of."""

from __future__ import annotations

from dataclasses import replace

from mapper.workload.output_path import output_path_note
from mapper.workload.torch_import.aten.contraction import Product, batch_dims, emit_product
from mapper.workload.torch_import.aten.normalization import MASKED_SOFTMAX_OPS, SOFTMAX_OPS
from mapper.workload.torch_import.draft import pointwise
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, broadcast, join_leading, reshape


@lowers("aten.scaled_dot_product_attention")
def lower_attention(call: Call) -> Value:
    """``M`` queries of ``L`` keys per head ``H``; with grouped heads, ``G`` queries share a key.

    All ``M * L`` scores are computed, also under a causal mask.
    """
    query, key, value = call["query"], call["key"], call["value"]
    heads = batch_dims(len(key.axes) - 2)
    grouped = query.shape[:-2] != key.shape[:-2] and call.arguments.get("enable_gqa")
    if grouped:
        query = _grouped(query, key)
        heads_of_query = (*heads, "G")
    else:
        heads_of_query = heads
        query, key, value = (_expanded(call, view) for view in (query, key, value))
    path = call.name.removesuffix(".scaled_dot_product_attention")
    scores = emit_product(
        call,
        f"{path}.scores",
        Product(
            kind="attention_scores",
            left=query,
            left_dims=(*heads_of_query, "M", "D"),
            right=key,
            right_dims=(*heads, "L", "D"),
            output_dims=(*heads_of_query, "M", "L"),
        ),
    )
    call.draft.folded.append(output_path_note("scale of the scores", f"{path}.scores"))
    weights = _softmax(call, f"{path}.softmax", scores)
    context = emit_product(
        call,
        f"{path}.context",
        Product(
            kind="attention_context",
            left=weights,
            left_dims=(*heads_of_query, "M", "L"),
            right=value,
            right_dims=(*heads, "L", "E"),
            output_dims=(*heads_of_query, "M", "E"),
        ),
    )
    return call.draft.reshape(context, call.shape)


def _softmax(call: Call, name: str, scores: View) -> View:
    if call["is_causal"]:
        call.draft.folded.append(f"causal mask applied by {name}")
    inputs = [scores]
    mask = call["attn_mask"]
    if mask is not None:
        query = call["query"].shape
        inputs.append(_as_scores(broadcast(mask, (*query[:-1], scores.shape[-1])), scores))
    else:
        inputs = [join_leading(scores, 1)]
    ops = SOFTMAX_OPS if mask is None else MASKED_SOFTMAX_OPS
    plain = pointwise("softmax", "softmax", inputs[0].shape, ops, len(inputs))
    kernel = replace(plain, causal=bool(call["is_causal"]))
    result = call.draft.emit(name, kernel, inputs, inputs[0].shape, call.dtype)
    return call.draft.reshape(result, scores.shape)


def _grouped(query: View, key: View) -> View:
    """Heads of the query as ``[heads of the key, queries per key]``."""
    *batch, heads, rows, size = query.shape
    key_heads = key.shape[-3]
    split = reshape(query, (*batch, key_heads, heads // key_heads, rows, size))
    assert split is not None  # splitting an axis is always possible
    return split


def _as_scores(mask: View, scores: View) -> View:
    """The mask with heads split as those of the scores are (repeated heads split too)."""
    split = reshape(mask, scores.shape)
    assert split is not None
    return split


def _expanded(call: Call, view: View) -> View:
    return broadcast(view, (*call.shape[:-2], *view.shape[-2:]))

"""Builds a decoder: embedding, blocks of attention and feed-forward, norm, logits."""

from __future__ import annotations

from dataclasses import replace

from mapper.workload.models.blocks import (
    Into,
    Rotation,
    Rows,
    add,
    embed,
    feed_forward,
    gated_feed_forward,
    head,
    linear,
    norm,
)
from mapper.workload.models.config import Decoder, Run
from mapper.workload.models.latent import latent_attention
from mapper.workload.writing.attention import (
    Heads,
    attention_parts,
    cache_update,
    streaming_attention,
)
from mapper.workload.writing.builder import Builder, Step, pointwise
from mapper.workload.writing.experts import Experts, emit_experts
from mapper.workload.writing.notation import nest
from mapper.workload.writing.rows import RMS_NORM_OPS


def build_decoder(builder: Builder, model: Decoder, run: Run) -> list[str]:
    """The model's operators; returns what leaves it: logits (and caches are updated in place)."""
    indices = builder.input("tokens", (run.tokens,), "int32")
    x, table = embed(builder, "embed", indices, model.vocabulary, model.width)
    if not model.rotary:
        x = add_positions(builder, x, model.positions, run)
    rotation = _rotation(builder, model, run) if model.rotary else None
    for number in range(model.layers):
        x = _layer(builder, f"layers.{number}", x, number, (model, run, rotation))
    x = norm(builder, "norm", x, model.norm)
    rows = Rows(count=run.batch, every=run.new, first=run.new - 1)
    if run.all_logits:
        rows = Rows(count=run.tokens)
    if not model.tied:
        table = builder.gain("head.weight", (model.vocabulary, model.width))
    return [head(builder, "head", x, table, rows)]


def add_positions(builder: Builder, data: str, positions: int, run: Run) -> str:
    """Learned positions, the same for every sequence."""
    width = builder.shape(data)[1]
    table = builder.gain("positions.weight", (positions, width))
    row = f"{run.new}*b+m d"
    text = f"{row}, m+{run.context - run.new} d -> {row}"
    sizes = {"b": run.batch, "m": run.new, "d": width}
    return builder.emit("positions", pointwise("add", "add", text, sizes), [data, table])


def _rotation(builder: Builder, model: Decoder, run: Run) -> Rotation:
    half = (model.latent.rope if model.latent else model.head) // 2
    return Rotation(
        batch=run.batch,
        tokens=run.new,
        first=run.context - run.new,
        cosines=builder.input("cosines", (run.context, half)),
        sines=builder.input("sines", (run.context, half)),
    )


Setting = tuple[Decoder, Run, Rotation | None]


def _layer(builder: Builder, name: str, x: str, number: int, setting: Setting) -> str:
    model, run, rotation = setting
    h = norm(builder, f"{name}.attention_norm", x, model.norm)
    if model.latent is not None:
        assert rotation is not None
        y = latent_attention(builder, f"{name}.attention", h, (model, run, rotation))
    else:
        y = _attention(builder, f"{name}.attention", h, setting)
    x = add(builder, f"{name}.attention_add", x, y)
    h = norm(builder, f"{name}.feed_forward_norm", x, model.norm)
    y = _feed_forward(builder, f"{name}.feed_forward", h, number, (model, run))
    return add(builder, f"{name}.feed_forward_add", x, y)


def _attention(builder: Builder, name: str, x: str, setting: Setting) -> str:
    model, run, rotation = setting
    heads = Heads(
        batch=run.batch,
        queries=run.new,
        keys=run.context,
        groups=model.kv_heads,
        per_group=model.heads // model.kv_heads,
        size=model.head,
        causal=True,
    )
    if model.joint:
        context = _joint(builder, name, x, heads, run)
        return linear(builder, f"{name}.o", context, model.width, bias=model.bias)
    bias = model.bias or model.qkv_bias
    q = linear(builder, f"{name}.q", x, model.heads * model.head, bias=bias)
    if model.head_norms:
        q = _head_norm(builder, f"{name}.q_norm", q, model)
    if rotation is not None:
        q = rotation.rotate(builder, f"{name}.q_rotary", q, model.heads)
    cache = _keys_and_values(builder, name, x, heads, setting)
    context = attend(builder, name, run.form, heads, [q, cache])
    return linear(builder, f"{name}.o", context, model.width, bias=model.bias)


def _joint(builder: Builder, name: str, x: str, heads: Heads, run: Run) -> str:
    """Contexts from one matrix's result, whose keys and values are copied only into a cache of
    earlier tokens or of another format."""
    width = heads.heads * heads.size
    made = linear(builder, f"{name}.qkv", x, 3 * width, bias=True)
    formats = builder.formats
    if not run.cached and formats.cache == formats.activations:
        return attend(builder, name, run.form, replace(heads, joint=True), [made, made])
    cache = _cache(builder, f"{name}.kv_cache", heads, run)
    for part, what in enumerate("kv"):
        columns = range((part + 1) * width, (part + 2) * width)
        cache_update(builder, f"{name}.{what}_cache_update", cache, made, (heads, part), columns)
    return attend(builder, name, run.form, heads, [made, cache])


def _cache(builder: Builder, name: str, heads: Heads, run: Run) -> str:
    """Holds earlier tokens, or waits for the first ones."""
    make = builder.input if run.cached else builder.result
    return make(name, heads.cache_shape, builder.formats.cache)


def _keys_and_values(builder: Builder, name: str, x: str, heads: Heads, setting: Setting) -> str:
    """Those of new tokens: written where attention reads them, or into a cache of earlier ones."""
    model, run, rotation = setting
    columns = model.kv_heads * model.head
    bias = model.bias or model.qkv_bias
    cache = _cache(builder, f"{name}.kv_cache", heads, run)
    keys, values = (None if run.cached else Into(cache, f"{part} {{column}}") for part in (0, 1))
    last = rotation is not None or model.head_norms
    k = linear(builder, f"{name}.k", x, columns, bias=bias, into=None if last else keys)
    if model.head_norms:
        k = _head_norm(builder, f"{name}.k_norm", k, model)
    if rotation is not None:
        k = rotation.rotate(builder, f"{name}.k_rotary", k, model.kv_heads, into=keys)
    v = linear(builder, f"{name}.v", x, columns, bias=bias, into=values)
    if run.cached:
        cache_update(builder, f"{name}.k_cache_update", cache, k, (heads, 0))
        cache_update(builder, f"{name}.v_cache_update", cache, v, (heads, 1))
    return cache


def attend(builder: Builder, name: str, form: str, heads: Heads, inputs: list[str]) -> str:
    """Contexts ``[tokens, heads * size]``."""
    if form == "streaming":
        return streaming_attention(builder, f"{name}.core", heads, inputs)
    return attention_parts(builder, name, heads, inputs)


def _head_norm(builder: Builder, name: str, data: str, model: Decoder) -> str:
    """Every head on its own, with one gain for all (Qwen3)."""
    rows, columns = builder.shape(data)
    gain = builder.gain(f"{name}.weight", (model.head,))
    place = f"t {model.head}*h+d"
    sizes = {"t": rows, "h": columns // model.head, "d": model.head}
    step = Step(
        kind="rms_norm",
        operation="norm",
        nest=nest(f"{place}, d -> {place}", sizes),
        ops=RMS_NORM_OPS,
        whole="d",
    )
    return builder.emit(name, step, [data, gain])


def _feed_forward(
    builder: Builder, name: str, x: str, number: int, setting: tuple[Decoder, Run]
) -> str:
    model, run = setting
    mixture = model.mixture
    if mixture is None or number < mixture.dense_layers:
        if model.gated:
            return gated_feed_forward(builder, name, x, model.hidden)
        return feed_forward(builder, name, x, model.hidden, "gelu_tanh")
    if mixture.score_bias:
        builder.gain(f"{name}.router.bias", (mixture.experts,))
    layer = Experts(
        tokens=run.tokens,
        chosen=mixture.chosen,
        width=model.width,
        hidden=mixture.hidden,
        loads=run.loads,
        score=mixture.score,
    )
    y = emit_experts(builder, name, x, layer)
    if not mixture.shared:
        return y
    hidden = mixture.shared * mixture.hidden
    shared = gated_feed_forward(builder, f"{name}.shared", x, hidden)
    return add(builder, f"{name}.shared_add", y, shared)

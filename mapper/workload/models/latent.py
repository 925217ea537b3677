"""Multi-head latent attention (DeepSeek-V2, 2024): what is cached is one latent per token.

A latent and the rotary part of its key lie side by side, as do both parts of a query's head.
Prefill expands latents, cached ones too, to keys and values of every head; values are padded to the
size of keys, as the models' reference implementation does. Decoding applies the expanding matrices
to queries and contexts instead (absorbed), and heads read latents.
"""

from __future__ import annotations

from mapper.workload.models.blocks import Into, Rotation, linear, norm
from mapper.workload.models.config import Decoder, Latent, Run
from mapper.workload.writing.attention import (
    Heads,
    attention_parts,
    cache_update,
    streaming_attention,
)
from mapper.workload.writing.builder import Builder, pointwise, product

Setting = tuple[Decoder, Latent, Run, Rotation]


def latent_attention(
    builder: Builder, name: str, x: str, setting: tuple[Decoder, Run, Rotation]
) -> str:
    model, run, rotation = setting
    assert model.latent is not None
    chosen = (model, model.latent, run, rotation)
    low = linear(builder, f"{name}.q_a", x, model.latent.query_rank)
    low = norm(builder, f"{name}.q_a_norm", low, model.norm)
    latents, rope = _latents(builder, name, x, model, model.latent)
    rows = (model.heads * 2 * model.head, model.latent.key_rank)
    up = builder.weight(f"{name}.kv_b.weight", rows)
    core = _absorbed if run.absorbed else _expanded
    context = core(builder, name, chosen, [low, latents, rope, up])
    return _out(builder, name, context, model)


def _out(builder: Builder, name: str, context: str, model: Decoder) -> str:
    """The last matrix; where contexts are padded, it reads around the padding."""
    rows, columns = builder.shape(context)
    if columns == model.heads * model.head:
        return linear(builder, f"{name}.o", context, model.width)
    weight = builder.weight(f"{name}.o.weight", (model.width, model.heads * model.head))
    sizes = {"M": rows, "N": model.width, "H": model.heads, "K": model.head}
    step = product(f"M {columns // model.heads}*H+K, N {model.head}*H+K -> M N", sizes)
    return builder.emit(f"{name}.o", step, [context, weight])


def _latents(
    builder: Builder, name: str, x: str, model: Decoder, latent: Latent
) -> tuple[str, str]:
    """The normalized latent and the rotary part of the key, which all heads share."""
    weight = builder.weight(f"{name}.kv_a.weight", (latent.key_rank + latent.rope, model.width))
    sizes = {"M": builder.shape(x)[0], "N": latent.key_rank, "K": model.width}
    low = builder.emit(f"{name}.kv_a", product("M K, N K -> M N", sizes), [x, weight])
    step = product(f"M K, N+{latent.key_rank} K -> M N", sizes | {"N": latent.rope})
    rope = builder.emit(f"{name}.kv_a_rope", step, [x, weight])
    return norm(builder, f"{name}.kv_a_norm", low, model.norm), rope


def _query_weight(builder: Builder, name: str, model: Decoder, latent: Latent) -> str:
    each = model.head + latent.rope
    return builder.weight(f"{name}.q_b.weight", (model.heads * each, latent.query_rank))


def _rotary_query(
    builder: Builder, name: str, setting: Setting, inputs: tuple[str, str, str], first: int
) -> None:
    """The rotary parts of a query's heads, behind ``first`` elements of each."""
    model, latent, run, rotation = setting
    low, weight, query = inputs
    each = model.head + latent.rope
    sizes = {"M": run.tokens, "H": model.heads, "N": latent.rope, "K": latent.query_rank}
    text = f"M K, {each}*H+N+{model.head} K -> M {latent.rope}*H+N"
    rope = builder.emit(f"{name}.q_b_rope", product(text, sizes), [low, weight])
    half = latent.rope // 2
    place = f"{first + latent.rope}*h+{half}*s+i+{first}"
    rotation.rotate(builder, f"{name}.q_rotary", rope, model.heads, into=Into(query, place))


def _expanded(builder: Builder, name: str, setting: Setting, inputs: list[str]) -> str:
    model, latent, run, rotation = setting
    low, latents, rope, up = inputs
    each = model.head + latent.rope
    heads = Heads(
        batch=run.batch,
        queries=run.new,
        keys=run.context,
        groups=model.heads,
        per_group=1,
        size=each,
        value=model.head,
        causal=True,
    )
    weight = _query_weight(builder, name, model, latent)
    query = builder.result(f"{name}.query", (run.tokens, model.heads * each))
    cache = builder.result(f"{name}.kv", heads.cache_shape)
    sizes = {"M": run.tokens, "H": model.heads, "N": model.head, "K": latent.query_rank}
    step = product(f"M K, {each}*H+N K -> M {each}*H+N", sizes)
    builder.emit(f"{name}.q_b", step, [low, weight], into=query)
    _rotary_query(builder, name, setting, (low, weight, query), model.head)
    rope = rotation.rotate(builder, f"{name}.k_rotary", rope, 1)
    first = 0
    if run.cached:
        latents = rope = _cached(builder, name, _on_latents(model, latent, run), latents, rope)
        first = latent.key_rank
    sizes |= {"M": run.batch * run.context, "K": latent.key_rank}
    for part, what in enumerate("kv"):
        row = f"{2 * model.head}*H+N+{part * model.head}"
        step = product(f"M K, {row} K -> M {part} {each}*H+N", sizes)
        builder.emit(f"{name}.{what}_b", step, [latents, up], into=cache)
    sizes = {"t": run.batch * run.context, "h": model.heads, "d": latent.rope}
    step = pointwise("copy", "copy", f"t d+{first} -> t 0 {each}*h+d+{model.head}", sizes)
    builder.emit(f"{name}.k_rope_copy", step, [rope], into=cache)
    return _core(builder, name, run, heads, [query, cache])


def _on_latents(model: Decoder, latent: Latent, run: Run) -> Heads:
    return Heads(
        batch=run.batch,
        queries=run.new,
        keys=run.context,
        groups=1,
        per_group=model.heads,
        size=latent.key_rank + latent.rope,
        value=latent.key_rank,
        latent=True,
        causal=True,
    )


def _cached(builder: Builder, name: str, heads: Heads, latents: str, rope: str) -> str:
    """The cache of latents and rotary parts, with those of the new tokens in it."""
    cache = builder.input(f"{name}.kv_cache", heads.cache_shape, builder.formats.cache)
    cache_update(builder, f"{name}.cache_update", cache, latents, (heads, 0))
    row = f"{heads.keys}*b+m+{heads.keys - heads.queries}"
    places = {"b": heads.batch, "m": heads.queries, "d": heads.size - heads.value}
    text = f"{heads.queries}*b+m d -> {row} d+{heads.value}"
    step = pointwise("cache_update", "copy", text, places)
    builder.emit(f"{name}.rope_cache_update", step, [rope], into=cache)
    return cache


def _absorbed(builder: Builder, name: str, setting: Setting, inputs: list[str]) -> str:
    model, latent, run, rotation = setting
    low, latents, rope, up = inputs
    rank, each = latent.key_rank, latent.key_rank + latent.rope
    heads = _on_latents(model, latent, run)
    weight = _query_weight(builder, name, model, latent)
    sizes = {"M": run.tokens, "H": model.heads, "N": model.head, "K": latent.query_rank}
    text = f"M K, {model.head + latent.rope}*H+N K -> M {model.head}*H+N"
    plain = builder.emit(f"{name}.q_b", product(text, sizes), [low, weight])
    query = builder.result(f"{name}.query", (run.tokens, model.heads * each))
    sizes = {"M": run.tokens, "H": model.heads, "N": rank, "K": model.head}
    step = product(f"M {model.head}*H+K, {2 * model.head}*H+K N -> M {each}*H+N", sizes)
    builder.emit(f"{name}.q_latent", step, [plain, up], into=query)
    _rotary_query(builder, name, setting, (low, weight, query), rank)
    rope = rotation.rotate(builder, f"{name}.k_rotary", rope, 1)
    cache = _cached(builder, name, heads, latents, rope)
    context = _core(builder, name, run, heads, [query, cache])
    width = builder.shape(context)[1] // model.heads
    sizes = {"M": run.tokens, "H": model.heads, "N": model.head, "K": rank}
    text = f"M {width}*H+K, {2 * model.head}*H+N+{model.head} K -> M {model.head}*H+N"
    return builder.emit(f"{name}.v_b", product(text, sizes), [context, up])


def _core(builder: Builder, name: str, run: Run, heads: Heads, inputs: list[str]) -> str:
    """Contexts of every head, ``value`` elements apart, or ``size`` if streaming."""
    if run.form == "streaming":
        return streaming_attention(builder, f"{name}.core", heads, inputs)
    return attention_parts(builder, name, heads, inputs)

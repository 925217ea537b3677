"""Multi-head latent attention (DeepSeek-V2, 2024): what is cached is one latent per token.

New sequences expand latents to keys and values of every head. With a cache, the expanding
matrices are applied to queries and contexts instead (absorbed), and heads read latents.
"""

from __future__ import annotations

from mapper.workload.models.blocks import Rotation, linear, norm
from mapper.workload.models.config import Decoder, Latent, Run
from mapper.workload.writing.attention import (
    Heads,
    attention_parts,
    cache_update,
    streaming_attention,
)
from mapper.workload.writing.builder import Builder, product


def latent_attention(
    builder: Builder, name: str, x: str, setting: tuple[Decoder, Run, Rotation]
) -> str:
    model, run, rotation = setting
    latent = model.latent
    assert latent is not None
    query, query_rope = _queries(builder, name, x, model, latent)
    query_rope = rotation.rotate(builder, f"{name}.q_rotary", query_rope, model.heads)
    keys, key_rope = _latents(builder, name, x, model, latent)
    key_rope = rotation.rotate(builder, f"{name}.k_rotary", key_rope, 1)
    up = builder.weight(f"{name}.kv_b.weight", (model.heads * 2 * model.head, latent.key_rank))
    core = _absorbed if run.cached else _expanded
    context = core(builder, name, (model, run), [query, keys, query_rope, key_rope, up])
    return linear(builder, f"{name}.o", context, model.width)


def _queries(
    builder: Builder, name: str, x: str, model: Decoder, latent: Latent
) -> tuple[str, str]:
    """Down to the query's rank and up to heads, plain part and rotary part apart."""
    low = linear(builder, f"{name}.q_a", x, latent.query_rank)
    low = norm(builder, f"{name}.q_a_norm", low, model.norm)
    each = model.head + latent.rope
    weight = builder.weight(f"{name}.q_b.weight", (model.heads * each, latent.query_rank))
    sizes = {"t": builder.shape(x)[0], "h": model.heads, "d": model.head, "k": latent.query_rank}
    text = f"t k, {each}*h+d k -> t {model.head}*h+d"
    plain = builder.emit(f"{name}.q_b", product(text, sizes), [low, weight])
    text = f"t k, {each}*h+d+{model.head} k -> t h d"
    step = product(text, sizes | {"d": latent.rope})
    return plain, builder.emit(f"{name}.q_b_rope", step, [low, weight])


def _latents(
    builder: Builder, name: str, x: str, model: Decoder, latent: Latent
) -> tuple[str, str]:
    """The normalized latent and the rotary part of the key, which all heads share."""
    weight = builder.weight(f"{name}.kv_a.weight", (latent.key_rank + latent.rope, model.width))
    sizes = {"t": builder.shape(x)[0], "n": latent.key_rank, "k": model.width}
    low = builder.emit(f"{name}.kv_a", product("t k, n k -> t n", sizes), [x, weight])
    step = product(f"t k, n+{latent.key_rank} k -> t n", sizes | {"n": latent.rope})
    rope = builder.emit(f"{name}.kv_a_rope", step, [x, weight])
    return norm(builder, f"{name}.kv_a_norm", low, model.norm), rope


def _expanded(builder: Builder, name: str, setting: tuple[Decoder, Run], inputs: list[str]) -> str:
    model, run = setting
    query, latents, query_rope, key_rope, up = inputs
    rank = builder.shape(latents)[1]
    sizes = {"t": run.tokens, "h": model.heads, "d": model.head, "k": rank}
    made = []
    for number, part in enumerate(("k", "v")):
        row = f"{2 * model.head}*h+d+{number * model.head}"
        step = product(f"t k, {row} k -> t {model.head}*h+d", sizes)
        made.append(builder.emit(f"{name}.{part}_b", step, [latents, up]))
    heads = Heads(
        batch=run.batch,
        queries=run.new,
        keys=run.new,
        groups=model.heads,
        per_group=1,
        size=model.head,
        rope=builder.shape(key_rope)[1],
    )
    return _core(builder, name, run, heads, [query, *made, query_rope, key_rope])


def _absorbed(builder: Builder, name: str, setting: tuple[Decoder, Run], inputs: list[str]) -> str:
    model, run = setting
    query, latents, query_rope, key_rope, up = inputs
    rank, rope = builder.shape(latents)[1], builder.shape(key_rope)[1]
    heads = Heads(
        batch=run.batch,
        queries=run.new,
        keys=run.context,
        groups=1,
        per_group=model.heads,
        size=rank,
        rope=rope,
        latent=True,
    )
    rows, formats = heads.batch * heads.keys, builder.formats
    stored = []
    for part, new, columns in (("latent", latents, rank), ("rope", key_rope, rope)):
        cache = builder.input(f"{name}.{part}_cache", (rows, columns), formats.cache)
        update = f"{name}.{part}_cache_update"
        stored.append(cache_update(builder, update, cache, new, heads))
    sizes = {"t": run.tokens, "h": model.heads, "c": rank, "d": model.head}
    plain, wide = f"t {model.head}*h+d", f"t {rank}*h+c"
    step = product(f"{plain}, {2 * model.head}*h+d c -> {wide}", sizes)
    absorbed = builder.emit(f"{name}.q_latent", step, [query, up])
    inner = _core(builder, name, run, heads, [absorbed, stored[0], query_rope, stored[1]])
    step = product(f"{wide}, {2 * model.head}*h+d+{model.head} c -> {plain}", sizes)
    return builder.emit(f"{name}.v_b", step, [inner, up])


def _core(builder: Builder, name: str, run: Run, heads: Heads, inputs: list[str]) -> str:
    if run.form == "streaming":
        return streaming_attention(builder, f"{name}.core", heads, inputs)
    return attention_parts(builder, name, heads, inputs)

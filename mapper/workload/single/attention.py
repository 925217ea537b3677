"""Attention in all its forms, from queries, keys and values to contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mapper.workload.parameters import Parameter, dtype_parameter
from mapper.workload.single.entry import SingleOperator, require
from mapper.workload.writing.attention import (
    MASKED_SOFTMAX_OPS,
    Heads,
    attention_parts,
    streaming_attention,
)
from mapper.workload.writing.builder import Builder, Step, pointwise, product
from mapper.workload.writing.notation import nest

Numbers = Mapping[str, int]
Texts = Mapping[str, str]

FORM = Parameter(
    name="form",
    help="parts: scores, softmax and context apart; streaming: one operator, scores stay on chip",
    default="parts",
    choices=("parts", "streaming"),
)


def emit_attention(
    builder: Builder, form: str, heads: Heads, inputs: Sequence[str], mask: str | None
) -> str:
    if form == "streaming":
        return streaming_attention(builder, "attention", heads, inputs)
    return attention_parts(builder, "attention", heads, inputs, mask)


def _attention(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
    kv_heads, ctx = v.get("kv_heads", v["heads"]), v.get("ctx", v["seq"])
    window, chunks = v["window"], v["causal_chunks"]
    require(
        "attention",
        (v["heads"] % kv_heads == 0, f"{v['heads']} heads cannot share kv_heads = {kv_heads}"),
        (ctx >= v["seq"], f"ctx = {ctx} must include the {v['seq']} queries (seq)"),
        (not (window and chunks), "window and causal_chunks exclude each other"),
        (not (window and v["causal"]), "window looks back as it is: leave out causal"),
        (not chunks or texts["form"] == "streaming", "causal_chunks needs form=streaming"),
    )
    heads = Heads(
        batch=v["batch"],
        queries=v["seq"],
        keys=ctx,
        groups=kv_heads,
        per_group=v["heads"] // kv_heads,
        size=v["head"],
        window=min(window, ctx),
        causal=bool(v["causal"]),
        causal_chunks=chunks,
    )
    builder.input("query", (heads.batch * heads.queries, heads.heads * heads.size))
    builder.input("cache", heads.cache_shape, builder.formats.cache)
    mask = None
    if window and texts["form"] == "parts":
        mask = builder.input("mask", (heads.queries, heads.window), "int1")
    return [emit_attention(builder, texts["form"], heads, ["query", "cache"], mask)]


def _mla(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
    """The core of multi-head latent attention, on latents (absorbed) or on expanded heads."""
    require("mla", (v["ctx"] >= v["seq"], f"ctx = {v['ctx']} must include the {v['seq']} queries"))
    absorbed = texts["keys"] == "latent"
    value = v["latent"] if absorbed else v["head"]
    heads = Heads(
        batch=v["batch"],
        queries=v["seq"],
        keys=v["ctx"],
        groups=1 if absorbed else v["heads"],
        per_group=v["heads"] if absorbed else 1,
        size=value + v["rope"],
        value=value,
        latent=absorbed,
        causal=bool(v["causal"]),
    )
    builder.input("query", (heads.batch * heads.queries, heads.heads * heads.size))
    builder.input("cache", heads.cache_shape, builder.formats.cache)
    return [emit_attention(builder, texts["form"], heads, ["query", "cache"], None)]


def _block_sparse(builder: Builder, v: Numbers, _: Texts) -> list[str]:
    """Blocks of queries against the last ``window`` blocks and the first ``fixed`` ones."""
    block, window, fixed = v["block"], v["window"], v["fixed"]
    require(
        "block_sparse_attention",
        (v["seq"] % block == 0, f"seq = {v['seq']} is not a multiple of block = {block}"),
        (window + fixed <= v["seq"] // block, "there are fewer blocks than window + fixed"),
    )
    blocks, slots = v["seq"] // block, (window + fixed) * block
    heads, size = v["batch"] * v["heads"], v["head"]
    for name in ("query", "key", "value"):
        builder.input(name, (heads, v["seq"], size))
    mask = builder.input("mask", (blocks, block, slots), "int1")
    builder.result("scores", (heads, blocks, block, slots))
    query, score = f"h {block}*n+q d", f"h n q {block}*w+l"
    near, first = f"h {block}*n+{block}*w+l-{block * (window - 1)} d", f"h {block}*w+l d"
    base = {"h": heads, "n": blocks, "q": block, "l": block, "d": size}
    parts = (("near", near, window, 0), ("fixed", first, fixed, window * block))
    for name, key, count, offset in parts:
        text = f"{query}, {key} -> {score}+{offset}"
        step = product(text, base | {"w": count}, "attention_scores")
        builder.emit(f"scores_{name}", step, ["query", "key"], into="scores")
    sizes = {"h": heads, "n": blocks, "q": block, "l": slots}
    softmax = Step(
        kind="masked_softmax",
        operation="softmax",
        nest=nest("h n q l, n q l -> h n q l", sizes),
        ops=MASKED_SOFTMAX_OPS,
        whole="l",
    )
    weights = builder.emit("softmax", softmax, ["scores", mask])
    contexts = []
    for name, value, count, offset in parts:
        text = f"{score}+{offset}, {value} -> {query}"
        step = product(text, base | {"w": count}, "attention_context")
        contexts.append(builder.emit(f"context_{name}", step, [weights, "value"]))
    sizes = {"h": heads, "m": v["seq"], "d": size}
    return [builder.emit("add", pointwise("add", "add", "h m d, h m d -> h m d", sizes), contexts)]


def _simplicial(builder: Builder, v: Numbers, _: Texts) -> list[str]:
    """Scores of a query with pairs of keys, one from each window (Roy et al., 2025)."""
    heads, seq, size = v["batch"] * v["heads"], v["seq"], v["head"]
    wide, narrow = min(v["window1"], seq), min(v["window2"], seq)
    for name in ("query", "key1", "value1", "key2", "value2"):
        builder.input(name, (heads, seq, size))
    mask = builder.input("mask", (seq, narrow, wide), "int1")
    sizes = {"h": heads, "i": seq, "k": narrow, "j": wide, "d": size}
    first, second = f"h i+j-{wide - 1} d", f"h i+k-{narrow - 1} d"
    pair, score = "h i k d", "h i k j"
    no_wide = {dim: sizes[dim] for dim in "hikd"}
    step = pointwise("mul", "mul", f"h i d, {second} -> {pair}", no_wide)
    paired = builder.emit("query_key2", step, ["query", "key2"])
    step = product(f"{pair}, {first} -> {score}", sizes, "attention_scores")
    scores = builder.emit("scores", step, [paired, "key1"])
    softmax = Step(
        kind="masked_softmax",
        operation="softmax",
        nest=nest(f"{score}, i k j -> {score}", {dim: sizes[dim] for dim in "hikj"}),
        ops=MASKED_SOFTMAX_OPS,
        whole="k j",
    )
    weights = builder.emit("softmax", softmax, [scores, mask])
    step = product(f"{score}, {first} -> {pair}", sizes, "attention_context")
    inner = builder.emit("context1", step, [weights, "value1"])
    step = product(f"{pair}, {second} -> h i d", no_wide, "attention_context")
    return [builder.emit("context2", step, [inner, "value2"])]


_BATCH = Parameter(name="batch", help="sequences", default=1)
_HEADS = Parameter(name="heads", help="query heads")
_HEAD = Parameter(name="head", help="elements of a head", default=128)
_SEQ = Parameter(name="seq", help="queries: new tokens; 1 to decode")
_DTYPE = dtype_parameter("int8", "format of activations")
CACHE = Parameter(
    name="cache",
    help="format of keys and values",
    default_text="as dtype",
    check=_DTYPE.check,
    texts=_DTYPE.texts,
)
_CAUSAL = Parameter(
    name="causal",
    help="1: a query sees no key after its own, which GPU kernels make use of",
    low=0,
    high=1,
    default=0,
)
_CTX = Parameter(name="ctx", help="keys: cached positions and the new ones", default_text="seq")

ENTRIES = (
    SingleOperator(
        name="attention",
        description="attention of grouped heads: multi-head, grouped-query, multi-query, windowed",
        parameters=(
            _BATCH,
            _HEADS,
            Parameter(
                name="kv_heads",
                help="heads of keys and values: 1 is multi-query",
                default_text="heads",
            ),
            _HEAD,
            _SEQ,
            _CTX,
            Parameter(name="window", help="last keys that a query sees, 0 all", low=0, default=0),
            _CAUSAL,
            Parameter(
                name="causal_chunks",
                help="of the queries, each seeing the keys up to its end; 0: all see all",
                low=0,
                default=0,
            ),
            FORM,
            _DTYPE,
            CACHE,
        ),
        build=_attention,
    ),
    SingleOperator(
        name="mla",
        description="multi-head latent attention (DeepSeek-V2), on latents or expanded heads",
        parameters=(
            _BATCH,
            Parameter(name="heads", help="query heads", default=128),
            Parameter(name="head", help="elements of an expanded head", default=128),
            Parameter(name="latent", help="elements of a latent", default=512),
            Parameter(name="rope", help="elements with rotary positions", default=64),
            _SEQ,
            Parameter(name="ctx", help="keys: cached positions and the new ones"),
            Parameter(
                name="keys",
                help="latent: products with latents, for decoding; expanded: with heads",
                default="latent",
                choices=("latent", "expanded"),
            ),
            _CAUSAL,
            FORM,
            _DTYPE,
            CACHE,
        ),
        build=_mla,
    ),
    SingleOperator(
        name="block_sparse_attention",
        description="blocks of queries see the last blocks and the first ones (Longformer)",
        parameters=(
            _BATCH,
            _HEADS,
            _HEAD,
            Parameter(name="seq", help="tokens"),
            Parameter(name="block", help="tokens of a block", default=64),
            Parameter(name="window", help="last blocks seen, the own included", default=4),
            Parameter(name="fixed", help="first blocks, seen by all", default=1),
            _DTYPE,
        ),
        build=_block_sparse,
    ),
    SingleOperator(
        name="simplicial_attention",
        description="2-simplicial (trilinear) attention over two windows of keys",
        parameters=(
            _BATCH,
            _HEADS,
            _HEAD,
            Parameter(name="seq", help="tokens"),
            Parameter(name="window1", help="last keys of the first kind", default=512),
            Parameter(name="window2", help="last keys of the second kind", default=32),
            _DTYPE,
        ),
        build=_simplicial,
    ),
)

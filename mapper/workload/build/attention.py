"""Attention as its parts and as one streaming operator, over heads that share keys.

Query heads are numbered ``R * g + r``: ``R`` of them share key head ``g`` (grouped-query; all
heads of one group are multi-query, one per group is multi-head). Rows of queries and keys are
tokens of all sequences one after the other, columns the heads' elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from arch.datatypes import whole
from mapper.workload.build.builder import Builder, Step, pointwise, product
from mapper.workload.build.notation import nest
from mapper.workload.operators import SideWork

#: Subtract the maximum, exponential, sum, reciprocal, multiply; a mask costs one more.
SOFTMAX_OPS = 5
MASKED_SOFTMAX_OPS = 6

#: Classes of the streaming operator's loops, as of the product of probabilities and values.
_CLASSES = {"b": "b", "g": "b", "r": "m", "m": "m", "l": "k", "d": "n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Sizes of an attention. ``rope`` elements of a head are kept apart, shared by all heads.

    The queries are the last ``queries`` of ``keys`` positions. ``window`` > 0: each query sees
    that many last keys only (its own included). ``latent``: keys are values, as in MLA's
    absorbed form.
    """

    batch: int
    queries: int
    keys: int
    groups: int
    per_group: int
    size: int
    rope: int = 0
    window: int = 0
    latent: bool = False
    causal_chunks: int = 0

    @property
    def heads(self) -> int:
        return self.groups * self.per_group

    @property
    def seen(self) -> int:
        """Keys that each query is multiplied with."""
        return self.window or self.keys

    def query(self, first: int = 0) -> str:
        r, d = self.per_group, self.size
        return f"{self.queries}*b+m+{first} {r * d}*g+{d}*r+d"

    def query_rope(self, first: int = 0) -> str:
        return f"{self.queries}*b+m+{first} {self.per_group}*g+r d"

    def position(self) -> str:
        """Rows (or sequence and row) of keys."""
        if self.window:
            return f"b l+m{self.keys - self.queries - self.window + 1:+d}"
        return f"{self.keys}*b+l"

    def key(self) -> str:
        return f"{self.position()} {self.size}*g+d"

    def sizes(self, *dims: str) -> dict[str, int]:
        every = {
            "b": self.batch,
            "g": self.groups,
            "r": self.per_group,
            "m": self.queries,
            "l": self.seen,
            "d": self.size,
        }
        return {dim: every[dim] for dim in dims}


def attention_parts(
    builder: Builder, name: str, heads: Heads, inputs: Sequence[str], mask: str | None = None
) -> str:
    """Scores, softmax, context. ``inputs``: query, key, value (or latent), and rope parts."""
    query, key, *others = inputs
    value = key if heads.latent else others.pop(0)
    scores = "b g r m l"
    step = product(
        f"{heads.query()}, {heads.key()} -> {scores}", heads.sizes(*"bgrmld"), "attention_scores"
    )
    parts = [builder.emit(f"{name}.scores", step, [query, key])]
    if heads.rope:
        sizes = heads.sizes(*"bgrml") | {"d": heads.rope}
        text = f"{heads.query_rope()}, {heads.position()} d -> {scores}"
        step = product(text, sizes, "attention_scores")
        parts.append(builder.emit(f"{name}.rope_scores", step, others))
    weights = _softmax(builder, name, heads, parts, mask)
    context = product(
        f"{scores}, {heads.key()} -> {heads.query()}", heads.sizes(*"bgrmld"), "attention_context"
    )
    return builder.emit(f"{name}.context", context, [weights, value])


def _softmax(
    builder: Builder, name: str, heads: Heads, parts: Sequence[str], mask: str | None
) -> str:
    scores = "b g r m l"
    operands, kind = [*parts], "softmax"
    texts = [scores] * len(parts)
    if mask is not None:
        operands, kind, texts = [*operands, mask], "masked_softmax", [*texts, "m l"]
    ops = SOFTMAX_OPS + len(operands) - 1
    text = f"{', '.join(texts)} -> {scores}"
    step = Step(
        kind=kind,
        operation="softmax",
        nest=nest(text, heads.sizes(*"bgrml")),
        ops=ops,
        whole="l",
    )
    return builder.emit(f"{name}.softmax", step, operands)


def streaming_attention(builder: Builder, name: str, heads: Heads, inputs: Sequence[str]) -> str:
    """One operator: scores never leave the chip (Dao et al., FlashAttention, 2022).

    A point of the nest is two multiply-accumulates, one of ``query * key`` and one of
    ``weight * value``, plus its share of the rope part; the softmax is side work. Values are
    rescaled as the maximum grows, so keys may come in any tiles; a head stays whole, since a
    score needs all of it. With ``causal_chunks``, queries are cut into so many chunks, each of
    which sees the keys up to its own last one.
    """
    if heads.causal_chunks < 2:
        (step,) = _streams(heads)
        return builder.emit(name, step, inputs)
    shape = (heads.batch * heads.queries, heads.heads * heads.size)
    out = builder.result(f"{name}.out", shape)
    for number, step in enumerate(_streams(heads)):
        builder.emit(f"{name}.chunk{number}", step, inputs, into=out)
    return out


def _streams(heads: Heads) -> Iterator[Step]:
    chunks = max(heads.causal_chunks, 1)
    rows = -(-heads.queries // chunks)
    for first in range(0, heads.queries, rows):
        last = min(first + rows, heads.queries)
        keys = heads.seen if chunks == 1 else heads.keys - heads.queries + last
        yield _stream(heads, first, last - first, keys)


def _stream(heads: Heads, first: int, rows: int, keys: int) -> Step:
    operands = [heads.query(first), heads.key()]
    if not heads.latent:
        operands.append(heads.key())
    if heads.rope:
        operands += [heads.query_rope(first), f"{heads.position()} d"]
    sizes = heads.sizes(*"bgrmld") | {"m": rows, "l": keys}
    macs = whole(2 + Fraction(heads.rope, heads.size))
    side = SideWork(operation="softmax", dims=tuple("bgrml"), ops_per_point=SOFTMAX_OPS)
    return Step(
        kind="causal_attention" if heads.causal_chunks else "attention",
        operation="mac",
        nest=nest(f"{', '.join(operands)} -> {heads.query(first)}", sizes),
        ops=macs,
        issues=macs,
        whole="d",
        classes=_CLASSES,
        side=(side,),
    )


def cache_update(builder: Builder, name: str, cache: str, new: str, heads: Heads) -> str:
    """Rows of new tokens written over the last ones of each sequence's cache, in place."""
    columns = builder.shape(cache)[1]
    text = f"{heads.queries}*b+m c -> {heads.keys}*b+m+{heads.keys - heads.queries} c"
    sizes = {**heads.sizes("b", "m"), "c": columns}
    return builder.emit(name, pointwise("cache_update", "copy", text, sizes), [new], into=cache)

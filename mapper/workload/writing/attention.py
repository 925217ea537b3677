"""Attention as its parts and as one streaming operator, over heads that share keys.

Query heads are numbered ``R * H + G``: ``R`` of them share key head ``H`` (grouped-query; all
heads of one group are multi-query, one per group is multi-head). Rows of queries and keys are
tokens of all sequences one after the other, columns the heads' elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from arch.datatypes import whole
from mapper.workload.operators import SideWork
from mapper.workload.writing.builder import Builder, Step, pointwise, product
from mapper.workload.writing.notation import nest

#: Subtract the maximum, exponential, sum, reciprocal, multiply; a mask costs one more.
SOFTMAX_OPS = 5
MASKED_SOFTMAX_OPS = 6

#: Classes of the streaming operator's loops, as of the product of probabilities and values. The
#: two products follow each other: no axis of an array unrolls ``P``.
_CLASSES = {"B": "b", "H": "b", "G": "m", "M": "m", "L": "k", "D": "n", "P": "p"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Sizes of an attention.

    The queries are the last ``queries`` of ``keys`` positions. Keys and values are one tensor,
    ``[rows, 2, groups * size]``: a cache. ``latent``: they are the same numbers, ``[rows,
    size]``, as in MLA's absorbed form. ``value`` < ``size``: only so many elements of a value
    matter (the rest is padding, or the rotary part of a latent). ``window`` > 0: each query
    sees that many last keys only (its own included), and rows are ``[sequence, position]``.
    ``joint``: queries, keys and values are columns of one tensor, side by side.
    ``causal``: a query sees no key after its own.
    """

    batch: int
    queries: int
    keys: int
    groups: int
    per_group: int
    size: int
    value: int = 0
    window: int = 0
    latent: bool = False
    causal: bool = False
    causal_chunks: int = 0
    joint: bool = False

    @property
    def heads(self) -> int:
        return self.groups * self.per_group

    @property
    def seen(self) -> int:
        """Keys that each query is multiplied with."""
        return self.window or self.keys

    @property
    def cache_shape(self) -> tuple[int, ...]:
        rows = (self.batch, self.keys) if self.window else (self.batch * self.keys,)
        return (*rows, self.size) if self.latent else (*rows, 2, self.groups * self.size)

    def query(self, first: int = 0) -> str:
        each, size = self.per_group, self.size
        return f"{self.queries}*B+M+{first} {each * size}*H+{size}*G+D"

    def context(self) -> str:
        each, size = self.per_group, self.value or self.size
        return f"{self.queries}*B+M {each * size}*H+{size}*G+E"

    def stored(self, part: str, element: str = "D") -> str:
        """Keys (``part`` is 0), values (1) or both (``P``)."""
        row = f"{self.keys}*B+L"
        if self.window:
            row = f"B L+M{self.keys - self.queries - self.window + 1:+d}"
        column = f"{part} {self.size}*H+{element}"
        if self.joint:
            width = self.groups * self.size
            column = f"{width}*{part}+{self.size}*H+{element}+{width}"
        return f"{row} {element}" if self.latent else f"{row} {column}"

    def sizes(self, dims: str) -> dict[str, int]:
        every = {
            "B": self.batch,
            "H": self.groups,
            "G": self.per_group,
            "M": self.queries,
            "L": self.seen,
            "D": self.size,
            "E": self.value or self.size,
            "P": 2,
        }
        return {dim: every[dim] for dim in dims}


def attention_parts(
    builder: Builder, name: str, heads: Heads, inputs: Sequence[str], mask: str | None = None
) -> str:
    """Scores, softmax, context, of a query and a cache."""
    query, cache = inputs
    scores = "B H G M L"
    text = f"{heads.query()}, {heads.stored('0')} -> {scores}"
    step = product(text, heads.sizes("BHGMLD"), "attention_scores")
    made = builder.emit(f"{name}.scores", step, [query, cache])
    weights = _softmax(builder, name, heads, made, mask)
    text = f"{scores}, {heads.stored('1', 'E')} -> {heads.context()}"
    context = product(text, heads.sizes("BHGMLE"), "attention_context")
    return builder.emit(f"{name}.context", context, [weights, cache])


def _softmax(builder: Builder, name: str, heads: Heads, made: str, mask: str | None) -> str:
    scores = "B H G M L"
    operands, text, kind = [made], f"{scores} -> {scores}", "softmax"
    if mask is not None:
        operands, text, kind = [made, mask], f"{scores}, M L -> {scores}", "masked_softmax"
    step = Step(
        kind=kind,
        operation="softmax",
        nest=nest(text, heads.sizes("BHGML")),
        ops=SOFTMAX_OPS if mask is None else MASKED_SOFTMAX_OPS,
        whole="L",
        causal=heads.causal,
    )
    return builder.emit(f"{name}.softmax", step, operands)


def streaming_attention(builder: Builder, name: str, heads: Heads, inputs: Sequence[str]) -> str:
    """One operator: scores never leave the chip (Dao et al., FlashAttention, 2022).

    Loop ``P`` runs over its two products, of queries with keys and of weights with values;
    the softmax is side work. Values are rescaled as the maximum grows, so keys may come in any
    tiles; a head stays whole, since a score needs all of it. Results are as wide as queries.
    With ``causal_chunks``, queries are cut into so many chunks, each of which sees the keys up
    to its own last one.
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
    query = heads.query(first)
    sizes = heads.sizes("BHGMLDP") | {"M": rows, "L": keys}
    share = whole(Fraction(heads.size + (heads.value or heads.size), 2 * heads.size))
    side = SideWork(operation="softmax", dims=tuple("BHGML"), ops_per_point=SOFTMAX_OPS)
    return Step(
        kind="causal_attention" if heads.causal_chunks else "attention",
        operation="mac",
        nest=nest(f"{query}, {heads.stored('P')} -> {query}", sizes),
        ops=share,
        issues=share,
        whole="D P",
        classes=_CLASSES,
        side=(side,),
        causal=heads.causal or heads.causal_chunks > 0,
    )


def cache_update(
    builder: Builder,
    name: str,
    cache: str,
    new: str,
    at: tuple[Heads, int],
    columns: range | None = None,
) -> str:
    """Rows of new tokens written over the last ones of each sequence's cache, in place.

    ``at`` says where: of which heads, and whether as keys (0), values (1) or latents. ``columns``
    of ``new`` are meant, all unless given.
    """
    heads, part = at
    columns = columns or range(builder.shape(new)[1])
    row = f"{heads.keys}*B+M+{heads.keys - heads.queries}"
    place = f"{row} c" if heads.latent else f"{row} {part} c"
    sizes = {**heads.sizes("BM"), "c": len(columns)}
    text = f"{heads.queries}*B+M c+{columns.start} -> {place}"
    return builder.emit(name, pointwise("cache_update", "copy", text, sizes), [new], into=cache)

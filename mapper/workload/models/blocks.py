"""What transformers are made of: matrices, norms, feed-forwards, residual sums, rotations.

Rows are tokens of all sequences one after the other. Matrices are stored ``[out, in]``. Biases
are added on the output path: they are parameters, but no operator.
"""

from __future__ import annotations

from dataclasses import dataclass

from mapper.workload.writing.activations import ACTIVATION_OPS
from mapper.workload.writing.builder import Builder, Step, pointwise, product
from mapper.workload.writing.notation import nest
from mapper.workload.writing.rows import layer_norm, rms_norm

#: Of a rotary embedding, per element: two products and a sum.
ROTARY_OPS = 3


@dataclass(frozen=True, slots=True)
class Into:
    """Where a result goes: axes after the row, with ``{column}`` for the result's own."""

    tensor: str
    part: str


def linear(
    builder: Builder,
    name: str,
    data: str,
    outputs: int,
    *,
    bias: bool = False,
    into: Into | None = None,
) -> str:
    """A matrix on every row."""
    rows, inputs = builder.shape(data)
    weight = builder.weight(f"{name}.weight", (outputs, inputs))
    if bias:
        builder.gain(f"{name}.bias", (outputs,))
    sizes = {"M": rows, "N": outputs, "K": inputs}
    place = f"M {into.part.format(column='N')}" if into else "M N"
    step = product(f"M K, N K -> {place}", sizes)
    return builder.emit(name, step, [data, weight], into=into.tensor if into else None)


def norm(builder: Builder, name: str, data: str, kind: str) -> str:
    """``rms_norm`` or ``layer_norm`` of every row."""
    width = builder.shape(data)[1]
    gain = builder.gain(f"{name}.weight", (width,))
    if kind == "rms_norm":
        return rms_norm(builder, name, data, gain)
    return layer_norm(builder, name, data, gain, builder.gain(f"{name}.bias", (width,)))


def add(builder: Builder, name: str, left: str, right: str) -> str:
    return _every_two(builder, name, "add", (left, right))


def multiply(builder: Builder, name: str, left: str, right: str) -> str:
    return _every_two(builder, name, "mul", (left, right))


def _every_two(builder: Builder, name: str, operation: str, operands: tuple[str, str]) -> str:
    rows, columns = builder.shape(operands[0])
    step = pointwise(operation, operation, "t d, t d -> t d", {"t": rows, "d": columns})
    return builder.emit(name, step, operands)


def activate(builder: Builder, name: str, data: str, kind: str) -> str:
    rows, columns = builder.shape(data)
    sizes, ops = {"t": rows, "d": columns}, ACTIVATION_OPS[kind]
    return builder.emit(name, pointwise(kind, "activation", "t d -> t d", sizes, ops), [data])


def gated_feed_forward(builder: Builder, name: str, data: str, hidden: int) -> str:
    """``down(silu(gate(x)) * up(x))`` (Shazeer, GLU variants, 2020)."""
    gate = linear(builder, f"{name}.gate", data, hidden)
    up = linear(builder, f"{name}.up", data, hidden)
    inner = multiply(builder, f"{name}.mul", activate(builder, f"{name}.silu", gate, "silu"), up)
    return linear(builder, f"{name}.down", inner, builder.shape(data)[1])


def feed_forward(builder: Builder, name: str, data: str, hidden: int, kind: str) -> str:
    """Two matrices with biases and a function between them."""
    inner = linear(builder, f"{name}.fc1", data, hidden, bias=True)
    active = activate(builder, f"{name}.{kind}", inner, kind)
    return linear(builder, f"{name}.fc2", active, builder.shape(data)[1], bias=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """Rotary positions: ``tokens`` of each of ``batch`` sequences, the first at ``first``."""

    batch: int
    tokens: int
    first: int
    cosines: str
    sines: str

    def rotate(
        self, builder: Builder, name: str, data: str, heads: int, into: Into | None = None
    ) -> str:
        """The halves of each head, turned (Su et al., RoFormer, 2021)."""
        half = builder.shape(data)[1] // heads // 2
        row, table = f"{self.tokens}*b+m", f"m+{self.first} i"
        column = f"{2 * half}*h+{half}*s+i"
        place = f"{row} {into.part.format(column=column)}" if into else f"{row} {column}"
        sizes = {"b": self.batch, "m": self.tokens, "h": heads, "s": 2, "i": half}
        step = Step(
            kind="rotary",
            operation="mul",
            nest=nest(f"{row} {column}, {table}, {table} -> {place}", sizes),
            ops=ROTARY_OPS,
            whole="s",
        )
        target = into.tensor if into else None
        return builder.emit(name, step, [data, self.cosines, self.sines], into=target)


def embed(
    builder: Builder, name: str, indices: str, vocabulary: int, width: int
) -> tuple[str, str]:
    """Rows of a table, and the table."""
    table = builder.gain(f"{name}.weight", (vocabulary, width))
    (tokens,) = builder.shape(indices)
    step = pointwise("lookup", "copy", "t, t d -> t d", {"t": tokens, "d": width})
    return builder.emit(name, step, [indices, table]), table


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Every ``every``-th row, from ``first``: the last token of each sequence, or all rows."""

    count: int
    every: int = 1
    first: int = 0


def head(builder: Builder, name: str, data: str, table: str, rows: Rows) -> str:
    """Logits: some rows times a table ``[vocabulary, width]``."""
    vocabulary, width = builder.shape(table)
    text = f"{rows.every}*M+{rows.first} K, N K -> M N"
    sizes = {"M": rows.count, "N": vocabulary, "K": width}
    return builder.emit(name, product(text, sizes), [data, table])

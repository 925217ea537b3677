"""Linear recurrences over a sequence, in chunks: products inside a chunk, a state between them.

Gated linear attention (Yang et al., 2024): ``S[t] = diag(a[t]) S[t-1] + k[t] v[t]^T``,
``o[t] = q[t] S[t]``, a decay per key element. State-space duality (Dao and Gu, Mamba-2, 2024):
the same with one decay per head and token, where queries and keys are called C and B and are
shared by the heads of a group. Both formulas are of those papers' chunked forms.

Tensors have a row per token; sequences and heads are in ``h``.
"""

from __future__ import annotations

from dataclasses import dataclass

from mapper.workload.writing.builder import Builder, Step, pointwise, product
from mapper.workload.writing.notation import nest


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """``heads`` (over all sequences) of ``groups``, which share queries and keys."""

    groups: int
    per_group: int
    tokens: int
    chunk: int
    key: int
    value: int

    @property
    def heads(self) -> int:
        return self.groups * self.per_group

    @property
    def chunks(self) -> int:
        return self.tokens // self.chunk

    def sizes(self, dims: str) -> dict[str, int]:
        every = {
            "g": self.groups,
            "r": self.per_group,
            "h": self.heads,
            "c": self.chunks,
            "i": self.chunk,
            "j": self.chunk,
            "d": self.key,
            "e": self.value,
        }
        return {dim: every[dim] for dim in dims}

    def row(self, position: str) -> str:
        """The token at a position of chunk ``c``."""
        return f"{self.chunk}*c+{position}"

    @property
    def head(self) -> str:
        return f"{self.per_group}*g+r"


def gated_linear_attention(
    builder: Builder, name: str, scan: Scan, inputs: tuple[str, str, str, str], state: str
) -> tuple[str, str]:
    """From query, key, value, gate (all ``[h, tokens, ...]``) to outputs and the last state."""
    query, key, value, gate = inputs
    i, j = scan.row("i"), scan.row("j")
    elements = scan.sizes("hcid")
    decay = Step(
        kind="cumulative_product",
        operation="mul",
        nest=nest(f"h {i} d -> h {i} d", elements),
        whole="i",
    )
    decays = builder.emit(f"{name}.decay", decay, [gate])
    same = f"h {i} d, h {i} d -> h {i} d"
    grown = builder.emit(f"{name}.query", pointwise("mul", "mul", same, elements), [query, decays])
    shrunk = builder.emit(
        f"{name}.key", pointwise("divide", "mul", same, elements, ops=2), [key, decays]
    )
    last = f"h {scan.chunk}*c+{scan.chunk - 1} d"
    text = f"h {i} d, {last} -> h {i} d"
    to_end = builder.emit(
        f"{name}.key_to_end", pointwise("mul", "mul", text, elements), [shrunk, decays]
    )
    text = f"h {i} d, h {j} d -> h c i j"
    scores = builder.emit(f"{name}.scores", product(text, scan.sizes("hcijd")), [grown, shrunk])
    mask = builder.input(f"{name}.mask", (scan.chunk, scan.chunk), "int1")
    step = pointwise("mul", "mul", "h c i j, i j -> h c i j", scan.sizes("hcij"))
    masked = builder.emit(f"{name}.masked", step, [scores, mask])
    text = f"h c i j, h {j} e -> h {i} e"
    inside = builder.emit(f"{name}.inside", product(text, scan.sizes("hcije")), [masked, value])
    text = f"h {j} d, h {j} e -> h c d e"
    gains = builder.emit(f"{name}.gains", product(text, scan.sizes("hcjde")), [to_end, value])
    before = builder.result(f"{name}.before", (scan.heads, scan.tokens, scan.value))
    sizes = scan.sizes("hide")
    for number in range(scan.chunks):
        first = number * scan.chunk
        step = product(f"h i+{first} d, h d e -> h i+{first} e", sizes)
        builder.emit(f"{name}.before{number}", step, [grown, state], into=before)
        text = f"h d e, h {first + scan.chunk - 1} d, h {number} d e -> h d e"
        step = pointwise("multiply_add", "mul", text, scan.sizes("hde"), ops=2)
        state = builder.emit(f"{name}.state{number}", step, [state, decays, gains])
    text = "h t e, h t e -> h t e"
    every = {"h": scan.heads, "t": scan.tokens, "e": scan.value}
    out = builder.emit(f"{name}.add", pointwise("add", "add", text, every), [inside, before])
    return out, state


def state_space(
    builder: Builder, name: str, scan: Scan, inputs: tuple[str, str, str, str], state: str
) -> tuple[str, str]:
    """From C, B (``[g, tokens, d]``), the input times its step (``[h, tokens, e]``) and the
    logarithms of the decays (``[h, tokens]``) to outputs and the last state (``[h, d, e]``)."""
    query, key, value, gate = inputs
    i, j = scan.row("i"), scan.row("j")
    summed = Step(
        kind="cumulative_sum",
        operation="add",
        nest=nest(f"h {i} -> h {i}", scan.sizes("hci")),
        whole="i",
    )
    sums = builder.emit(f"{name}.sums", summed, [gate])
    last = f"h {scan.chunk}*c+{scan.chunk - 1}"
    text = f"h {i}, h {j} -> h c i j"
    decay = pointwise("decay_between", "activation", text, scan.sizes("hcij"), ops=3)
    between = builder.emit(f"{name}.between", decay, [sums, sums])
    text = f"g {i} d, g {j} d -> g c i j"
    scores = builder.emit(f"{name}.scores", product(text, scan.sizes("gcijd")), [query, key])
    step = pointwise(
        "mul", "mul", f"g c i j, {scan.head} c i j -> {scan.head} c i j", scan.sizes("grcij")
    )
    masked = builder.emit(f"{name}.masked", step, [scores, between])
    text = f"h c i j, h {j} e -> h {i} e"
    inside = builder.emit(f"{name}.inside", product(text, scan.sizes("hcije")), [masked, value])
    text = f"h {i} e, {last}, h {i} -> h {i} e"
    step = pointwise("times_exp_difference", "activation", text, scan.sizes("hcie"), ops=3)
    to_end = builder.emit(f"{name}.value_to_end", step, [value, sums, sums])
    text = f"g {j} d, {scan.head} {j} e -> {scan.head} c d e"
    gains = builder.emit(f"{name}.gains", product(text, scan.sizes("grcjde")), [key, to_end])
    before = builder.result(f"{name}.before", (scan.heads, scan.tokens, scan.value))
    for number in range(scan.chunks):
        first = number * scan.chunk
        text = f"g i+{first} d, {scan.head} d e -> {scan.head} i+{first} e"
        step = product(text, scan.sizes("gride"))
        builder.emit(f"{name}.before{number}", step, [query, state], into=before)
        text = f"h d e, h {first + scan.chunk - 1}, h {number} d e -> h d e"
        step = pointwise("times_exp_add", "activation", text, scan.sizes("hde"), ops=3)
        state = builder.emit(f"{name}.state{number}", step, [state, sums, gains])
    every = {"h": scan.heads, "t": scan.tokens, "e": scan.value}
    text = "h t e, h t, h t e -> h t e"
    step = pointwise("times_exp_add", "activation", text, every, ops=3)
    return builder.emit(f"{name}.add", step, [before, sums, inside]), state

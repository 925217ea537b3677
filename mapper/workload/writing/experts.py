"""Mixture of experts: who gets how many tokens, and the operators that follow.

Experts with equally many tokens are one operator (a product per expert), so that a layer of
256 experts is a few operators. An expert without tokens is not run, and its weights are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from arch.errors import InputError, Problem
from mapper.workload.writing.activations import ACTIVATION_OPS
from mapper.workload.writing.attention import SOFTMAX_OPS
from mapper.workload.writing.builder import Builder, Step, pointwise, product
from mapper.workload.writing.notation import nest


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A layer of ``len(loads)`` gated feed-forwards; ``loads`` are their numbers of tokens.

    Largest first: which expert is which does not matter to a count.
    """

    tokens: int
    chosen: int
    width: int
    hidden: int
    loads: tuple[int, ...]
    score: str = "softmax"
    activation: str = "silu"

    def __post_init__(self) -> None:
        if sum(self.loads) != self.tokens * self.chosen or list(self.loads) != sorted(
            self.loads, reverse=True
        ):
            raise ValueError(f"loads {self.loads} are not those of {self.tokens} tokens, sorted")


def skewed_loads(tokens: int, experts: int, chosen: int, skew: float) -> tuple[int, ...]:
    """Loads that fall as a power of the expert's rank (Zipf); 0 is as even as can be.

    Each token chooses different experts, so none has more than all tokens; shares are rounded
    by largest remainders, and the sum is exact.
    """
    left, loads = tokens * chosen, []
    weights = [(rank + 1) ** -skew for rank in range(experts)]
    for rank in range(experts):
        share = left * weights[rank] / sum(weights[rank:])
        # What is left must fit into the experts that are left, of at most all tokens each.
        least = left - tokens * (experts - rank - 1)
        load = min(tokens, max(-(-left // (experts - rank)) if skew == 0 else round(share), least))
        loads.append(load)
        left -= load
    return tuple(sorted(loads, reverse=True))


def traced_loads(path: Path, tokens: int, experts: int, chosen: int) -> tuple[int, ...]:
    """Loads from a file: a line per token with the experts that it chose, separated by commas.

    ``InputError`` if it does not fit the layer.
    """
    loads = [0] * experts
    problems: list[Problem] = []
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(lines) != tokens:
        message = f"{len(lines)} lines, but the layer has {tokens} tokens: a line per token"
        problems.append(Problem(message, file=path))
    for number, line in enumerate(lines, start=1):
        found = _choices(line, experts)
        if found is None or len(found) != chosen:
            message = f"{line!r} does not name {chosen} different experts of 0 to {experts - 1}"
            problems.append(Problem(message, file=path, line=number))
            break
        for expert in found:
            loads[expert] += 1
    if problems:
        raise InputError(problems)
    return tuple(sorted(loads, reverse=True))


def _choices(line: str, experts: int) -> set[int] | None:
    parts = [part.strip() for part in line.split(",")]
    if not all(part.isdecimal() and int(part) < experts for part in parts):
        return None
    found = set(map(int, parts))
    return found if len(found) == len(parts) else None


def emit_experts(builder: Builder, name: str, data: str, layer: Experts) -> str:
    """Router, dispatch, the experts, and the weighted sum of what they return."""
    shares = _route(builder, name, data, layer)
    sizes = {"t": layer.tokens, "j": layer.chosen, "d": layer.width}
    step = pointwise("lookup", "copy", f"t d -> {layer.chosen}*t+j d", sizes)
    sent = builder.emit(f"{name}.dispatch", step, [data])
    returned = _run_experts(builder, name, sent, layer)
    text = f"{layer.chosen}*t+j d, t j -> t d"
    combine = pointwise("combine", "add", text, {d: sizes[d] for d in "tdj"}, ops=2)
    return builder.emit(f"{name}.combine", combine, [returned, shares])


def _route(builder: Builder, name: str, data: str, layer: Experts) -> str:
    """Shares of the chosen experts, ``[tokens, chosen]``."""
    experts = len(layer.loads)
    matrix = builder.gain(f"{name}.router.weight", (experts, layer.width))
    matrix_sizes = {"M": layer.tokens, "N": experts, "K": layer.width}
    step = product("M K, N K -> M N", matrix_sizes, "router")
    scores = builder.emit(f"{name}.router", step, [data, matrix])
    sizes = {"t": layer.tokens, "e": experts}
    score = Step(
        kind=layer.score,
        operation="softmax" if layer.score == "softmax" else "activation",
        nest=nest("t e -> t e", sizes),
        ops=SOFTMAX_OPS if layer.score == "softmax" else ACTIVATION_OPS[layer.score],
        whole="e" if layer.score == "softmax" else "",
    )
    shares = builder.emit(f"{name}.scores", score, [scores])
    top = Step(
        kind="top_k",
        operation="max",
        nest=nest("t e -> t j", {"t": layer.tokens, "j": layer.chosen, "e": experts}),
        whole="j e",
    )
    return builder.emit(f"{name}.top_k", top, [shares])


@dataclass(frozen=True, slots=True)
class _Group:
    """Experts ``first`` to ``first + count`` with ``load`` tokens each, from row ``row``."""

    first: int
    count: int
    load: int
    row: int


def _groups(loads: Sequence[int]) -> Iterator[_Group]:
    first = row = 0
    for load, members in groupby(loads):
        count = len(list(members))
        if load:
            yield _Group(first, count, load, row)
        first, row = first + count, row + count * load


def _run_experts(builder: Builder, name: str, sent: str, layer: Experts) -> str:
    """Gate and up, activation, product, down: rows of an expert lie together."""
    experts, rows = len(layer.loads), sum(layer.loads)
    wide, narrow = (experts, layer.hidden, layer.width), (experts, layer.width, layer.hidden)
    weights = {
        part: builder.weight(f"{name}.{part}.weight", narrow if part == "down" else wide)
        for part in ("gate", "up", "down")
    }
    hidden = {p: builder.result(f"{name}.{p}.out", (rows, layer.hidden)) for p in ("gate", "up")}
    for part, result in hidden.items():
        _products(builder, f"{name}.{part}", layer.loads, (sent, weights[part], result))
    sizes = {"t": rows, "f": layer.hidden}
    text, ops = "t f -> t f", ACTIVATION_OPS[layer.activation]
    step = pointwise(layer.activation, "activation", text, sizes, ops)
    gate = builder.emit(f"{name}.{layer.activation}", step, [hidden["gate"]])
    step = pointwise("mul", "mul", "t f, t f -> t f", sizes)
    inner = builder.emit(f"{name}.mul", step, [gate, hidden["up"]])
    returned = builder.result(f"{name}.down.out", (rows, layer.width))
    _products(builder, f"{name}.down", layer.loads, (inner, weights["down"], returned))
    return returned


def _products(
    builder: Builder, name: str, loads: Sequence[int], tensors: tuple[str, str, str]
) -> None:
    data, weight, result = tensors
    _, n, k = builder.shape(weight)
    for number, group in enumerate(_groups(loads)):
        rows = f"{group.load}*B+M+{group.row}"
        text = f"{rows} K, B+{group.first} N K -> {rows} N"
        sizes = {"B": group.count, "M": group.load, "N": n, "K": k}
        step = product(text, sizes, "expert")
        builder.emit(f"{name}.group{number}", step, [data, weight], into=result)

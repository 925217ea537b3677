"""Mamba-2 (Dao and Gu, 2024): state-space models, no attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from mapper.workload.models.blocks import Rows, activate, add, embed, head, norm
from mapper.workload.models.phases import LANGUAGE, LOGITS, NEW, PHASE, with_logits
from mapper.workload.models.phases import seq as seq_parameter
from mapper.workload.parameters import Parameter, Value, format_parameters, layers_parameter
from mapper.workload.single.entry import Build, SingleOperator, require
from mapper.workload.writing.builder import Builder, pointwise, product
from mapper.workload.writing.scan import Scan, state_space

Numbers = Mapping[str, int]
Texts = Mapping[str, str]

#: Tokens of a chunk, as in the released models.
_CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba:
    """Sizes; inside a block tokens are twice as wide, in heads of ``head``."""

    layers: int
    width: int
    states: int = 128
    head: int = 64
    taps: int = 4
    vocabulary: int = 50288

    @property
    def inner(self) -> int:
        return 2 * self.width

    @property
    def heads(self) -> int:
        return self.inner // self.head


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """One block of a run: names and sizes."""

    builder: Builder
    name: str
    model: Mamba
    batch: int
    seq: int
    chunk: int

    @property
    def row(self) -> str:
        return f"{self.seq}*B+M"

    def sizes(self, **more: int) -> dict[str, int]:
        return {"B": self.batch, "M": self.seq, **more}


def _build(model: Mamba) -> Build:
    def build(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
        seq, chunk = v["seq"], v["chunk"]
        indices = builder.input("tokens", (v["batch"] * seq,), "int32")
        x, table = embed(builder, "embed", indices, model.vocabulary, model.width)
        for number in range(v.get("layers", model.layers)):
            block = _Block(
                builder=builder,
                name=f"layers.{number}",
                model=model,
                batch=v["batch"],
                seq=seq,
                chunk=chunk,
            )
            y = _mixer(block, norm(builder, f"{block.name}.norm", x, "rms_norm"))
            x = add(builder, f"{block.name}.add", x, y)
        x = norm(builder, "norm", x, "rms_norm")
        rows = Rows(count=v["batch"], every=seq, first=seq - 1)
        if texts["logits"] == "all":
            rows = Rows(count=v["batch"] * seq)
        return [head(builder, "head", x, table, rows)]

    return build


def _in_chunks(name: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """The values with ``seq`` as the phase has it, and ``chunk``, unless given."""
    seq = int(values.get("seq", NEW[str(values["phase"])]))
    chunk = int(values.get("chunk", min(_CHUNK, seq)))
    require(name, (seq % chunk == 0, f"seq = {seq} is not a multiple of chunk = {chunk}"))
    return with_logits({**values, "seq": seq, "chunk": chunk})


def _mixer(block: _Block, x: str) -> str:
    builder, name, model = block.builder, block.name, block.model
    outputs = 2 * model.inner + 2 * model.states + model.heads
    weight = builder.weight(f"{name}.in.weight", (outputs, model.width))
    gate = _projected(block, x, weight, ("gate", 0, model.inner))
    wide = model.inner + 2 * model.states
    mixed = _projected(block, x, weight, ("mixed", model.inner, wide))
    steps = _projected(block, x, weight, ("steps", model.inner + wide, model.heads))
    parts = _convolved(block, mixed)
    y = _scanned(block, parts, steps)
    gate = activate(builder, f"{name}.gate_silu", gate, "silu")
    place = f"{block.row} {model.head}*h+e"
    sizes = block.sizes(h=model.heads, e=model.head)
    text = f"{model.heads}*B+h M e, {place} -> {place}"
    y = builder.emit(f"{name}.gated", pointwise("mul", "mul", text, sizes), [y, gate])
    y = norm(builder, f"{name}.gated_norm", y, "rms_norm")
    weight = builder.weight(f"{name}.out.weight", (model.width, model.inner))
    sizes = {"M": builder.shape(y)[0], "N": model.width, "K": model.inner}
    return builder.emit(f"{name}.out", product("M K, N K -> M N", sizes), [y, weight])


def _projected(block: _Block, x: str, weight: str, part: tuple[str, int, int]) -> str:
    """Some rows of the input matrix; what the convolution reads keeps sequences apart."""
    what, first, count = part
    out = "B M N" if what == "mixed" else f"{block.row} N"
    sizes = block.sizes(N=count, K=block.model.width)
    step = product(f"{block.row} K, N+{first} K -> {out}", sizes)
    return block.builder.emit(f"{block.name}.{what}", step, [x, weight])


def _convolved(block: _Block, mixed: str) -> dict[str, str]:
    """A short causal convolution per channel and SiLU; x by heads, B and C by sequences."""
    builder, model, name = block.builder, block.model, block.name
    wide = model.inner + 2 * model.states
    weight = builder.weight(f"{name}.conv.weight", (wide, model.taps))
    builder.gain(f"{name}.conv.bias", (wide,))
    found = {}
    parts = (
        ("x", 0, model.heads, model.head),
        ("B", model.inner, 1, model.states),
        ("C", model.inner + model.states, 1, model.states),
    )
    for what, first, heads, size in parts:
        channel = f"{size}*h+e+{first}"
        text = f"B M+R-{model.taps - 1} {channel}, {channel} R -> {heads}*B+h M e"
        sizes = block.sizes(h=heads, e=size, R=model.taps)
        step = product(text, sizes, "conv1d")
        made = builder.emit(f"{name}.conv_{what}", step, [mixed, weight])
        shape = dict(zip("hMe", builder.shape(made), strict=True))
        silu = pointwise("silu", "activation", "h M e -> h M e", shape, ops=5)
        found[what] = builder.emit(f"{name}.{what}_silu", silu, [made])
    return found


def _scanned(block: _Block, parts: Mapping[str, str], steps: str) -> str:
    """The recurrence, and what bypasses it: ``y + D * x``."""
    builder, model, name = block.builder, block.model, block.name
    for parameter in ("dt_bias", "A", "D"):
        builder.gain(f"{name}.{parameter}", (model.heads,))
    heads, place = f"{model.heads}*B+h", f"{block.row} h"
    sizes = block.sizes(h=model.heads)
    text = f"{place}, h -> {heads} M"
    step = pointwise("softplus_sum", "activation", text, sizes, ops=4)
    times = builder.emit(f"{name}.dt", step, [steps, f"{name}.dt_bias"])
    step = pointwise("mul", "mul", f"{heads} M, h -> {heads} M", sizes)
    decay = builder.emit(f"{name}.decay", step, [times, f"{name}.A"])
    every = {"h": block.batch * model.heads, "M": block.seq, "e": model.head}
    step = pointwise("mul", "mul", "h M e, h M -> h M e", every)
    value = builder.emit(f"{name}.x_dt", step, [parts["x"], times])
    scan = Scan(
        groups=block.batch,
        per_group=model.heads,
        tokens=block.seq,
        chunk=block.chunk,
        key=model.states,
        value=model.head,
    )
    state = builder.input(f"{name}.state", (scan.heads, model.states, model.head))
    inputs = (parts["C"], parts["B"], value, decay)
    out, last = state_space(builder, f"{name}.scan", scan, inputs, state)
    builder.notes.append(f"{last}: the state that the next tokens start from")
    text = f"{heads} M e, h, {heads} M e -> {heads} M e"
    step = pointwise("multiply_add", "mul", text, block.sizes(h=model.heads, e=model.head), ops=2)
    return builder.emit(f"{name}.skip", step, [parts["x"], f"{name}.D", out])


#: The released models of the paper, each with 128 states (state-spaces/mamba2-*).
MAMBAS = {
    "mamba2-130m": (Mamba(layers=24, width=768), "129 M"),
    "mamba2-370m": (Mamba(layers=48, width=1024), "368 M"),
    "mamba2-780m": (Mamba(layers=48, width=1536), "780 M"),
    "mamba2-1.3b": (Mamba(layers=48, width=2048), "1.34 B"),
    "mamba2-2.7b": (Mamba(layers=64, width=2560), "2.70 B"),
}

ENTRIES = tuple(
    SingleOperator(
        name=name,
        description=f"Mamba-2, {count} parameters, state-space language model",
        parameters=(
            PHASE,
            Parameter(name="batch", help="sequences", default=1),
            seq_parameter(2**31 - 1),
            Parameter(
                name="chunk",
                help="tokens of a chunk of the scan",
                default_text=f"{_CHUNK}, at most seq",
            ),
            layers_parameter(model.layers),
            LOGITS,
            *format_parameters("int8"),
        ),
        build=_build(model),
        group=LANGUAGE,
        settle=partial(_in_chunks, name),
    )
    for name, (model, count) in MAMBAS.items()
)

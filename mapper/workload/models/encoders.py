"""Transformers in which every token sees all others: BERT, ViT, DiT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mapper.workload.models.blocks import (
    Into,
    Rows,
    activate,
    add,
    embed,
    feed_forward,
    linear,
    norm,
)
from mapper.workload.nests import ConvolutionShape, Window, convolution
from mapper.workload.parameters import Parameter, format_parameters, layers_parameter
from mapper.workload.single.attention import FORM
from mapper.workload.single.entry import Build, SingleOperator, require
from mapper.workload.writing.attention import Heads, attention_parts, streaming_attention
from mapper.workload.writing.builder import Builder, Step, pointwise, product
from mapper.workload.writing.rows import plain_layer_norm

Numbers = Mapping[str, int]
Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """Sizes of an encoder; feed-forwards are four times as wide as its tokens.

    ``joint``: one matrix makes queries, keys and values.
    """

    layers: int
    width: int
    heads: int
    joint: bool = False

    @property
    def head(self) -> int:
        return self.width // self.heads


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    """``count`` tokens in each of ``batch`` inputs, and the form of attention."""

    batch: int
    count: int
    form: str


def _attention(builder: Builder, name: str, x: str, model: Encoder, tokens: _Tokens) -> str:
    heads = Heads(
        batch=tokens.batch,
        queries=tokens.count,
        keys=tokens.count,
        groups=model.heads,
        per_group=1,
        size=model.head,
        joint=model.joint,
    )
    emit = streaming_attention if tokens.form == "streaming" else attention_parts
    inputs = _joint(builder, name, x) if model.joint else _apart(builder, name, x, heads)
    context = emit(builder, f"{name}.core", heads, inputs)
    return linear(builder, f"{name}.o", context, model.width, bias=True)


def _joint(builder: Builder, name: str, x: str) -> list[str]:
    made = linear(builder, f"{name}.qkv", x, 3 * builder.shape(x)[1], bias=True)
    return [made, made]


def _apart(builder: Builder, name: str, x: str, heads: Heads) -> list[str]:
    width = builder.shape(x)[1]
    q = linear(builder, f"{name}.q", x, width, bias=True)
    stored = builder.result(f"{name}.kv", heads.cache_shape)
    for part, place in ("k", "0"), ("v", "1"):
        linear(
            builder,
            f"{name}.{part}",
            x,
            width,
            bias=True,
            into=Into(stored, f"{place} {{column}}"),
        )
    return [q, stored]


#: BERT's vocabulary and positions (Devlin et al., 2018).
_BERT_VOCABULARY, _BERT_POSITIONS = 30522, 512


def _bert(model: Encoder) -> Build:
    def build(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
        tokens = _Tokens(batch=v["batch"], count=v["seq"], form=texts["form"])
        x = _bert_embedding(builder, model, tokens)
        for number in range(v.get("layers", model.layers)):
            name = f"layers.{number}"
            y = _attention(builder, f"{name}.attention", x, model, tokens)
            x = add(builder, f"{name}.attention_add", x, y)
            x = norm(builder, f"{name}.attention_norm", x, "layer_norm")
            y = feed_forward(builder, f"{name}.feed_forward", x, 4 * model.width, "gelu")
            x = add(builder, f"{name}.feed_forward_add", x, y)
            x = norm(builder, f"{name}.feed_forward_norm", x, "layer_norm")
        rows = Rows(count=tokens.batch, every=tokens.count)
        pooled = _some_rows(builder, "pooler", x, model.width, rows)
        return [activate(builder, "pooler.tanh", pooled, "tanh"), x]

    return build


def _bert_embedding(builder: Builder, model: Encoder, tokens: _Tokens) -> str:
    indices = builder.input("tokens", (tokens.batch * tokens.count,), "int32")
    x, _ = embed(builder, "embed", indices, _BERT_VOCABULARY, model.width)
    positions = builder.gain("positions.weight", (_BERT_POSITIONS, model.width))
    kinds = builder.gain("token_types.weight", (2, model.width))
    row = f"{tokens.count}*b+m d"
    sizes = {"b": tokens.batch, "m": tokens.count, "d": model.width}
    step = pointwise("add", "add", f"{row}, m d, . d -> {row}", sizes, ops=2)
    return norm(
        builder, "embed_norm", builder.emit("positions", step, [x, positions, kinds]), "layer_norm"
    )


def _some_rows(builder: Builder, name: str, x: str, outputs: int, rows: Rows) -> str:
    """A matrix with bias on some rows."""
    width = builder.shape(x)[1]
    weight = builder.weight(f"{name}.weight", (outputs, width))
    builder.gain(f"{name}.bias", (outputs,))
    text = f"{rows.every}*M+{rows.first} K, N K -> M N"
    sizes = {"M": rows.count, "N": outputs, "K": width}
    return builder.emit(name, product(text, sizes), [x, weight])


def _patches(builder: Builder, v: Numbers, width: int, patch: int, rows: tuple[int, int]) -> str:
    """Patches of the image as rows ``rows[0] * batch + rows[1]`` and on."""
    channels, size = v["channels"], v["image"]
    count = size // patch
    window = Window(kernel=(patch,) * 2, stride=(patch,) * 2, padding=(0, 0), dilation=(1, 1))
    shape = ConvolutionShape(
        batch=v["batch"],
        in_channels=channels,
        out_channels=width,
        output_size=(count, count),
        window=window,
    )
    image = builder.input("image", (v["batch"], channels, size, size))
    weight = builder.weight("patches.weight", (width, channels, patch, patch))
    builder.gain("patches.bias", (width,))
    nest = convolution(shape)
    every, first = rows
    step = product(f". -> {every}*N+{count}*P+Q+{first} K", nest.extents)
    placed = Step(
        kind="conv2d",
        operation="mac",
        nest=type(nest)(extents=nest.extents, inputs=nest.inputs, output=step.nest.output),
    )
    x = builder.result("patches.out", (v["batch"] * every, width))
    return builder.emit("patches", placed, [image, weight], into=x)


def _vit(model: Encoder, patch: int) -> Build:
    def build(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
        count = (v["image"] // patch) ** 2 + 1
        tokens = _Tokens(batch=v["batch"], count=count, form=texts["form"])
        x = _patches(builder, {**v, "channels": 3}, model.width, patch, (count, 1))
        token = builder.gain("class_token", (1, model.width))
        sizes = {"b": v["batch"], "d": model.width}
        step = pointwise("copy", "copy", f". d -> {count}*b d", sizes)
        builder.emit("class_token.copy", step, [token], into=x)
        table = builder.gain("positions.weight", (count, model.width))
        row = f"{count}*b+m d"
        step = pointwise("add", "add", f"{row}, m d -> {row}", sizes | {"m": count})
        x = builder.emit("positions", step, [x, table])
        for number in range(v.get("layers", model.layers)):
            name = f"layers.{number}"
            h = norm(builder, f"{name}.attention_norm", x, "layer_norm")
            y = _attention(builder, f"{name}.attention", h, model, tokens)
            x = add(builder, f"{name}.attention_add", x, y)
            h = norm(builder, f"{name}.feed_forward_norm", x, "layer_norm")
            y = feed_forward(builder, f"{name}.feed_forward", h, 4 * model.width, "gelu")
            x = add(builder, f"{name}.feed_forward_add", x, y)
        x = norm(builder, "norm", x, "layer_norm")
        return [_some_rows(builder, "head", x, v["classes"], Rows(count=v["batch"], every=count))]

    return build


#: Of the released models: latents of 4 channels, 1000 classes and none, noise and its variance.
_DIT_CHANNELS, _DIT_CLASSES, _DIT_FREQUENCIES = 4, 1001, 256


def _dit(model: Encoder, patch: int) -> Build:
    """Diffusion transformer (Peebles and Xie, 2022): blocks steered by time and class."""

    def build(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
        size = v["image"] // 8
        require("dit", (size % patch == 0, f"image / 8 is not a multiple of {patch}"))
        count = (size // patch) ** 2
        tokens = _Tokens(batch=v["batch"], count=count, form=texts["form"])
        latent = {**v, "image": size, "channels": _DIT_CHANNELS}
        x = _patches(builder, latent, model.width, patch, (count, 0))
        table = builder.input("positions", (count, model.width))
        sizes = {"b": v["batch"], "m": count, "d": model.width}
        row = f"{count}*b+m d"
        x = builder.emit(
            "add_positions", pointwise("add", "add", f"{row}, m d -> {row}", sizes), [x, table]
        )
        condition = _condition(builder, model.width, v["batch"])
        for number in range(v.get("layers", model.layers)):
            x = _dit_block(builder, f"layers.{number}", x, condition, (model, tokens))
        steering = linear(builder, "final.steering", condition, 2 * model.width, bias=True)
        h = _modulate(builder, "final", x, steering, (0, tokens))
        return [linear(builder, "final", h, patch * patch * 2 * _DIT_CHANNELS, bias=True)]

    return build


def _condition(builder: Builder, width: int, batch: int) -> str:
    """Time and class, each as a vector, added, and SiLU, which every block begins with."""
    time = builder.input("time", (batch, _DIT_FREQUENCIES))
    hidden = linear(builder, "time.fc1", time, width, bias=True)
    hidden = activate(builder, "time.silu", hidden, "silu")
    vector = linear(builder, "time.fc2", hidden, width, bias=True)
    label, _ = embed(
        builder, "label", builder.input("labels", (batch,), "int32"), _DIT_CLASSES, width
    )
    return activate(builder, "condition.silu", add(builder, "condition", vector, label), "silu")


def _dit_block(
    builder: Builder, name: str, x: str, condition: str, setting: tuple[Encoder, _Tokens]
) -> str:
    model, tokens = setting
    steering = linear(builder, f"{name}.steering", condition, 6 * model.width, bias=True)
    h = _modulate(builder, f"{name}.attention", x, steering, (0, tokens))
    y = _attention(builder, f"{name}.attention", h, model, tokens)
    x = _gated_add(builder, f"{name}.attention_add", (x, y, steering), (2, tokens))
    h = _modulate(builder, f"{name}.feed_forward", x, steering, (3, tokens))
    y = feed_forward(builder, f"{name}.feed_forward", h, 4 * model.width, "gelu_tanh")
    return _gated_add(builder, f"{name}.feed_forward_add", (x, y, steering), (5, tokens))


def _modulate(builder: Builder, name: str, x: str, steering: str, at: tuple[int, _Tokens]) -> str:
    """Norm, then ``x * (1 + scale) + shift``: shift and scale are parts ``at[0]`` and the next."""
    part, tokens = at
    normed = plain_layer_norm(builder, f"{name}_norm", x)
    width = builder.shape(x)[1]
    row = f"{tokens.count}*b+m d"
    shift, scale = (f"b d+{(part + more) * width}" for more in (0, 1))
    sizes = {"b": tokens.batch, "m": tokens.count, "d": width}
    step = pointwise("modulate", "mul", f"{row}, {scale}, {shift} -> {row}", sizes, ops=3)
    return builder.emit(f"{name}_modulate", step, [normed, steering, steering])


def _gated_add(
    builder: Builder, name: str, inputs: tuple[str, str, str], at: tuple[int, _Tokens]
) -> str:
    """``x + gate * y``; the gate is part ``at[0]`` of the steering."""
    x, y, steering = inputs
    part, tokens = at
    width = builder.shape(x)[1]
    row = f"{tokens.count}*b+m d"
    sizes = {"b": tokens.batch, "m": tokens.count, "d": width}
    text = f"{row}, b d+{part * width}, {row} -> {row}"
    step = pointwise("multiply_add", "mul", text, sizes, ops=2)
    return builder.emit(name, step, [y, steering, x])


_BATCH = Parameter(name="batch", help="inputs", default=1, high=65536)


def _image(default: int, patch: int = 1) -> Parameter:
    return Parameter(
        name="image",
        help="height and width of the image",
        default=default,
        low=patch,
        high=8192,
        multiple_of=patch,
    )


_BERTS = {
    "bert-base": (Encoder(layers=12, width=768, heads=12), "BERT, 109 M parameters"),
    "bert-large": (Encoder(layers=24, width=1024, heads=16), "BERT, 335 M parameters"),
}


def _sizes(layers: int, width: int, heads: int) -> Encoder:
    """With a joint matrix, as the implementations of timm and torchvision have it."""
    return Encoder(layers=layers, width=width, heads=heads, joint=True)


#: Layers, width, heads (Dosovitskiy et al., 2020; tiny and small: Touvron et al., 2020); patches.
_VITS = {
    "vit-ti": (_sizes(12, 192, 3), 16, "ViT-Ti/16, 5.7 M parameters"),
    "vit-s": (_sizes(12, 384, 6), 16, "ViT-S/16, 22 M parameters"),
    "vit-b": (_sizes(12, 768, 12), 16, "ViT-B/16, 86.6 M parameters"),
    "vit-b32": (_sizes(12, 768, 12), 32, "ViT-B/32, 88.2 M parameters"),
    "vit-l": (_sizes(24, 1024, 16), 16, "ViT-L/16, 304 M parameters"),
    "vit-h": (_sizes(32, 1280, 16), 14, "ViT-H/14, 632 M parameters"),
}

#: Table 1 of Peebles and Xie, 2022, with patches of 2.
_DITS = {
    "dit-s": (Encoder(layers=12, width=384, heads=6), "DiT-S/2, 33 M parameters"),
    "dit-b": (Encoder(layers=12, width=768, heads=12), "DiT-B/2, 130 M parameters"),
    "dit-l": (Encoder(layers=24, width=1024, heads=16), "DiT-L/2, 458 M parameters"),
    "dit-xl": (Encoder(layers=28, width=1152, heads=16), "DiT-XL/2, 675 M parameters"),
}

ENTRIES = (
    *(
        SingleOperator(
            name=name,
            description=f"{description}, encoder of text",
            parameters=(
                _BATCH,
                Parameter(name="seq", help="tokens", default=128, high=_BERT_POSITIONS),
                layers_parameter(model.layers),
                FORM,
                *format_parameters("int8"),
            ),
            build=_bert(model),
            group="text encoders",
        )
        for name, (model, description) in _BERTS.items()
    ),
    *(
        SingleOperator(
            name=name,
            description=f"{description}, classifier of images",
            parameters=(
                _BATCH,
                _image(224, patch),
                Parameter(name="classes", help="outputs", default=1000),
                layers_parameter(model.layers),
                FORM,
                *format_parameters("int8"),
            ),
            build=_vit(model, patch),
            group="image classifiers",
        )
        for name, (model, patch, description) in _VITS.items()
    ),
    *(
        SingleOperator(
            name=name,
            description=f"{description}, one step of image diffusion",
            parameters=(
                _BATCH,
                _image(256),
                layers_parameter(model.layers),
                FORM,
                *format_parameters("int8"),
            ),
            build=_dit(model, 2),
            group="image generators",
        )
        for name, (model, description) in _DITS.items()
    ),
)

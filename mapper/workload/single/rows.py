"""Softmax and normalizations."""

from __future__ import annotations

from collections.abc import Mapping

from mapper.workload.parameters import Parameter, dtype_parameter
from mapper.workload.single.entry import Build, SingleOperator, require
from mapper.workload.writing import rows
from mapper.workload.writing.builder import Builder, Step
from mapper.workload.writing.notation import nest

Numbers = Mapping[str, int]
Texts = Mapping[str, str]


def _softmax(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
    data = builder.input("input", (v["rows"], v["columns"]))
    emit = rows.softmax if texts["passes"] == "one" else rows.softmax_in_two_passes
    return [emit(builder, "softmax", data)]


def _rms_norm(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
    data = builder.input("input", (v["rows"], v["columns"]))
    gain = builder.gain("gain", (v["columns"],))
    emit = rows.rms_norm if texts["passes"] == "one" else rows.rms_norm_in_two_passes
    return [emit(builder, "rms_norm", data, gain)]


def _layer_norm(builder: Builder, v: Numbers, _: Texts) -> list[str]:
    data = builder.input("input", (v["rows"], v["columns"]))
    gain, bias = (builder.gain(name, (v["columns"],)) for name in ("gain", "bias"))
    return [rows.layer_norm(builder, "layer_norm", data, gain, bias)]


def _channel_norm(kind: str, ops: int) -> Build:
    """Of images: per channel by stored statistics, or over the channels of a group."""

    def build(builder: Builder, v: Numbers, _: Texts) -> list[str]:
        groups = v.get("groups", v["C"])
        require(kind, (v["C"] % groups == 0, f"C = {v['C']} is not a multiple of {groups} groups"))
        width = v.get("W", v["H"])
        data = builder.input("input", (v["N"], v["C"], v["H"], width))
        gain, bias = (builder.gain(name, (v["C"],)) for name in ("gain", "bias"))
        each = v["C"] // groups
        channel, image = f"{each}*g+c", "h w"
        text = f"n {channel} {image}, {channel}, {channel} -> n {channel} {image}"
        sizes = {"n": v["N"], "g": groups, "c": each, "h": v["H"], "w": width}
        whole = "c h w" if kind == "group_norm" else ""
        step = Step(kind=kind, operation="norm", nest=nest(text, sizes), ops=ops, whole=whole)
        return [builder.emit(kind, step, [data, gain, bias])]

    return build


_DTYPE = dtype_parameter("int8", "format of input and output")
_SHAPE = (
    Parameter(name="rows", help="rows, each on its own"),
    Parameter(name="columns", help="elements of a row"),
)
_PASSES = Parameter(
    name="passes",
    help="one: rows are held whole; two: a reduction, then the scaling",
    default="one",
    choices=("one", "two"),
)
_IMAGE = (
    Parameter(name="N", help="batch", default=1),
    Parameter(name="C", help="channels"),
    Parameter(name="H", help="height"),
    Parameter(name="W", help="width", default_text="H"),
)

ENTRIES = (
    SingleOperator(
        name="softmax",
        description="exponentials of each row, scaled to sum 1",
        parameters=(*_SHAPE, _PASSES, _DTYPE),
        build=_softmax,
    ),
    SingleOperator(
        name="layer_norm",
        description="each row to mean 0 and variance 1, then a gain and a bias",
        parameters=(*_SHAPE, _DTYPE),
        build=_layer_norm,
    ),
    SingleOperator(
        name="rms_norm",
        description="each row to mean square 1, then a gain",
        parameters=(*_SHAPE, _PASSES, _DTYPE),
        build=_rms_norm,
    ),
    SingleOperator(
        name="batch_norm",
        description="a scale and a shift per channel of an image (statistics are known)",
        parameters=(*_IMAGE, _DTYPE),
        build=_channel_norm("batch_norm", 2),
    ),
    SingleOperator(
        name="group_norm",
        description="the channels of each group of an image to mean 0 and variance 1",
        parameters=(*_IMAGE, Parameter(name="groups", help="groups of channels"), _DTYPE),
        build=_channel_norm("group_norm", rows.LAYER_NORM_OPS),
    ),
)

"""Elementwise operators, reductions, pooling and lookups."""

from __future__ import annotations

from collections.abc import Mapping

from mapper.workload.nests import Nest, Window, at
from mapper.workload.parameters import Parameter, dtype_parameter
from mapper.workload.single.entry import SingleOperator, require
from mapper.workload.writing.activations import ACTIVATION_OPS
from mapper.workload.writing.builder import Builder, Step, pointwise
from mapper.workload.writing.lookup import lookup

Numbers = Mapping[str, int]
Texts = Mapping[str, str]

#: What a name of pooling or reduction asks of the vector unit.
_REDUCTIONS = {"sum": "add", "mean": "mean", "max": "max"}


def _activation(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
    data = builder.input("input", (v["elements"],))
    kind = texts["function"]
    step = pointwise(kind, "activation", "e -> e", {"e": v["elements"]}, ACTIVATION_OPS[kind])
    return [builder.emit(kind, step, [data])]


def _elementwise(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
    """``left (op) right``; ``right`` may be one row for all."""
    rows, columns = v["rows"], v["columns"]
    one_row = texts["right"] == "row"
    builder.input("left", (rows, columns))
    builder.input("right", (columns,) if one_row else (rows, columns))
    text = f"t d, {'d' if one_row else 't d'} -> t d"
    kind = texts["operation"]
    step = pointwise(kind, kind, text, {"t": rows, "d": columns})
    return [builder.emit(kind, step, ["left", "right"])]


def _reduce(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
    data = builder.input("input", (v["rows"], v["columns"]))
    along = {"columns": "t d -> t", "rows": "t d -> d"}[texts["along"]]
    sizes = {"t": v["rows"], "d": v["columns"]}
    step = pointwise(texts["kind"], _REDUCTIONS[texts["kind"]], along, sizes)
    return [builder.emit("reduce", step, [data])]


def _pool(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
    size, kernel = (v["H"], v.get("W", v["H"])), (v["R"], v.get("S", v["R"]))
    stride = v.get("stride", v["R"])
    window = Window(kernel=kernel, stride=(stride,) * 2, padding=(v["pad"],) * 2, dilation=(1, 1))
    outputs = tuple(window.output_size(axis, size[axis]) for axis in range(2))
    require(
        "pool2d",
        (min(outputs) >= 1, f"the window {kernel} is larger than the padded image"),
        (2 * v["pad"] <= min(kernel), f"pad = {v['pad']} is more than half the window"),
    )
    data = builder.input("input", (v["N"], v["C"], *size))
    extents = {"N": v["N"], "C": v["C"], "P": outputs[0], "Q": outputs[1]}
    windows = (window.index(0), window.index(1))
    step = Step(
        kind=f"{texts['kind']}_pool",
        operation=_REDUCTIONS[texts["kind"]],
        nest=Nest(
            extents=extents | {"R": kernel[0], "S": kernel[1]},
            inputs=((*at("N", "C"), *windows),),
            output=at("N", "C", "P", "Q"),
        ),
    )
    return [builder.emit("pool", step, [data])]


def _embedding(builder: Builder, v: Numbers, _: Texts) -> list[str]:
    builder.input("indices", (v["tokens"],), "int32")
    builder.weight("table", (v["rows"], v["columns"]))
    return [lookup(builder, "embedding", "indices", "table")]


_DTYPE = dtype_parameter("int8", "format of input and output")
_MATRIX = (
    Parameter(name="rows", help="rows", default=1),
    Parameter(name="columns", help="elements of a row"),
)

ENTRIES = (
    SingleOperator(
        name="activation",
        description="a function of every element",
        parameters=(
            Parameter(name="elements", help="elements"),
            Parameter(name="function", help="which", default="relu", choices=tuple(ACTIVATION_OPS)),
            _DTYPE,
        ),
        build=_activation,
    ),
    SingleOperator(
        name="elementwise",
        description="a sum, product or maximum of every two elements",
        parameters=(
            *_MATRIX,
            Parameter(name="operation", help="which", default="add", choices=("add", "mul", "max")),
            Parameter(
                name="right",
                help="the second operand: as large as the first, or one row for all",
                default="matrix",
                choices=("matrix", "row"),
            ),
            _DTYPE,
        ),
        build=_elementwise,
    ),
    SingleOperator(
        name="reduce",
        description="sum, mean or maximum along columns (one result a row) or rows",
        parameters=(
            *_MATRIX,
            Parameter(name="kind", help="which", default="sum", choices=tuple(_REDUCTIONS)),
            Parameter(
                name="along", help="what is reduced", default="columns", choices=("columns", "rows")
            ),
            _DTYPE,
        ),
        build=_reduce,
    ),
    SingleOperator(
        name="pool2d",
        description="the largest or the mean of each window of an image",
        parameters=(
            Parameter(name="N", help="batch", default=1),
            Parameter(name="C", help="channels"),
            Parameter(name="H", help="height"),
            Parameter(name="W", help="width", default_text="H"),
            Parameter(name="R", help="window height"),
            Parameter(name="S", help="window width", default_text="R"),
            Parameter(name="stride", help="step of the window", default_text="R"),
            Parameter(name="pad", help="padding on each side", low=0, default=0),
            Parameter(name="kind", help="which", default="max", choices=("max", "mean")),
            _DTYPE,
        ),
        build=_pool,
    ),
    SingleOperator(
        name="embedding",
        description="rows of a table by index",
        parameters=(
            Parameter(name="tokens", help="lookups"),
            Parameter(name="rows", help="rows of the table"),
            Parameter(name="columns", help="elements of a row"),
            _DTYPE,
        ),
        build=_embedding,
    ),
)

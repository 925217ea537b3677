"""Networks that are no transformers: recommendation."""

from __future__ import annotations

from collections.abc import Mapping

from mapper.workload.models.blocks import activate, linear
from mapper.workload.parameters import Parameter, format_parameters
from mapper.workload.single.entry import SingleOperator
from mapper.workload.writing.builder import Builder, pointwise, product

#: Of MLPerf's DLRM (Naumov et al., 2019, on Criteo Terabyte): 13 numbers and 26 categories.
_DENSE, _BOTTOM, _TOP = 13, (512, 256, 128), (1024, 1024, 512, 256, 1)
_WIDTH = _BOTTOM[-1]


def _perceptron(builder: Builder, name: str, x: str, widths: tuple[int, ...]) -> str:
    """Matrices with biases, each but the last followed by a ReLU."""
    for number, width in enumerate(widths):
        x = linear(builder, f"{name}.{number}", x, width, bias=True)
        kind = "relu" if number + 1 < len(widths) or name == "bottom" else "sigmoid"
        x = activate(builder, f"{name}.{number}.{kind}", x, kind)
    return x


def _dlrm(builder: Builder, v: Mapping[str, int], _: Mapping[str, str]) -> list[str]:
    batch, tables, hot = v["batch"], v["tables"], v["lookups"]
    dense = _perceptron(builder, "bottom", builder.input("dense", (batch, _DENSE)), _BOTTOM)
    vectors = builder.result("vectors", (batch, tables + 1, _WIDTH))
    sizes = {"b": batch, "d": _WIDTH}
    builder.emit(
        "vectors.dense", pointwise("copy", "copy", "b d -> b . d", sizes), [dense], into=vectors
    )
    for number in range(tables):
        _pooled_lookup(builder, number, vectors, (batch, v["rows"], hot))
    pairs = tables + 1
    text, sides = "B M K, B N K -> B M N", {"M": pairs, "N": pairs}
    step = product(text, {"B": batch, "K": _WIDTH, **sides}, "interaction")
    products = builder.emit("interaction", step, [vectors, vectors])
    # Each unordered pair once, behind the dense vector: one gather of the lower triangle.
    count = pairs * (pairs - 1) // 2
    joined = builder.result("joined", (batch, _WIDTH + count))
    step = pointwise("copy", "copy", "b d -> b d", sizes)
    builder.emit("joined.dense", step, [dense], into=joined)
    for row in range(1, pairs):
        first = _WIDTH + row * (row - 1) // 2
        text = f"b {row} j -> b j+{first}"
        step = pointwise("copy", "copy", text, {"b": batch, "j": row})
        builder.emit(f"joined.pairs{row}", step, [products], into=joined)
    return [_perceptron(builder, "top", joined, _TOP)]


def _pooled_lookup(
    builder: Builder, number: int, vectors: str, sizes: tuple[int, int, int]
) -> None:
    """The sum of some rows of a table, counted as all different."""
    batch, rows, hot = sizes
    name = f"tables.{number}"
    table = builder.weight(f"{name}.weight", (rows, _WIDTH))
    indices = builder.input(f"{name}.indices", (batch, hot), "int32")
    text = f"b l, {hot}*b+l d -> b {number + 1} d"
    step = pointwise("pooled_lookup", "add", text, {"b": batch, "l": hot, "d": _WIDTH})
    builder.emit(name, step, [indices, table], into=vectors)


ENTRIES = (
    SingleOperator(
        name="dlrm",
        description="recommendation model: tables of categories, their products, perceptrons",
        parameters=(
            Parameter(name="batch", help="samples", default=128),
            Parameter(name="tables", help="categories", default=26, high=1024),
            Parameter(name="rows", help="rows of each table", default=40_000_000),
            Parameter(name="lookups", help="rows per category that are added up", default=1),
            *format_parameters("int8"),
        ),
        build=_dlrm,
        group="recommendation",
    ),
)

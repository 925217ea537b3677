"""Operators on rows: softmax and normalizations, in one pass over whole rows or in two.

In one pass a row must fit into the memory next to the unit, and is read once. In two passes a
reduction finds what the row has in common, in tiles of any size, and the second pass uses it.
"""

from __future__ import annotations

from mapper.workload.writing.attention import SOFTMAX_OPS
from mapper.workload.writing.builder import Builder, Step
from mapper.workload.writing.notation import nest

#: Sum, subtract the mean, square, sum of squares, multiply; then a scale and a shift.
LAYER_NORM_OPS = 7

#: Square, sum of squares, multiply; then a scale.
RMS_NORM_OPS = 4


def softmax(builder: Builder, name: str, data: str) -> str:
    rows, columns = builder.shape(data)
    return builder.emit(
        name, _whole_rows("softmax", "softmax", "t d -> t d", (rows, columns), SOFTMAX_OPS), [data]
    )


def rms_norm(builder: Builder, name: str, data: str, gain: str) -> str:
    step = _whole_rows("rms_norm", "norm", "t d, d -> t d", builder.shape(data), RMS_NORM_OPS)
    return builder.emit(name, step, [data, gain])


def layer_norm(builder: Builder, name: str, data: str, gain: str, bias: str) -> str:
    text = "t d, d, d -> t d"
    step = _whole_rows("layer_norm", "norm", text, builder.shape(data), LAYER_NORM_OPS)
    return builder.emit(name, step, [data, gain, bias])


def plain_layer_norm(builder: Builder, name: str, data: str) -> str:
    """Without gain and bias."""
    step = _whole_rows("plain_norm", "norm", "t d -> t d", builder.shape(data), LAYER_NORM_OPS - 2)
    return builder.emit(name, step, [data])


def softmax_in_two_passes(builder: Builder, name: str, data: str) -> str:
    """The logarithm of the sum of exponentials, then ``exp(x - that)``."""
    rows, columns = builder.shape(data)
    sizes = {"t": rows, "d": columns}
    wide = "fp32"
    total = Step(
        kind="log_sum_exp",
        operation="softmax",
        nest=nest("t d -> t", sizes),
        ops=3,
        dtype=wide,
    )
    common = builder.emit(f"{name}.sum", total, [data])
    scale = Step(
        kind="exp_difference",
        operation="softmax",
        nest=nest("t d, t -> t d", sizes),
        ops=2,
    )
    return builder.emit(name, scale, [data, common])


def rms_norm_in_two_passes(builder: Builder, name: str, data: str, gain: str) -> str:
    """The mean square of each row, then the scaling."""
    rows, columns = builder.shape(data)
    sizes = {"t": rows, "d": columns}
    square = Step(
        kind="mean_square", operation="norm", nest=nest("t d -> t", sizes), ops=2, dtype="fp32"
    )
    common = builder.emit(f"{name}.mean_square", square, [data])
    scale = Step(kind="rms_scale", operation="norm", nest=nest("t d, t, d -> t d", sizes), ops=2)
    return builder.emit(name, scale, [data, common, gain])


def _whole_rows(kind: str, operation: str, text: str, shape: tuple[int, ...], ops: int) -> Step:
    sizes = dict(zip("td", shape, strict=True))
    return Step(kind=kind, operation=operation, nest=nest(text, sizes), ops=ops, whole="d")

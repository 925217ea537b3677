"""Normalizations and softmax: one pass of a vector unit that has the whole row at hand.

Scalar operations an element are counted from the formulas; what happens once a row is left out.
"""

from __future__ import annotations

from mapper.workload.output_path import SCALE_AND_SHIFT
from mapper.workload.torch_import.draft import pointwise
from mapper.workload.torch_import.folding import fold_into_producer
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, broadcast, insert, join_leading

#: Subtract the maximum, exponential, sum, reciprocal, multiply.
SOFTMAX_OPS = 5

#: As above after adding a mask.
MASKED_SOFTMAX_OPS = 6

#: Sum, subtract the mean, square, sum of squares, multiply.
_MEAN_AND_VARIANCE_OPS = 5

#: Square, sum of squares, multiply.
_ROOT_MEAN_SQUARE_OPS = 3

#: At inference, batch normalization is one scale and one shift.
_BATCH_NORM_OPS = 2


@lowers("aten.softmax", "aten._softmax", "aten.log_softmax", "aten._log_softmax")
def lower_softmax(call: Call) -> Value:
    data = call["self"]
    last = call["dim"] % len(data.axes) == len(data.axes) - 1
    rows = join_leading(data, 1) if last else data
    # Only along the last axis does a "softmax" keep to one row: those of others are not split.
    kind = "softmax" if last else "softmax_over_axis"
    kernel = pointwise(kind, "softmax", rows.shape, SOFTMAX_OPS)
    result = call.draft.emit(call.name, kernel, [rows], rows.shape, call.dtype)
    return call.draft.reshape(result, call.shape)


@lowers("aten.layer_norm", "aten.native_layer_norm")
def lower_layer_norm(call: Call) -> Value:
    return _row_norm(call, "layer_norm", _MEAN_AND_VARIANCE_OPS, ("weight", "bias"))


@lowers("aten.rms_norm")
def lower_rms_norm(call: Call) -> Value:
    return _row_norm(call, "rms_norm", _ROOT_MEAN_SQUARE_OPS, ("weight",))


@lowers("aten.group_norm", "aten.instance_norm", "aten.native_group_norm")
def lower_group_norm(call: Call) -> Value:
    return _channel_norm(call, "group_norm", _MEAN_AND_VARIANCE_OPS)


@lowers("aten.batch_norm", "aten._native_batch_norm_legit_no_training")
def lower_batch_norm(call: Call) -> Value:
    """Merged into the weights and bias of the contraction before it, where there is one."""
    producer = call.sole_producer("input")
    if producer is not None and producer.kernel.operation == "mac":
        folded = fold_into_producer(call, "input", f"{call.name}: {SCALE_AND_SHIFT}")
        assert folded is not None
        return folded
    return _channel_norm(call, "batch_norm", 0)


def _row_norm(call: Call, kind: str, ops: int, affine: tuple[str, ...]) -> View:
    """Normalizes the last axes; scale and shift, where given, cost one operation each."""
    data = join_leading(call["input"], len(call["normalized_shape"]))
    vectors = [call[name] for name in affine if call[name] is not None]
    inputs = [data, *(broadcast(vector, data.shape) for vector in vectors)]
    kernel = pointwise(kind, "norm", data.shape, ops + len(vectors), len(inputs))
    result = call.draft.emit(call.name, kernel, inputs, data.shape, call.dtype)
    return call.draft.reshape(result, call.shape)


def _channel_norm(call: Call, kind: str, ops: int) -> View:
    """Normalizes images; scale and shift are per channel, the second axis."""
    data: View = call["input"]
    vectors = [call[name] for name in ("weight", "bias") if call[name] is not None]
    ops = max(ops + len(vectors), _BATCH_NORM_OPS)
    return call.emit_pointwise(kind, "norm", ops, data, *(_channels(v, data) for v in vectors))


def _channels(vector: View, data: View) -> View:
    for _ in data.shape[2:]:
        vector = insert(vector, len(vector.axes))
    return vector

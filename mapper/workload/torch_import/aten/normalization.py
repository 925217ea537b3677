"""Normalizations and softmax."""

from __future__ import annotations

from mapper.workload.torch_import.folding import fold_into_producer
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, insert

#: Scalar operations an element, from the formulas. Batch norm at inference: scale, shift.
BATCH_NORM_OPS = 2


@lowers("aten.batch_norm", "aten._native_batch_norm_legit_no_training")
def lower_batch_norm(call: Call) -> Value:
    data = call["input"]
    producer = call.sole_producer("input")
    if producer is not None and producer.kernel.operation == "mac":
        folded = fold_into_producer(call, "input", f"{call.name}: scale and shift merged")
        assert folded is not None
        return folded
    channels = [view for view in (call["weight"], call["bias"]) if view is not None]
    return call.emit_pointwise(
        "batch_norm", "norm", BATCH_NORM_OPS, data, *(_per_channel(v, data) for v in channels)
    )


def _per_channel(view: View, data: View) -> View:
    for _ in data.shape[2:]:
        view = insert(view, len(view.axes))
    return view

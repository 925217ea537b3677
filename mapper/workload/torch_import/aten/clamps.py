"""Cheap element functions that a producer applies to its results: clamps and folded norms."""

from __future__ import annotations

from mapper.workload.torch_import.folding import fold_into_producer
from mapper.workload.torch_import.registry import Call, Value, lowers


@lowers(
    "aten.relu", "aten.relu6", "aten.hardtanh", "aten.clamp", "aten.clamp_min", "aten.clamp_max"
)
def lower_clamp(call: Call) -> Value:
    folded = fold_into_producer(call, "self", f"{call.name}: clamped")
    # One comparison an element and bound; the lower one (relu) is the common case.
    return folded or call.emit_pointwise("clamp", "activation", 1, call["self"])

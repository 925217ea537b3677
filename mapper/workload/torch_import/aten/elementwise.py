"""Element-by-element operators."""

from __future__ import annotations

from mapper.workload.torch_import.registry import Call, Value, lowers


@lowers("aten.add")
def lower_add(call: Call) -> Value:
    return call.emit_pointwise("add", "add", 1, call["self"], call["other"])

"""Views: only the addresses change, no data moves."""

from __future__ import annotations

from mapper.workload.torch_import.registry import Call, Value, lowers


@lowers("aten.flatten", "aten.reshape", "aten.view", view=True)
def lower_reshape(call: Call) -> Value:
    return call.draft.reshape(call["self"], call.shape)

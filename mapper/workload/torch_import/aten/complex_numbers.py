"""Complex numbers: real and imaginary part along a last axis of their own."""

from __future__ import annotations

from arch.errors import InputError, Problem
from mapper.workload.torch_import.draft import pointwise
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, broadcast

#: Operations on one part of the result: two products and a sum, or a sum.
_OPS = {"aten.mul": 3, "aten.add": 1, "aten.sub": 1}


@lowers("aten.view_as_complex", "aten.view_as_real", view=True)
def lower_complex_view(call: Call) -> Value:
    """Here they are the same."""
    view: View = call["self"]
    return view


def lower_complex(call: Call, operation: str) -> Value:
    """Element by element, each part by itself."""
    if call.operation not in _OPS:
        message = f"{call.name}: of complex numbers only sums and products can be imported"
        raise InputError(Problem(message, where="workload"))
    shape = (*call.shape, 2)
    views = [broadcast(call[name], shape) for name in ("self", "other")]
    kind = f"complex_{call.operation.removeprefix('aten.')}"
    kernel = pointwise(kind, operation, shape, _OPS[call.operation], 2)
    return call.draft.emit(call.name, kernel, views, shape, call.dtype)

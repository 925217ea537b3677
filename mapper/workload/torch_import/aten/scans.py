"""Results along an axis that depend on all elements before them, and sorting."""

from __future__ import annotations

import math

from mapper.workload.nests import Nest, at
from mapper.workload.torch_import.draft import Kernel, point_dims
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View

#: What it is called, what a vector unit does for each element, and in how many operations; a sum
#: of exponentials takes the maximum, an exponential, a sum and a logarithm.
_SCANS = {
    "aten.cumsum": ("cumulative_sum", "add", 1),
    "aten.cumprod": ("cumulative_product", "mul", 1),
    "aten.cummax": ("cumulative_max", "max", 1),
    "aten.cummin": ("cumulative_min", "max", 1),
    "aten.logcumsumexp": ("cumulative_log_sum_exp", "activation", 5),
}


@lowers(*_SCANS)
def lower_scan(call: Call) -> Value:
    """From the first element on, one after the other; the axis is never cut."""
    kind, operation, ops = _SCANS[call.operation]
    result = _along(call, kind, operation, ops)
    return (result, result) if call.operation in ("aten.cummax", "aten.cummin") else result


@lowers("aten.sort", "aten.argsort")
def lower_sort(call: Call) -> Value:
    """Comparisons of a bitonic network (Batcher, 1968): each element half the time in each of
    ``log(n) (log(n) + 1) / 2`` layers. Positions are written with the values."""
    data: View = call["self"]
    dim = call.arguments.get("dim", -1)
    layers = math.ceil(math.log2(max(data.shape[dim], 2)))
    result = _along(call, "sort", "max", max(1, -(-layers * (layers + 1) // 4)))
    if call.operation == "aten.argsort":
        return result
    call.draft.folded.append(f"{call.name}: positions are written with the values")
    return result, result


def _along(call: Call, kind: str, operation: str, ops: int) -> View:
    data: View = call["self"]
    dims = point_dims(len(data.axes))
    whole = dims[call.arguments.get("dim", -1) % len(dims)]
    extents = dict(zip(dims, data.shape, strict=True))
    nest = Nest(extents=extents, inputs=(at(*dims),), output=at(*dims))
    kernel = Kernel(kind=kind, operation=operation, nest=nest, ops_per_point=ops, whole=whole)
    return call.emit(kernel, data)

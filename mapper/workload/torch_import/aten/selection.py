"""The largest of a row, and elements read or written where a tensor of indices says."""

from __future__ import annotations

from arch.errors import InputError, Problem
from mapper.workload.nests import Nest, at
from mapper.workload.torch_import.draft import Kernel, point_dims, pointwise
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, narrow


@lowers("aten.topk")
def lower_top_k(call: Call) -> Value:
    """One comparison for each element and result; positions are written with the values."""
    data: View = call["self"]
    dims = point_dims(len(data.axes))
    dim = dims[call["dim"] % len(dims) if "dim" in call.arguments else -1]
    chosen = tuple("J" if name == dim else name for name in dims)
    extents = dict(zip(dims, data.shape, strict=True)) | {"J": call["k"]}
    nest = Nest(extents=extents, inputs=(at(*dims),), output=at(*chosen))
    result = call.emit(Kernel(kind="top_k", operation="max", nest=nest), data)
    call.draft.folded.append(f"{call.name}: positions are written with the values")
    return result, result


@lowers("aten.gather")
def lower_gather(call: Call) -> Value:
    """Which elements depends on the data; counted as all different, as with lookups of rows."""
    table: View = call["self"]
    for dim, (size, wanted) in enumerate(zip(table.shape, call.shape, strict=True)):
        table = narrow(table, dim, 0, min(size, wanted))
    kernel = pointwise("lookup", "copy", call.shape, 1, inputs=2)
    if table.shape != call.shape:
        kernel = pointwise("lookup", "copy", call.shape, 1)
        return call.emit(kernel, call["index"])
    return call.emit(kernel, call["index"], table)


@lowers("aten.scatter")
def lower_scatter(call: Call) -> Value:
    """Each element compared with each index of its row; those that are met are replaced."""
    data, index = call["self"], call["index"]
    source = call.arguments.get("src")
    inputs = [data, index, *([source] if isinstance(source, View) else [])]
    dims = point_dims(len(data.axes))
    dim = call["dim"] % len(dims)
    row = tuple("J" if at_dim == dim else name for at_dim, name in enumerate(dims))
    _require_rows(call, data, index, dim)
    extents = dict(zip(dims, data.shape, strict=True)) | {"J": index.shape[dim]}
    patterns = (at(*dims), *(at(*row) for _ in inputs[1:]))
    nest = Nest(extents=extents, inputs=patterns, output=at(*dims))
    return call.emit(Kernel(kind="scatter", operation="max", nest=nest), *inputs)


def _require_rows(call: Call, data: View, index: View, dim: int) -> None:
    pairs = enumerate(zip(data.shape, index.shape, strict=True))
    if any(size != wanted for at_dim, (size, wanted) in pairs if at_dim != dim):
        message = f"{call.name}: only whole rows of indices can be scattered"
        raise InputError(Problem(message, where="workload"))

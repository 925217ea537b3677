"""Elements read or written where tensors of indices say, and parts of tensors at fixed places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from arch.errors import InputError, Problem
from mapper.workload.nests import SPATIAL_DIMS, Nest, Window, at, per_axis
from mapper.workload.operators import AffineIndex
from mapper.workload.torch_import.aten.movement import lookup
from mapper.workload.torch_import.draft import Kernel, point_dims, pointwise
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, ViewAxis, broadcast, narrow, permute


@lowers("aten.index_select")
def lower_index_select(call: Call) -> Value:
    return _looked_up(call, call["self"], call["index"], call["dim"] % len(call["self"].axes))


@lowers("aten.index", "aten._unsafe_index")
def lower_index(call: Call) -> Value:
    """By one tensor of indices, or by several for neighbouring axes, which are then one axis."""
    given = [(axis, index) for axis, index in enumerate(call["indices"]) if index is not None]
    axis, last = given[0][0], given[-1][0]
    if last - axis >= len(given):
        message = f"{call.name}: only neighbouring axes can be indexed at once by tensors"
        raise InputError(Problem(message, where="workload"))
    table: View = call["self"]
    if len(given) == 1:
        return _looked_up(call, table, given[0][1], axis)
    joined = math.prod(table.shape[axis : last + 1])
    table = call.draft.reshape(table, (*table.shape[:axis], joined, *table.shape[last + 1 :]))
    return _looked_up(call, table, _flat(call, [index for _, index in given]), axis)


def _flat(call: Call, indices: Sequence[View]) -> View:
    """One index for several axes: a product and a sum for each further one."""
    shape = np.broadcast_shapes(*(index.shape for index in indices))
    kernel = pointwise("flat_index", "mul", shape, 2 * (len(indices) - 1), len(indices))
    inputs = [broadcast(index, shape) for index in indices]
    return call.draft.emit(f"{call.name}.position", kernel, inputs, shape, "int32")


def _only_index(call: Call) -> tuple[int, View]:
    """The axis that a tensor of indices is for, and that tensor."""
    given = [(axis, index) for axis, index in enumerate(call["indices"]) if index is not None]
    if len(given) != 1:
        message = (
            f"{call.name}: {len(given)} tensors of indices at once cannot be imported; allowed: "
            "one, or one flattened index"
        )
        raise InputError(Problem(message, where="workload"))
    return given[0]


def _looked_up(call: Call, table: View, indices: View, axis: int) -> View:
    """Slices along any axis are rows of the tensor with that axis first."""
    rank, new = len(table.axes), len(indices.axes)
    first = [axis, *(other for other in range(rank) if other != axis)]
    rows = lookup(call, permute(table, first), indices)
    # The looked up axes stand in front; they belong where the axis was.
    order = [*range(new, new + axis), *range(new), *range(new + axis, new + rank - 1)]
    return permute(rows, order)


@lowers("aten.embedding_bag", "aten._embedding_bag", "aten._embedding_bag_forward_only")
def lower_embedding_bag(call: Call) -> Value:
    """Rows are looked up, then reduced bag by bag; bags given by offsets count as equally long."""
    table, indices, offsets = call["weight"], call["indices"], call["offsets"]
    bags, (found, *_) = call.shape[0], (indices.shape[0],)
    if len(indices.axes) == 1 and found % bags:
        message = (
            f"{call.name}: {found} indices in {bags} bags are not equally many each, which cannot "
            "be imported; allowed: a multiple of the bags, or a matrix of indices"
        )
        raise InputError(Problem(message, where="workload"))
    if isinstance(offsets, View) and len(indices.axes) == 1:
        call.draft.folded.append(f"{call.name}: bags counted as equally long")
    rows = call.draft.reshape(
        lookup(call, table, indices), (bags, -(-math.prod(indices.shape) // bags), table.shape[1])
    )
    operation = ("add", "mean", "max")[call["mode"]]
    nest = Nest(
        extents=dict(zip(("B", "L", "D"), rows.shape, strict=True)),
        inputs=(at("B", "L", "D"),),
        output=at("B", "D"),
    )
    kernel = Kernel(kind=f"bag_{operation}", operation=operation, nest=nest)
    result = call.emit(kernel, rows, name=f"{call.name}.reduce")
    return (result, indices, indices, indices)


@lowers("aten.scatter_add", "aten.scatter_reduce", "aten.index_add", "aten.index_copy")
def lower_addition_at_indices(call: Call) -> Value:
    source = call.arguments.get("src", call.arguments.get("source"))
    return _written_at(call, call["index"], source, call["dim"] % len(call["self"].axes))


@lowers("aten.index_put", "aten._unsafe_index_put")
def lower_index_put(call: Call) -> Value:
    axis, indices = _only_index(call)
    return _written_at(call, indices, call["values"], axis)


def _written_at(call: Call, index: View, source: View, dim: int) -> View:
    """Each element compared with each index of its row (or of all); those that are met change."""
    data: View = call["self"]
    dims = point_dims(len(data.axes))
    row = tuple("J" if axis == dim else name for axis, name in enumerate(dims))
    is_list = len(index.axes) == 1
    extents = dict(zip(dims, data.shape, strict=True)) | {"J": index.shape[0 if is_list else dim]}
    wanted = ("J",) if is_list else row
    source = broadcast(source, tuple(extents[name] for name in row))
    if index.shape != tuple(extents[name] for name in wanted):
        message = f"{call.name}: only whole rows of indices can be scattered"
        raise InputError(Problem(message, where="workload"))
    nest = Nest(extents=extents, inputs=(at(*dims), at(*wanted), at(*row)), output=at(*dims))
    kind = call.operation.removeprefix("aten.")
    return call.emit(Kernel(kind=kind, operation="max", nest=nest), data, index, source)


@lowers("aten.masked_scatter")
def lower_masked_scatter(call: Call) -> Value:
    """Elements under the mask replaced by those of a list, in order. How many there are depends
    on data; the list counts as read to its end, or as far as there are places."""
    data, source = call["self"], call["source"]
    places, listed = math.prod(data.shape), math.prod(source.shape)
    flat = [call.draft.reshape(broadcast(call[name], data.shape), (places,)) for name in _PLACED]
    read = min(places, listed)
    row = narrow(call.draft.reshape(source, (listed,)), 0, 0, read)
    nest = Nest(extents={"D0": places}, inputs=(at("D0"),) * 3, output=at("D0"))
    kernel = Kernel(kind="masked_scatter", operation="max", nest=nest)
    result = call.draft.emit(call.name, kernel, [*flat, row], (places,), call.dtype)
    return call.draft.reshape(result, call.shape)


_PLACED = ("self", "mask")


@lowers("aten.unfold", view=True)
def lower_windows(call: Call) -> Value:
    """Windows along an axis, which may overlap: positions and elements are two axes of one."""
    data: View = call["self"]
    dim = call["dimension"] % len(data.axes)
    old = data.axes[dim]
    count = (old.size - call["size"]) // call["step"] + 1
    places = ViewAxis(count, old.axis, old.step * call["step"])
    inside = ViewAxis(call["size"], old.axis, old.step)
    axes = (*data.axes[:dim], places, *data.axes[dim + 1 :], inside)
    return View(data.storage, axes, data.origin)


@lowers("aten.im2col")
def lower_im2col(call: Call) -> Value:
    """Every window of an image as a column."""
    data: View = call["self"]
    kernel = per_axis(call["kernel_size"], 2)
    window = Window(
        kernel=kernel,
        stride=per_axis(call["stride"], 2),
        padding=per_axis(call["padding"], 2),
        dilation=per_axis(call["dilation"], 2),
    )
    outputs, kernels = SPATIAL_DIMS[2]
    sizes = [window.output_size(axis, data.shape[2 + axis]) for axis in range(2)]
    order = ("N", "C", *kernels, *outputs)
    shape = (*data.shape[:2], *kernel, *sizes)
    nest = Nest(
        extents=dict(zip(order, shape, strict=True)),
        inputs=((*at("N", "C"), window.index(0), window.index(1)),),
        output=at(*order),
    )
    columns = Kernel(kind="im2col", operation="copy", nest=nest)
    result = call.draft.emit(call.name, columns, [data], shape, call.dtype)
    return call.draft.reshape(result, call.shape)


@lowers("aten.diagonal")
def lower_diagonal(call: Call) -> Value:
    """A copy of the elements at equal positions of two axes; the diagonal is the last axis."""
    data: View = call["self"]
    rank = len(data.axes)
    first, second = call["dim1"] % rank, call["dim2"] % rank
    offset = call["offset"]
    others = [axis for axis in range(rank) if axis not in (first, second)]
    dims = {axis: f"D{number}" for number, axis in enumerate(others)}
    last = f"D{len(others)}"
    starts = {first: max(-offset, 0), second: max(offset, 0)}
    index = tuple(
        at(dims[axis])[0] if axis in dims else shifted(last, starts[axis]) for axis in range(rank)
    )
    names = (*dims.values(), last)
    nest = Nest(
        extents=dict(zip(names, call.shape, strict=True)), inputs=(index,), output=at(*names)
    )
    return call.emit(Kernel(kind="copy", operation="copy", nest=nest), data)


def shifted(dim: str, start: int) -> AffineIndex:
    return AffineIndex(((dim, 1),), start)

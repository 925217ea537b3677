"""Tensors put together from parts of others, some of them backwards: rolls, flips, paddings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from arch.errors import InputError, Problem
from mapper.workload.nests import Nest, at
from mapper.workload.operators import AffineIndex
from mapper.workload.torch_import.draft import Kernel, point_dims, pointwise
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, broadcast, fresh, join_leading, narrow


@lowers("aten.roll")
def lower_roll(call: Call) -> Value:
    """Around each axis: the tail, then the head. Without axes, of all elements in a row."""
    data: View = call["self"]
    if not call["dims"]:
        flat = _rolled(call, _flat(call, data), 0, call["shifts"][0])
        return call.draft.reshape(flat, call.shape)
    for dim, shift in zip(call["dims"], call["shifts"], strict=True):
        data = _rolled(call, data, dim % len(data.axes), shift)
    return data


def _flat(call: Call, data: View) -> View:
    joined = join_leading(data, 0)
    return call.draft.reshape(joined, (math.prod(data.shape),))


def _rolled(call: Call, data: View, dim: int, shift: int) -> View:
    size = data.shape[dim]
    split = -shift % size
    parts = [narrow(data, dim, split, size - split), narrow(data, dim, 0, split)]
    return concatenate(call, [part for part in parts if all(part.shape)], dim)


@lowers("aten.flip")
def lower_flip(call: Call) -> Value:
    """A copy that reads some axes from their ends."""
    data: View = call["self"]
    backwards = {dim % len(data.axes) for dim in call["dims"]}
    return call.emit(_backwards(data, backwards), data)


def _backwards(data: View, backwards: set[int]) -> Kernel:
    dims = point_dims(len(data.axes))
    index = tuple(
        AffineIndex(((dim, -1),), size - 1) if axis in backwards else AffineIndex(((dim, 1),))
        for axis, (dim, size) in enumerate(zip(dims, data.shape, strict=True))
    )
    nest = Nest(extents=dict(zip(dims, data.shape, strict=True)), inputs=(index,), output=at(*dims))
    return Kernel(kind="copy", operation="copy", nest=nest)


def pad_with_data(call: Call, amounts: Sequence[int], mode: str) -> View:
    """Padding with what stands inside, axis by axis; torch lists the amounts from the last one."""
    data: View = call["self"]
    for pair in range(len(amounts) // 2):
        before, after = amounts[2 * pair : 2 * pair + 2]
        data = _padded(call, data, len(call.shape) - 1 - pair, (before, after), mode)
    return data


def _padded(call: Call, data: View, dim: int, amounts: tuple[int, int], mode: str) -> View:
    before, after = amounts
    size = data.shape[dim]
    starts = {
        "reflect": (1, size - after - 1),
        "circular": (size - before, 0),
        "replicate": (0, size - 1),
    }
    if mode not in starts:
        message = f"{call.name}: padding of mode {mode!r}; allowed constant, {', '.join(starts)}"
        raise InputError(Problem(message, where="workload"))
    edges = []
    for start, count in zip(starts[mode], amounts, strict=True):
        part = narrow(data, dim, start, 1 if mode == "replicate" else count)
        shape = (*data.shape[:dim], count, *data.shape[dim + 1 :])
        edges.append(broadcast(part, shape) if mode == "replicate" else part)
    parts = [edges[0], data, edges[1]]
    backwards = (0, 2) if mode == "reflect" else ()
    there = [number for number, part in enumerate(parts) if all(part.shape)]
    turned = tuple(at_ for at_, number in enumerate(there) if number in backwards)
    return concatenate(call, [parts[number] for number in there], dim, turned)


def concatenate(call: Call, parts: Sequence[View], dim: int, backwards: Sequence[int] = ()) -> View:
    """One copy per part, each into its place of the result; some parts are read ``backwards``."""
    name = call.draft.unique(call.name)
    sizes = list(parts[0].shape)
    sizes[dim] = sum(part.shape[dim] for part in parts)
    result = fresh(call.draft.store(f"{name}.out", sizes, call.dtype, "activation"))
    start = 0
    for number, part in enumerate(parts):
        place = narrow(result, dim, start, part.shape[dim])
        kernel = pointwise("copy", "copy", part.shape, 1)
        if number in backwards:
            kernel = _backwards(part, {dim})
        call.draft.emit_into(call.draft.unique(f"{name}.part{number}"), kernel, [part], place)
        start += part.shape[dim]
    return result

"""Operators that move data: concatenation, padding, repetition, lookups, cache updates."""

from __future__ import annotations

from arch.errors import InputError, Problem
from mapper.workload.nests import Nest, at
from mapper.workload.operators import AffineIndex
from mapper.workload.torch_import.aten.contraction import row_dims
from mapper.workload.torch_import.aten.edges import concatenate, pad_with_data
from mapper.workload.torch_import.draft import Kernel, point_dims, pointwise
from mapper.workload.torch_import.folding import zeros_read_beyond_the_edge
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import (
    View,
    broadcast,
    fresh,
    insert,
    join_leading,
    narrow,
)


@lowers("aten.cat", "aten.concat", "aten.concatenate")
def lower_cat(call: Call) -> Value:
    parts = [part for part in call["tensors"] if all(part.shape)]
    return concatenate(call, parts, call["dim"] % len(call.shape))


@lowers("aten.stack")
def lower_stack(call: Call) -> Value:
    dim = call["dim"] % len(call.shape)
    return concatenate(call, [insert(part, dim) for part in call["tensors"]], dim)


@lowers("aten.constant_pad_nd", "aten.pad")
def lower_pad(call: Call) -> Value:
    """A copy that reads beyond the edge. torch lists the amounts from the last axis backwards."""
    if zeros_read_beyond_the_edge(call.node) is not None:
        view: View = call["self"]
        call.draft.folded.append(f"{call.name}: zeros read beyond the edge by what follows")
        return view
    amounts = call["pad"]
    if min(amounts) < 0:
        message = f"{call.name}: padding by negative amounts cannot be imported; allowed: slices"
        raise InputError(Problem(message, where="workload"))
    if call.arguments.get("mode", "constant") != "constant":
        return pad_with_data(call, amounts, call["mode"])
    rank = len(call.shape)
    before = [0] * rank
    for at_pair in range(len(amounts) // 2):
        before[rank - 1 - at_pair] = amounts[2 * at_pair]
    dims = point_dims(rank)
    nest = Nest(
        extents=dict(zip(dims, call.shape, strict=True)),
        inputs=(tuple(AffineIndex(((d, 1),), -b) for d, b in zip(dims, before, strict=True)),),
        output=at(*dims),
    )
    return call.emit(Kernel(kind="pad", operation="copy", nest=nest), call["self"])


@lowers("aten.repeat")
def lower_repeat(call: Call) -> Value:
    """Repeating is expanding a new axis before each old one, then joining the two."""
    view: View = call["self"]
    for _ in range(len(call["repeats"]) - len(view.axes)):
        view = insert(view, 0)
    shape = [size for pair in zip(call["repeats"], view.shape, strict=True) for size in pair]
    for axis in range(len(call["repeats"])):
        view = insert(view, 2 * axis)
    return call.draft.reshape(broadcast(view, shape), call.shape)


@lowers("aten.repeat_interleave")
def lower_repeat_interleave(call: Call) -> Value:
    dim = call["dim"] % len(call.shape)
    return call.draft.reshape(insert(call["self"], dim + 1, call["repeats"]), call.shape)


@lowers("aten.slice_scatter")
def lower_cache_update(call: Call) -> Value:
    """A part of an input overwritten in place, as caches are: only the new part moves.

    So is what was made empty to be filled part by part; of anything else a copy is changed.
    """
    cache: View = call["self"]
    is_cache = cache.storage.kind == "input" and not _is_filled(call)
    name = call.draft.unique(call.name)
    dim = call["dim"] % len(cache.axes)
    if not is_cache and not cache.storage.blank:
        return _replaced(call, cache, dim)
    cache.storage.constant = False
    size = cache.shape[dim]
    start = (call["start"] or 0) % size
    part = narrow(cache, dim, start, call["src"].shape[dim], call["step"])
    if is_cache:
        call.draft.folded.append(f"{name}: updates {cache.storage.name} in place")
    kind = "cache_update" if is_cache else "copy"
    call.draft.emit_into(name, pointwise(kind, "copy", part.shape, 1), [call["src"]], part)
    return cache


def _replaced(call: Call, data: View, dim: int) -> View:
    """What comes before the part, the part, and what comes after it, put together."""
    if call["step"] != 1:
        message = f"{call.name}: only parts without gaps can be replaced"
        raise InputError(Problem(message, where="workload"))
    size, part = data.shape[dim], call["src"]
    start = (call["start"] or 0) % size
    end = start + part.shape[dim]
    parts = [narrow(data, dim, 0, start), part, narrow(data, dim, end, size - end)]
    return concatenate(call, [each for each in parts if all(each.shape)], dim)


def _is_filled(call: Call) -> bool:
    """Whether what is updated was computed, not given to the network."""
    return bool(call.nodes["self"].op != "placeholder" and call["self"].storage.constant)


@lowers("aten.new_empty", "aten.empty_like")
def lower_empty(call: Call) -> Value:
    """Room for a result: nothing is written."""
    storage = call.draft.store(f"{call.name}.out", call.shape, call.dtype, "activation")
    storage.blank = True
    call.draft.folded.append(f"{call.name}: written by what fills it")
    return fresh(storage)


@lowers("aten.copy")
def lower_copy(call: Call) -> Value:
    """What is written over a tensor; the writing itself is that of its parent."""
    return broadcast(call["src"], call.shape)


@lowers("aten.embedding")
def lower_embedding(call: Call) -> Value:
    return lookup(call, call["weight"], call["indices"])


def lookup(call: Call, table: View, indices: View) -> View:
    """Rows of a table. Which ones depends on the data; counted as all different.

    So row ``i`` of the result stands for row ``i`` of the table, as long as there are that many:
    the traffic is that of ``min(indices, rows)`` rows.
    """
    joined = join_leading(indices, 0)
    rows = row_dims(len(joined.axes))
    columns = point_dims(len(table.axes))[1:]
    steps = [1] * len(rows)
    for level in reversed(range(len(rows) - 1)):
        steps[level] = steps[level + 1] * joined.shape[level + 1]
    row = AffineIndex(tuple(zip(rows, steps, strict=True)))
    shape = (*joined.shape, *table.shape[1:])
    nest = Nest(
        extents=dict(zip((*rows, *columns), shape, strict=True)),
        inputs=(at(*rows), (row, *at(*columns))),
        output=at(*rows, *columns),
    )
    kernel = Kernel(kind="lookup", operation="copy", nest=nest)
    result = call.draft.emit(call.name, kernel, [joined, table], shape, call.dtype)
    return call.draft.reshape(result, (*indices.shape, *table.shape[1:]))

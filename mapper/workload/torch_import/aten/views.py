"""Views: only the addresses change, no data moves."""

from __future__ import annotations

from collections.abc import Sequence

from arch.datatypes import bits_of
from mapper.workload.output_path import output_path_note
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import (
    View,
    broadcast,
    narrow,
    permute,
    reshape,
    select,
)


@lowers(
    "aten.view",
    "aten._unsafe_view",
    "aten.reshape",
    "aten.view_as",
    "aten.reshape_as",
    "aten.flatten",
    "aten.unflatten",
    "aten.squeeze",
    "aten.unsqueeze",
    view=True,
)
def lower_reshape(call: Call) -> Value:
    return call.draft.reshape(call["self"], call.shape)


@lowers(
    "aten.alias",
    "aten.clone",
    "aten.contiguous",
    "aten.detach",
    "aten.dropout",
    "aten.feature_dropout",
    "aten.lift_fresh_copy",
    view=True,
)
def lower_identity(call: Call) -> Value:
    """The same values; torch's copies and memory orders are its own affair."""
    return _source(call)


@lowers("aten.to", "aten._to_copy", "aten.type_as", view=True)
def lower_conversion(call: Call) -> Value:
    """Values are converted where they are read; what is stored stays as it was stored.

    Only an operator whose result nobody reads as it is stores the narrower format itself.
    """
    source = _source(call)
    producer = call.sole_producer("self")
    if producer is not None and bits_of(call.dtype) < bits_of(source.storage.dtype):
        note = output_path_note(f"{call.name}: converted to {call.dtype}", producer.name)
        call.draft.folded.append(note)
        source.storage.dtype = call.dtype
    elif source.storage.dtype != call.dtype:
        note = f"{call.name}: {source.storage.dtype} converted to {call.dtype} where it is read"
        call.draft.folded.append(note)
    return source


@lowers("aten.permute", view=True)
def lower_permute(call: Call) -> Value:
    return permute(call["self"], [_axis(call, dim) for dim in call["dims"]])


@lowers("aten.transpose", "aten.swapaxes", "aten.swapdims", view=True)
def lower_transpose(call: Call) -> Value:
    first, second = [_axis(call, d) for n, d in call.arguments.items() if n != "self"]
    order = list(range(len(call["self"].axes)))
    order[first], order[second] = second, first
    return permute(call["self"], order)


@lowers("aten.t", "aten.numpy_T", view=True)
def lower_reversed_axes(call: Call) -> Value:
    return permute(call["self"], range(len(call["self"].axes))[::-1])


@lowers("aten.mT", "aten.adjoint", view=True)
def lower_matrix_transpose(call: Call) -> Value:
    order = list(range(len(call["self"].axes)))
    return permute(call["self"], [*order[:-2], order[-1], order[-2]])


@lowers("aten.movedim", view=True)
def lower_movedim(call: Call) -> Value:
    sources = [_axis(call, dim) for dim in _several(call["source"])]
    targets = [_axis(call, dim) for dim in _several(call["destination"])]
    placed = dict(zip(targets, sources, strict=True))
    others = iter([axis for axis in range(len(call["self"].axes)) if axis not in sources])
    order = [placed[at] if at in placed else next(others) for at in range(len(call["self"].axes))]
    return permute(call["self"], order)


@lowers("aten.expand", "aten.expand_as", "aten.broadcast_to", view=True)
def lower_expand(call: Call) -> Value:
    return broadcast(call["self"], call.shape)


@lowers("aten.slice", view=True)
def lower_slice(call: Call) -> Value:
    dim = _axis(call, call["dim"])
    size = call["self"].shape[dim]
    start = call["start"] or 0
    first = min(max(start + size if start < 0 else start, 0), size)
    return narrow(call["self"], dim, first, call.shape[dim], call["step"])


@lowers("aten.narrow", view=True)
def lower_narrow(call: Call) -> Value:
    return narrow(call["self"], _axis(call, call["dim"]), call["start"], call["length"])


@lowers("aten.select", view=True)
def lower_select(call: Call) -> Value:
    dim = _axis(call, call["dim"])
    return select(call["self"], dim, call["index"] % call["self"].shape[dim])


@lowers("aten.unbind", view=True)
def lower_unbind(call: Call) -> Value:
    dim = _axis(call, call["dim"])
    return tuple(select(call["self"], dim, at) for at in range(call["self"].shape[dim]))


@lowers("aten.split", "aten.split_with_sizes", "aten.chunk", "aten.tensor_split", view=True)
def lower_split(call: Call) -> Value:
    """Consecutive parts, of the sizes that torch found."""
    dim = _axis(call, call["dim"])
    parts: list[View] = []
    start = 0
    for part in call.node.meta["val"]:
        parts.append(narrow(call["self"], dim, start, part.shape[dim]))
        start += part.shape[dim]
    return tuple(parts)


@lowers("aten.pixel_shuffle", view=True)
def lower_pixel_shuffle(call: Call) -> Value:
    """``[C*r*r, H, W]`` as ``[C, H*r, W*r]``."""
    *batch, channels, height, width = call["self"].shape
    factor = call["upscale_factor"]
    split = (*batch, channels // factor**2, factor, factor, height, width)
    return _interleave(call, split, (0, 3, 1, 4, 2))


@lowers("aten.pixel_unshuffle", view=True)
def lower_pixel_unshuffle(call: Call) -> Value:
    """``[C, H*r, W*r]`` as ``[C*r*r, H, W]``."""
    *batch, channels, height, width = call["self"].shape
    factor = call["downscale_factor"]
    split = (*batch, channels, height // factor, factor, width // factor, factor)
    return _interleave(call, split, (0, 2, 4, 1, 3))


@lowers("aten.channel_shuffle", "aten.native_channel_shuffle", view=True)
def lower_channel_shuffle(call: Call) -> Value:
    batch, channels, *size = call["self"].shape
    split = (batch, call["groups"], channels // call["groups"], *size)
    order = (0, 2, 1, *range(3, len(split)))
    return call.draft.reshape(permute(_split(call["self"], split), order), call.shape)


def _interleave(call: Call, split: Sequence[int], order: Sequence[int]) -> View:
    batch = len(split) - len(order)
    moved = (*range(batch), *(batch + axis for axis in order))
    return call.draft.reshape(permute(_split(call["self"], split), moved), call.shape)


def _split(view: View, shape: Sequence[int]) -> View:
    """Axes split only, which is always possible in place."""
    split = reshape(view, shape)
    assert split is not None
    return split


def _source(call: Call) -> View:
    view: View = next(value for value in call.arguments.values() if isinstance(value, View))
    return view


def _axis(call: Call, dim: int) -> int:
    return dim % len(call["self"].axes)


def _several(value: int | Sequence[int]) -> Sequence[int]:
    return value if isinstance(value, Sequence) else (value,)

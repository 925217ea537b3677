"""What moves data: padding, concatenation, resizing, look-ups."""

from __future__ import annotations

from collections.abc import Sequence

from mapper.workload.nests import Nest, at
from mapper.workload.operators import AffineIndex
from mapper.workload.tflite_import.importing import Call, Padded, as_seen, as_stored, imports
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.storage import View, broadcast, insert, narrow


@imports("PAD", "PADV2")
def pad(call: Call) -> Sequence[View | Padded]:
    """Zeros around an image wait for who reads them: convolutions read beyond the edge."""
    amounts = call.constants(1)
    before = amounts[::2]
    value = Padded(name=call.name, source=call.view(0), before=before, shape=call.target().shape)
    image = len(before) == 4 and not any(amounts[0:2]) and not any(amounts[6:8])
    if image and _pads_with_zero(call):
        return [value]
    return [call.into.padded(value)]


def _pads_with_zero(call: Call) -> bool:
    if not call.has(2):
        return True
    tensor = call.tensor(2)
    return tensor.values == (call.tensor(0).zero_point,)


@imports("MIRROR_PAD")
def mirror_pad(call: Call) -> Sequence[View]:
    """Counted as a padding; which neighbour is repeated does not matter to its cost."""
    value = Padded(
        name=call.name,
        source=call.view(0),
        before=call.constants(1)[::2],
        shape=call.target().shape,
    )
    return [call.into.padded(value)]


@imports("CONCATENATION")
def concatenation(call: Call) -> Sequence[View]:
    parts = [call.view(i) for i in range(len(call.operator.inputs))]
    return [_joined(call, parts, call.option("Axis"))]


@imports("PACK")
def pack(call: Call) -> Sequence[View]:
    axis = call.option("Axis") % len(call.target().shape)
    parts = [insert(call.view(i), axis) for i in range(len(call.operator.inputs))]
    return [_joined(call, parts, axis)]


def _joined(call: Call, parts: Sequence[View], axis: int) -> View:
    """One copy per part, each into its place of the result."""
    target = call.target()
    axis %= len(target.shape)
    result = call.into.store(f"{call.name}.out", target.shape, target.dtype, "activation")
    start = 0
    for number, part in enumerate(parts):
        place = narrow(result, axis, start, part.shape[axis])
        call.copy_into(f"part{number}", part, place)
        start += part.shape[axis]
    return result


@imports("BROADCAST_TO")
def broadcast_to(call: Call) -> Sequence[View]:
    return [broadcast(call.view(0), call.target().shape)]


@imports("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(call: Call) -> Sequence[View]:
    """By whole factors: every position is written as often as it is repeated."""
    return [_resized(call, "resize_nearest", "copy", taps=1)]


@imports("RESIZE_BILINEAR")
def resize_bilinear(call: Call) -> Sequence[View]:
    """By whole factors: a weighted sum of two neighbours along each axis."""
    return [_resized(call, "resize_bilinear", "mean", taps=2)]


def _resized(call: Call, kind: str, operation: str, taps: int) -> View:
    """``P`` and ``Q`` run over the input, ``Y`` and ``X`` between two of its positions."""
    data = as_stored(call.view(0))
    height, width = (
        _factor(call, large, small)
        for large, small in zip(call.target().shape[1:3], data.shape[2:], strict=True)
    )
    sizes = dict(zip(("N", "C", "P", "Q"), data.shape, strict=True))
    neighbours = {"R": taps, "S": taps} if taps > 1 else {}
    extents = sizes | {"Y": height, "X": width} | neighbours
    extra = (("R", 1),) if neighbours else (), (("S", 1),) if neighbours else ()
    rows, columns = (AffineIndex(((d, 1), *e)) for d, e in zip("PQ", extra, strict=True))
    places = (AffineIndex((("P", height), ("Y", 1))), AffineIndex((("Q", width), ("X", 1))))
    nest = Nest(
        extents=extents,
        inputs=((*at("N", "C"), rows, columns),),
        output=(*at("N", "C"), *places),
    )
    kernel = Kernel(kind=kind, operation=operation, nest=nest, ops_per_point=min(taps, 2))
    stored = (*data.shape[:2], data.shape[2] * height, data.shape[3] * width)
    return as_seen(call.emit(kernel, [data], stored))


def _factor(call: Call, large: int, small: int) -> int:
    if large % small:
        raise call.error(f"a resize from {small} to {large} is not by a whole factor")
    return large // small


@imports("GATHER", "EMBEDDING_LOOKUP")
def gather(call: Call) -> Sequence[View]:
    """A copy of as many entries as are looked up, from the table's first ones."""
    table, numbers = (1, 0) if call.operator.kind == "EMBEDDING_LOOKUP" else (0, 1)
    data, count = call.view(table), call.tensor(numbers).elements
    axis = call.option("Axis") % len(data.axes)
    if count > data.shape[axis]:
        raise call.error("a look-up of more entries than there are cannot be imported")
    found = call.into.copy(call.name, narrow(data, axis, 0, count))
    return [call.draft.reshape(found, call.target().shape)]

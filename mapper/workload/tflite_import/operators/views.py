"""What only rearranges indices: reshapes, slices, transpositions."""

from __future__ import annotations

from collections.abc import Sequence

from mapper.workload.tflite_import.importing import Call, Reshaped, imports
from mapper.workload.torch_import.storage import View, narrow, permute, select


@imports("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(call: Call) -> Sequence[Reshaped]:
    """Done where the result is read; one of a reshape reads its source."""
    value = call.value(0)
    source = value.source if isinstance(value, Reshaped) else call.view(0)
    return [Reshaped(name=call.name, source=source, shape=call.target().shape)]


@imports("TRANSPOSE")
def transpose(call: Call) -> Sequence[View]:
    call.note("read in place in another order")
    return [permute(call.view(0), call.constants(1))]


@imports("SPLIT")
def split(call: Call) -> Sequence[View]:
    """The axis comes first, then the data."""
    return _parts(call, call.view(1), call.constants(0)[0])


@imports("SPLIT_V")
def split_in_sizes(call: Call) -> Sequence[View]:
    return _parts(call, call.view(0), call.constants(2)[0])


def _parts(call: Call, data: View, axis: int) -> Sequence[View]:
    axis %= len(data.axes)
    call.note("parts read in place")
    start, found = 0, []
    for number in range(len(call.operator.outputs)):
        size = call.target(number).shape[axis]
        found.append(narrow(data, axis, start, size))
        start += size
    return found


@imports("UNPACK")
def unpack(call: Call) -> Sequence[View]:
    data = call.view(0)
    axis = call.option("Axis") % len(data.axes)
    call.note("parts read in place")
    return [select(data, axis, number) for number in range(len(call.operator.outputs))]


@imports("SLICE")
def slice_(call: Call) -> Sequence[View]:
    data = call.view(0)
    for axis, start in enumerate(call.constants(1)):
        data = narrow(data, axis, start, call.target().shape[axis])
    call.note("part read in place")
    return [data]


@imports("STRIDED_SLICE")
def strided_slice(call: Call) -> Sequence[View]:
    """Bits of the masks: begin or end left open, an axis of one position that disappears."""
    if call.option("EllipsisMask") or call.option("NewAxisMask"):
        raise call.error("a slice with an ellipsis or a new axis cannot be imported")
    data = call.view(0)
    begins, ends, steps = (call.constants(i) for i in (1, 2, 3))
    dropped = []
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        size = data.shape[axis]
        if call.option("ShrinkAxisMask") >> axis & 1:
            dropped.append(axis)
            data = narrow(data, axis, begin % size, 1)
            continue
        start = None if call.option("BeginMask") >> axis & 1 else begin
        stop = None if call.option("EndMask") >> axis & 1 else end
        positions = range(size)[slice(start, stop, step)]
        data = narrow(data, axis, positions.start, len(positions), step)
    for axis in reversed(dropped):
        data = select(data, axis, 0)
    call.note("part read in place")
    return [data]


@imports("SPACE_TO_DEPTH")
def space_to_depth(call: Call) -> Sequence[View]:
    data, block = call.view(0), call.option("BlockSize")
    batch, height, width, channels = data.shape
    split = (batch, height // block, block, width // block, block, channels)
    moved = permute(call.draft.reshape(data, split), (0, 1, 3, 2, 4, 5))
    return [call.draft.reshape(moved, call.target().shape)]


@imports("DEPTH_TO_SPACE")
def depth_to_space(call: Call) -> Sequence[View]:
    data, block = call.view(0), call.option("BlockSize")
    batch, height, width, channels = data.shape
    split = (batch, height, width, block, block, channels // block**2)
    moved = permute(call.draft.reshape(data, split), (0, 1, 3, 2, 4, 5))
    return [call.draft.reshape(moved, call.target().shape)]

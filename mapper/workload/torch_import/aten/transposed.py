"""Transposed convolutions, phase by phase (see ``mapper.workload.transposed``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from mapper.workload.nests import per_axis
from mapper.workload.torch_import.draft import Draft, Kernel, pointwise
from mapper.workload.torch_import.folding import note_bias
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, broadcast, fresh, narrow
from mapper.workload.transposed import (
    Phase,
    TransposedAxis,
    TransposedShape,
    phase_nest,
    phases,
)


@lowers("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")
def lower_transposed_convolution(call: Call) -> Value:
    data, weight = call["input"], call["weight"]
    rank = len(weight.shape) - 2
    stride = per_axis(call["stride"], rank)
    padding, dilation = per_axis(call["padding"], rank), per_axis(call["dilation"], rank)
    note_bias(call, call["bias"])
    name = call.draft.unique(call.name)
    note = f"{weight.storage.name}: stored mirrored, as {name} reads it"
    call.draft.folded.append(note)
    output = fresh(call.draft.store(f"{name}.out", call.shape, call.dtype, "activation"))
    axes = [
        phases(TransposedAxis(kernel=k, stride=s, padding=p, dilation=d), size)
        for k, s, p, d, size in zip(
            weight.shape[2:], stride, padding, dilation, call.shape[2:], strict=True
        )
    ]
    shape = TransposedShape(
        batch=call.shape[0],
        in_channels=weight.shape[0],
        out_channels=weight.shape[1] * call["groups"],
        kernel=tuple(weight.shape[2:]),
        groups=call["groups"],
    )
    for number, phase in enumerate(product(*axes)):
        place = _interleaved(output, phase, stride)
        phase_name = call.draft.unique(f"{name}.phase{number}")
        if not all(axis.taps for axis in phase):
            write_zeros(call.draft, phase_name, place)
            continue
        nest = phase_nest(shape, phase)
        kernel = Kernel(kind=f"conv_transpose{rank}d", operation="mac", nest=nest)
        call.draft.emit_into(phase_name, kernel, [data, weight], place)
    return output


def _interleaved(output: View, phase: Sequence[Phase], stride: Sequence[int]) -> View:
    for axis, (part, step) in enumerate(zip(phase, stride, strict=True), start=2):
        output = narrow(output, axis, part.first, part.outputs, step)
    return output


def write_zeros(draft: Draft, name: str, place: View) -> None:
    """What meets no element of the kernel is zero (and the bias), and has to be written."""
    zero = draft.store(f"{name}.zero", (1,), place.storage.dtype, "input")
    zero.constant = True
    draft.folded.append(f"{name}: outputs that meet no element of the kernel")
    kernel = pointwise("fill", "copy", place.shape, 1)
    draft.emit_into(name, kernel, [broadcast(fresh(zero), place.shape)], place)

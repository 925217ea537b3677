"""Transposed convolutions, phase by phase (see ``mapper.workload.transposed``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from arch.errors import InputError, Problem
from mapper.workload.nests import per_axis
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.folding import note_bias
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, fresh, narrow
from mapper.workload.transposed import Phase, TransposedShape, phase_nest, phases


@lowers("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")
def lower_transposed_convolution(call: Call) -> Value:
    data, weight = call["input"], call["weight"]
    rank = len(weight.shape) - 2
    if any(step != 1 for step in per_axis(call["dilation"], rank)):
        message = f"{call.name}: a transposed convolution with dilation cannot be imported"
        raise InputError(Problem(message, where="workload"))
    stride, padding = per_axis(call["stride"], rank), per_axis(call["padding"], rank)
    note_bias(call, call["bias"])
    name = call.draft.unique(call.name)
    note = f"{weight.storage.name}: stored mirrored, as {name} reads it"
    call.draft.folded.append(note)
    output = fresh(call.draft.store(f"{name}.out", call.shape, call.dtype, "activation"))
    axes = [
        phases(kernel, step, before, size)
        for kernel, step, before, size in zip(
            weight.shape[2:], stride, padding, call.shape[2:], strict=True
        )
    ]
    shape = TransposedShape(
        batch=call.shape[0],
        in_channels=weight.shape[0],
        out_channels=weight.shape[1] * call["groups"],
        kernel=tuple(weight.shape[2:]),
        stride=stride,
        groups=call["groups"],
    )
    for number, phase in enumerate(product(*axes)):
        nest = phase_nest(shape, phase)
        place = _interleaved(output, phase, stride)
        kernel = Kernel(kind=f"conv_transpose{rank}d", operation="mac", nest=nest)
        phase_name = call.draft.unique(f"{name}.phase{number}")
        call.draft.emit_into(phase_name, kernel, [data, weight], place)
    return output


def _interleaved(output: View, phase: Sequence[Phase], stride: Sequence[int]) -> View:
    for axis, (part, step) in enumerate(zip(phase, stride, strict=True), start=2):
        output = narrow(output, axis, part.first, part.outputs, step)
    return output

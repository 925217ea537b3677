"""Transposed convolutions, as the ordinary convolutions that they are made of.

With stride ``s`` every ``s``-th output along an axis meets the same kernel elements, so the
output falls into ``s`` interleaved phases per axis, each of them a convolution of the input
with every ``s``-th element of the kernel. No zeros are inserted or multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from arch.errors import InputError, Problem
from mapper.workload.nests import SPATIAL_DIMS, Nest, at, grouped, per_axis
from mapper.workload.operators import AffineIndex
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.folding import note_bias
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, fresh, narrow


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase along one axis: outputs ``first + stride * p``, ``taps`` kernel elements.

    Output ``p`` meets tap ``t`` at input ``p + t + shift``; the taps are elements
    ``last - stride * t`` of the kernel.
    """

    first: int
    outputs: int
    taps: int
    shift: int
    last: int


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
    for number, phase in enumerate(product(*axes)):
        nest = _nest(call, phase, stride)
        place = _interleaved(output, phase, stride)
        kernel = Kernel(kind=f"conv_transpose{rank}d", operation="mac", nest=nest)
        phase_name = call.draft.unique(f"{name}.phase{number}")
        call.draft.emit_into(phase_name, kernel, [data, weight], place)
    return output


def phases(kernel: int, stride: int, padding: int, outputs: int) -> list[Phase]:
    """The phases of one axis. Output ``o`` meets element ``r`` at input ``(o + pad - r) / s``."""
    found = []
    for first in range(min(stride, outputs)):
        lowest = (first + padding) % stride
        taps = len(range(lowest, kernel, stride))
        if taps == 0:
            message = f"a kernel of {kernel} with stride {stride} leaves outputs untouched"
            raise InputError(Problem(message, where="workload: transposed convolution"))
        last = lowest + (taps - 1) * stride
        found.append(
            Phase(
                first=first,
                outputs=len(range(first, outputs, stride)),
                taps=taps,
                shift=(first + padding - last) // stride,
                last=last,
            )
        )
    return found


def _nest(call: Call, phase: Sequence[Phase], stride: Sequence[int]) -> Nest:
    """A convolution over the phase; torch stores the weight ``[C, K / groups, R, S]``."""
    groups = call["groups"]
    channels, filters, *kernel = call["weight"].shape
    channels //= groups
    outputs, taps = SPATIAL_DIMS[len(phase)]
    extents = {"N": call.shape[0], "G": groups, "K": filters, "C": channels}
    if groups == 1:
        del extents["G"]
    extents |= {dim: axis.outputs for dim, axis in zip(outputs, phase, strict=True)}
    extents |= {dim: axis.taps for dim, axis in zip(taps, phase, strict=True)}
    windows = (
        AffineIndex(((o, 1), (t, 1)), axis.shift)
        for o, t, axis in zip(outputs, taps, phase, strict=True)
    )
    # Mirrored, element ``last - s * t`` lies at ``size - 1 - last + s * t``.
    elements = (
        AffineIndex(((t, step),), size - 1 - axis.last)
        for t, step, size, axis in zip(taps, stride, kernel, phase, strict=True)
    )
    in_channel, out_channel = grouped("C", channels, groups), grouped("K", filters, groups)
    return Nest(
        extents=extents,
        inputs=((*at("N"), in_channel, *windows), (in_channel, *at("K"), *elements)),
        output=(*at("N"), out_channel, *at(*outputs)),
    )


def _interleaved(output: View, phase: Sequence[Phase], stride: Sequence[int]) -> View:
    for axis, (part, step) in enumerate(zip(phase, stride, strict=True), start=2):
        output = narrow(output, axis, part.first, part.outputs, step)
    return output

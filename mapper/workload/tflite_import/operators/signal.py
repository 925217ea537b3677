"""TensorFlow Lite Micro's own operators of audio front ends (its folder ``signal``)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mapper.workload.nests import Nest, at
from mapper.workload.operators import AffineIndex
from mapper.workload.tflite_import.importing import Call, imports
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.storage import View

#: Scalar operations of an element, counted from the kernels' inner loops.
_POINTWISE = {
    "SignalFilterBankSquareRoot": 20,  # an integer square root, bit by bit
    "SignalFilterBankSpectralSubtraction": 6,
    "SignalPCAN": 12,  # a look-up with quadratic interpolation, shifts and a division
    "SignalFilterBankLog": 10,
}


@imports(*_POINTWISE)
def pointwise(call: Call) -> Sequence[View]:
    """A second result is made beside the first."""
    kind = call.operator.kind
    found = [call.pointwise(kind.lower(), "activation", _POINTWISE[kind], call.view(0))]
    for position in range(1, len(call.operator.outputs)):
        found.append(call.pointwise("copy", "copy", 1, call.view(0), output=position))
    return found


@imports("SignalWindow")
def window(call: Call) -> Sequence[View]:
    """A product with the window and a shift."""
    return [call.pointwise("window", "mul", 2, call.view(0), call.view(1))]


@imports("SignalFftAutoScale")
def auto_scale(call: Call) -> Sequence[View]:
    """Shifted by what the largest value leaves, which is the second result."""
    data = call.view(0)
    scaled = call.pointwise("fft_auto_scale", "mul", 2, data)
    length = data.shape[-1]
    nest = Nest(extents={"K": length}, inputs=(_last(data, "K"),), output=(AffineIndex(()),))
    kernel = Kernel(kind="max", operation="max", nest=nest)
    largest = call.draft.emit(f"{call.name}.scale", kernel, [data], (1,), call.target(1).dtype)
    return [scaled, call.draft.reshape(largest, call.target(1).shape)]


@imports("SignalRfft")
def rfft(call: Call) -> Sequence[View]:
    """Butterflies: 5/2 n log2 n for the real transform of n values."""
    length = call.operator.options["fft_length"]
    outputs = call.target().shape[-1]
    ops = math.ceil(2.5 * length * math.log2(length) / outputs)
    return [_spread(call, "rfft", ops, {"N": outputs}, AffineIndex((("N", 1),)))]


@imports("SignalEnergy")
def energy(call: Call) -> Sequence[View]:
    """Squares of the real and imaginary parts."""
    outputs = call.target().shape[-1]
    reading = AffineIndex((("N", 2), ("R", 1)))
    return [_spread(call, "energy", 2, {"N": outputs, "R": 2}, reading)]


@imports("SignalFilterBank")
def filter_bank(call: Call) -> Sequence[View]:
    """Every channel adds up its part of the spectrum, weighted twice (for its neighbour too)."""
    outputs, spectrum = call.target().shape[-1], call.tensor(0).shape[-1]
    each = -(-spectrum // outputs)
    reading = AffineIndex((("N", each), ("R", 1)))
    return [_spread(call, "filter_bank", 4, {"N": outputs, "R": each}, reading)]


def _spread(call: Call, kind: str, ops: int, extents: dict[str, int], reading: AffineIndex) -> View:
    """Over the last axis; the other axes have one position."""
    data = call.view(0)
    target = call.target()
    result = call.into.store(f"{call.name}.out", target.shape, target.dtype, "activation")
    empty = (AffineIndex(()),) * (len(data.axes) - 1)
    nest = Nest(
        extents=extents,
        inputs=((*empty, reading),),
        output=((AffineIndex(()),) * (len(target.shape) - 1) + at("N")),
    )
    kernel = Kernel(kind=kind, operation="add", nest=nest, ops_per_point=ops)
    call.draft.emit_into(call.draft.unique(call.name), kernel, [data], result)
    return result


def _last(data: View, dim: str) -> tuple[AffineIndex, ...]:
    return (AffineIndex(()),) * (len(data.axes) - 1) + at(dim)

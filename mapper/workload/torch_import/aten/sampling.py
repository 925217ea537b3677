"""Elements at places that data says, columns put back into images, pools undone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from arch.errors import InputError, Problem
from mapper.workload.nests import SPATIAL_DIMS, Index, Nest, at, per_axis
from mapper.workload.operators import AffineIndex
from mapper.workload.torch_import.aten.transposed import write_zeros
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, fresh, narrow
from mapper.workload.transposed import Phase, TransposedAxis, phases

#: ``interpolation_mode`` of torch: neighbours along each axis.
_NEIGHBOURS = {0: 2, 1: 1, 2: 4}


@lowers("aten.grid_sampler", "aten.grid_sampler_2d", "aten.grid_sampler_3d")
def lower_grid_sample(call: Call) -> Value:
    """Weighted sums of the neighbours of places that a grid says. Where they lie depends on the
    data; counted as all different, as with lookups: as many elements as there are, at most all.

    The weights are computed from the grid for all channels at once: along each axis a scale, a
    shift, a floor and a difference, and one product for each neighbour.
    """
    data, grid = call["input"], call["grid"]
    rank = len(data.shape) - 2
    taps = _NEIGHBOURS[call["interpolation_mode"]] ** rank
    places = grid.shape[1:-1]
    weights = _weights(call, grid, taps)
    flat = call.draft.reshape(data, (*data.shape[:2], math.prod(data.shape[2:])))
    outputs, _ = SPATIAL_DIMS[rank]
    extents = dict(zip(("N", "C", *outputs), call.shape, strict=True)) | {"T": taps}
    steps = [taps * math.prod(places[axis + 1 :]) for axis in range(rank)]
    read = AffineIndex((*zip(outputs, steps, strict=True), ("T", 1)))
    nest = Nest(
        extents=extents,
        inputs=((*at("N", "C"), read), at("N", *outputs, "T")),
        output=at("N", "C", *outputs),
    )
    kernel = Kernel(kind="grid_sample", operation="mean", nest=nest, ops_per_point=2)
    return call.emit(kernel, flat, weights)


#: For a coordinate: scale and shift into the image, floor, difference.
_PLACE_OPS = 4


def _weights(call: Call, grid: View, taps: int) -> View:
    rank = grid.shape[-1]
    outputs, _ = SPATIAL_DIMS[rank]
    extents = dict(zip(("N", *outputs, "D"), grid.shape, strict=True)) | {"T": taps}
    nest = Nest(extents=extents, inputs=(at("N", *outputs, "D"),), output=at("N", *outputs, "T"))
    kernel = Kernel(kind="grid_weights", operation="mul", nest=nest, ops_per_point=_PLACE_OPS)
    shape = (*grid.shape[:-1], taps)
    return call.draft.emit(f"{call.name}.weights", kernel, [grid], shape, call.dtype)


@lowers("aten.col2im")
def lower_col2im(call: Call) -> Value:
    """Every pixel is the sum of the columns' elements that belong to it, phase by phase as with a
    transposed convolution."""
    kernel, padding = per_axis(call["kernel_size"], 2), per_axis(call["padding"], 2)
    stride, dilation = per_axis(call["stride"], 2), per_axis(call["dilation"], 2)
    *batch, channels, height, width = call.shape
    blocks = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, p, s, d in zip((height, width), kernel, padding, stride, dilation, strict=True)
    ]
    columns = call.draft.reshape(call["self"], (*batch, channels, *kernel, *blocks))
    name = call.draft.unique(call.name)
    image = fresh(call.draft.store(f"{name}.out", call.shape, call.dtype, "activation"))
    axes = [
        phases(TransposedAxis(kernel=k, stride=s, padding=p, dilation=d), size)
        for k, s, p, d, size in zip(kernel, stride, padding, dilation, (height, width), strict=True)
    ]
    for number, chosen in enumerate(product(*axes)):
        part = call.draft.unique(f"{name}.phase{number}")
        if all(phase.taps for phase in chosen):
            nest = _gathered(tuple(batch), channels, chosen, stride)
            call.draft.emit_into(
                part, Kernel(kind="col2im", operation="add", nest=nest), [columns], image
            )
        else:
            write_zeros(call.draft, part, _place(image, chosen, stride))
    return image


def _place(image: View, chosen: Sequence[Phase], stride: Sequence[int]) -> View:
    from_last = len(image.axes) - len(chosen)
    for axis, (phase, step) in enumerate(zip(chosen, stride, strict=True), start=from_last):
        image = narrow(image, axis, phase.first, phase.outputs, step)
    return image


def _gathered(
    batch: tuple[int, ...], channels: int, chosen: Sequence[Phase], stride: Sequence[int]
) -> Nest:
    outputs, kernels = SPATIAL_DIMS[2]
    leading = ("N", "C")[1 - len(batch) :]
    extents = dict(zip(leading, (*batch, channels), strict=True))
    extents |= {o: phase.outputs for o, phase in zip(outputs, chosen, strict=True)}
    extents |= {t: phase.taps for t, phase in zip(kernels, chosen, strict=True)}
    elements: Index = tuple(
        AffineIndex(((t, -phase.step),), phase.last)
        for t, phase in zip(kernels, chosen, strict=True)
    )
    blocks: Index = tuple(
        AffineIndex(((o, 1), (t, phase.reach)), phase.shift)
        for o, t, phase in zip(outputs, kernels, chosen, strict=True)
    )
    pixels: Index = tuple(
        AffineIndex(((o, step),), phase.first)
        for o, step, phase in zip(outputs, stride, chosen, strict=True)
    )
    return Nest(
        extents=extents,
        inputs=((*at(*leading), *elements, *blocks),),
        output=(*at(*leading), *pixels),
    )


@lowers("aten.max_unpool2d", "aten.max_unpool3d")
def lower_max_unpool(call: Call) -> Value:
    """Every element of the result compares its place with the one that its window's largest had;
    windows beside each other, as pools have them that can be undone."""
    data: View = call["self"]
    rank = int(call.operation[-2])
    small, large = data.shape[-rank:], call.shape[-rank:]
    if any(big % little for big, little in zip(large, small, strict=True)):
        message = (
            f"{call.name}: windows of {small} in {large} are not equally large, which cannot be "
            "imported; allowed: a multiple along every axis"
        )
        raise InputError(Problem(message, where="workload"))
    factors = [big // little for big, little in zip(large, small, strict=True)]
    outputs, kernels = SPATIAL_DIMS[rank]
    leading = ("N", "C")[2 - (len(call.shape) - rank) :]
    extents = dict(zip((*leading, *outputs), data.shape, strict=True))
    extents |= dict(zip(kernels, factors, strict=True))
    places = tuple(
        AffineIndex(((o, factor), (k, 1)))
        for o, k, factor in zip(outputs, kernels, factors, strict=True)
    )
    read = at(*leading, *outputs)
    nest = Nest(extents=extents, inputs=(read, read), output=(*at(*leading), *places))
    return call.emit(Kernel(kind="max_unpool", operation="max", nest=nest), data, call["indices"])

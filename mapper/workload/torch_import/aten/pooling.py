"""Pooling and reductions over axes."""

from __future__ import annotations

from mapper.workload.nests import SPATIAL_DIMS, Nest, Window, at
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.registry import Call, Value, lowers


@lowers("aten.max_pool2d")
def lower_max_pool(call: Call) -> Value:
    window = Window(
        kernel=tuple(call["kernel_size"]) * (2 // len(call["kernel_size"])),
        stride=tuple(call["stride"]) * (2 // len(call["stride"])),
        padding=tuple(call["padding"]) * (2 // len(call["padding"])),
        dilation=tuple(call["dilation"]) * (2 // len(call["dilation"])),
    )
    outputs, kernels = SPATIAL_DIMS[2]
    n, c, *size = call.shape
    extents = {"N": n, "C": c, **dict(zip(outputs, size)), **dict(zip(kernels, window.kernel))}
    nest = Nest(
        extents=extents,
        inputs=((*at("N", "C"), window.index(0), window.index(1)),),
        output=at("N", "C", *outputs),
    )
    return call.emit(Kernel(kind="max_pool2d", operation="max", nest=nest), call["self"])


@lowers("aten.adaptive_avg_pool2d")
def lower_pool(call: Call) -> Value:
    n, c, h, w = call["self"].shape
    nest = Nest(
        extents={"N": n, "C": c, "R": h, "S": w},
        inputs=(at("N", "C", "R", "S"),),
        output=(*at("N", "C"),),
    )
    view = call.draft.emit(
        call.name,
        Kernel(kind="avg_pool2d", operation="mean", nest=nest),
        [call["self"]],
        (n, c),
        call.dtype,
    )
    return call.draft.reshape(view, call.shape)

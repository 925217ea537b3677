"""Images read at places that data says, put back from columns or pools; responses of neighbours."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from mapper.workload.onnx_import.values import NodeCall, onnx_operator

_MODES = {"linear": "bilinear", "cubic": "bicubic"}


@onnx_operator("GridSample")
def run_grid_sample(call: NodeCall) -> Any:
    mode = call.attribute("mode", b"linear").decode()
    return functional.grid_sample(
        call.tensor(0),
        call.tensor(1),
        mode=_MODES.get(mode, mode),
        padding_mode=call.attribute("padding_mode", b"zeros").decode(),
        align_corners=bool(call.attribute("align_corners", 0)),
    )


@onnx_operator("Col2Im")
def run_col2im(call: NodeCall) -> Any:
    pads = call.attribute("pads", [0, 0, 0, 0])
    half = len(pads) // 2
    if pads[:half] != pads[half:]:
        raise call.error(f"pads {pads} differ before and after; allowed: the same on both sides")
    return functional.fold(
        call.tensor(0),
        tuple(call.integers(1) or ()),
        tuple(call.integers(2) or ()),
        dilation=call.attribute("dilations", [1] * half),
        padding=pads[:half],
        stride=call.attribute("strides", [1] * half),
    )


@onnx_operator("MaxUnpool")
def run_max_unpool(call: NodeCall) -> Any:
    """Windows beside each other; ``output_shape`` only moves what is left over."""
    kernel = call.attributes["kernel_shape"]
    strides = call.attribute("strides", [1] * len(kernel))
    if strides != kernel:
        raise call.error(f"strides {strides} are not the windows {kernel}")
    unpool = functional.max_unpool2d if len(kernel) == 2 else functional.max_unpool3d
    return unpool(call.tensor(0), call.tensor(1), kernel)


@onnx_operator("LRN")
def run_local_response(call: NodeCall) -> Any:
    return functional.local_response_norm(
        call.tensor(0),
        call.attributes["size"],
        alpha=call.attribute("alpha", 0.0001),
        beta=call.attribute("beta", 0.75),
        k=call.attribute("bias", 1.0),
    )


@onnx_operator("Trilu")
def run_triangle(call: NodeCall) -> Any:
    diagonal = int(call.known(1).reshape(-1)[0]) if call.has(1) else 0
    triangle = torch.triu if call.attribute("upper", 1) else torch.tril
    return triangle(call.tensor(0), diagonal)

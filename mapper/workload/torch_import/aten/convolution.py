"""Convolutions over 1, 2 or 3 spatial axes, with stride, padding, dilation and groups."""

from __future__ import annotations

from typing import Any

from arch.errors import InputError, Problem
from mapper.workload.nests import ConvolutionShape, Window, convolution, per_axis
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.folding import note_bias, zeros_read_beyond_the_edge
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View


@lowers("aten.conv1d", "aten.conv2d", "aten.conv3d")
def lower_convolution(call: Call) -> Value:
    data, weight = call["input"], call["weight"]
    rank = len(weight.shape) - 2
    if len(data.shape) == rank + 1:
        message = f"{call.name}: the input of a convolution needs a batch axis"
        raise InputError(Problem(message, where="workload"))
    window = _window(call, weight)
    shape = ConvolutionShape(
        batch=data.shape[0],
        in_channels=data.shape[1],
        out_channels=weight.shape[0],
        output_size=call.shape[2:],
        window=window,
        groups=call["groups"],
    )
    note_bias(call, call["bias"])
    kernel = Kernel(kind=f"conv{rank}d", operation="mac", nest=convolution(shape))
    return call.emit(kernel, data, weight)


def _window(call: Call, weight: View) -> Window:
    kernel = weight.shape[2:]
    dilation = per_axis(call["dilation"], len(kernel))
    own = _padding(call["padding"], kernel, dilation)
    earlier = zeros_read_beyond_the_edge(call.nodes["input"]) or [0] * len(kernel)
    return Window(
        kernel=kernel,
        stride=per_axis(call["stride"], len(kernel)),
        padding=tuple(sum(pair) for pair in zip(own, earlier, strict=True)),
        dilation=dilation,
    )


def _padding(given: Any, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    """Zeros before the first element; ``same`` puts the odd one at the end, as torch does."""
    if given == "valid":
        return (0,) * len(kernel)
    if given == "same":
        return tuple(d * (k - 1) // 2 for d, k in zip(dilation, kernel, strict=True))
    return per_axis(given, len(kernel))

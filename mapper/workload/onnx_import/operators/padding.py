"""Padding of windows, in ONNX's several ways of stating it, and pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from mapper.workload.onnx_import.values import NodeCall, onnx_operator

#: Zeros before and after each spatial axis.
Padding = tuple[list[int], list[int]]

_MAX_POOLS = {1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d}
_MEAN_POOLS = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}
_GLOBAL_MEANS: dict[int, Callable[[torch.Tensor, int], torch.Tensor]] = {
    1: functional.adaptive_avg_pool1d,
    2: functional.adaptive_avg_pool2d,
    3: functional.adaptive_avg_pool3d,
}


def window_padding(call: NodeCall, sizes: Sequence[int], kernel: Sequence[int]) -> Padding:
    """The zeros that a window needs, stated or to be computed from the sizes."""
    rank = len(kernel)
    mode = call.attribute("auto_pad", b"NOTSET")
    pads = call.attribute("pads", [0] * 2 * rank)
    if mode in (b"NOTSET", b"VALID"):
        chosen = pads if mode == b"NOTSET" else [0] * 2 * rank
        return list(chosen[:rank]), list(chosen[rank:])
    strides = call.attribute("strides", [1] * rank)
    dilations = call.attribute("dilations", [1] * rank)
    totals = [
        max(0, (-(-size // stride) - 1) * stride + dilation * (k - 1) + 1 - size)
        for size, stride, dilation, k in zip(sizes, strides, dilations, kernel, strict=True)
    ]
    smaller, larger = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return (smaller, larger) if mode == b"SAME_UPPER" else (larger, smaller)


def split_padding(
    data: torch.Tensor, padding: Padding, value: float = 0.0
) -> tuple[torch.Tensor, list[int]]:
    """What torch's windows take (both sides alike); the rest is added to the data beforehand."""
    before, after = padding
    if before == after:
        return data, before
    pairs = zip(reversed(before), reversed(after), strict=True)
    return functional.pad(data, [side for pair in pairs for side in pair], value=value), [0] * len(
        before
    )


@onnx_operator("MaxPool")
def run_max_pool(call: NodeCall) -> Any:
    kernel = call.attributes["kernel_shape"]
    data = call.tensor(0)
    padding = window_padding(call, data.shape[2:], kernel)
    data, sides = split_padding(data, padding, float("-inf"))
    return _MAX_POOLS[len(kernel)](
        data,
        kernel,
        call.attribute("strides", [1] * len(kernel)),
        sides,
        call.attribute("dilations", [1] * len(kernel)),
        bool(call.attribute("ceil_mode", 0)),
    )


@onnx_operator("AveragePool")
def run_average_pool(call: NodeCall) -> Any:
    kernel = call.attributes["kernel_shape"]
    data = call.tensor(0)
    data, sides = split_padding(data, window_padding(call, data.shape[2:], kernel))
    return _MEAN_POOLS[len(kernel)](
        data,
        kernel,
        call.attribute("strides", [1] * len(kernel)),
        sides,
        bool(call.attribute("ceil_mode", 0)),
    )


@onnx_operator("GlobalAveragePool")
def run_global_average_pool(call: NodeCall) -> Any:
    data = call.tensor(0)
    return _GLOBAL_MEANS[data.ndim - 2](data, 1)


@onnx_operator("GlobalMaxPool")
def run_global_max_pool(call: NodeCall) -> Any:
    data = call.tensor(0)
    return data.amax(dim=tuple(range(2, data.ndim)), keepdim=True)


@onnx_operator("Pad")
def run_pad(call: NodeCall) -> Any:
    """ONNX lists all starts, then all ends; torch pairs from the last axis backwards."""
    data = call.tensor(0)
    listed = call.integers(1, "pads")
    if listed is None:
        raise call.error("how much to pad is missing")
    axes = call.integers(3) or list(range(data.ndim))
    mode = call.attribute("mode", b"constant").decode()
    before, after = [0] * data.ndim, [0] * data.ndim
    for position, axis in enumerate(axes):
        before[axis] = listed[position]
        after[axis] = listed[len(axes) + position]
    pairs = zip(reversed(before), reversed(after), strict=True)
    amounts = [side for pair in pairs for side in pair]
    if mode == "constant":
        return functional.pad(data, amounts)
    # torch pads with data along the last axes only, and wants no others named.
    while len(amounts) > 2 and amounts[-2:] == [0, 0]:
        amounts = amounts[:-2]
    names = {"edge": "replicate", "wrap": "circular"}
    return functional.pad(data, amounts, mode=names.get(mode, mode))

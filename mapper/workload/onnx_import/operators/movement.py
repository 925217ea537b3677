"""Shapes, views, gathers and conversions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from mapper.workload.onnx_import.tensors import torch_dtype
from mapper.workload.onnx_import.values import NodeCall, onnx_operator


@onnx_operator("Shape")
def run_shape(call: NodeCall) -> Any:
    shape = list(call.tensor(0).shape)
    end = call.attribute("end", len(shape))
    return np.array(shape[call.attribute("start", 0) : end], dtype=np.int64)


@onnx_operator("Size")
def run_size(call: NodeCall) -> Any:
    return np.array(call.tensor(0).numel(), dtype=np.int64)


@onnx_operator("Reshape")
def run_reshape(call: NodeCall) -> Any:
    data = call.tensor(0)
    wanted = call.integers(1, "shape") or []
    if not call.attribute("allowzero", 0):
        wanted = [size or data.shape[axis] for axis, size in enumerate(wanted)]
    return data.reshape(wanted)


@onnx_operator("Flatten")
def run_flatten(call: NodeCall) -> Any:
    data = call.tensor(0)
    axis = call.attribute("axis", 1)
    rows = int(np.prod(data.shape[:axis], dtype=np.int64))
    return data.reshape(rows, -1)


@onnx_operator("Transpose")
def run_transpose(call: NodeCall) -> Any:
    data = call.tensor(0)
    return data.permute(call.attribute("perm", list(range(data.ndim))[::-1]))


@onnx_operator("Squeeze")
def run_squeeze(call: NodeCall) -> Any:
    axes = call.integers(1, "axes")
    return call.tensor(0).squeeze() if axes is None else call.tensor(0).squeeze(axes)


@onnx_operator("Unsqueeze")
def run_unsqueeze(call: NodeCall) -> Any:
    data = call.tensor(0)
    axes = call.integers(1, "axes") or []
    rank = data.ndim + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        data = data.unsqueeze(axis)
    return data


@onnx_operator("Expand")
def run_expand(call: NodeCall) -> Any:
    data = call.tensor(0)
    wanted = call.integers(1) or []
    return data.expand(np.broadcast_shapes(tuple(data.shape), tuple(wanted)))


@onnx_operator("Tile")
def run_tile(call: NodeCall) -> Any:
    return call.tensor(0).repeat(call.integers(1) or [])


@onnx_operator("Concat")
def run_concat(call: NodeCall) -> Any:
    parts = [call.tensor(at) for at in range(len(call.inputs))]
    return torch.cat(parts, dim=call.attributes["axis"])


@onnx_operator("Split")
def run_split(call: NodeCall) -> Any:
    data, axis = call.tensor(0), call.attribute("axis", 0)
    sizes = call.integers(1, "split")
    if sizes is None:
        return torch.tensor_split(data, call.outputs, dim=axis)
    return torch.split_with_sizes(data, sizes, dim=axis)


@onnx_operator("Slice")
def run_slice(call: NodeCall) -> Any:
    data = call.tensor(0)
    starts, ends = call.integers(1, "starts") or [], call.integers(2, "ends") or []
    axes = call.integers(3, "axes") or list(range(len(starts)))
    steps = call.integers(4) or [1] * len(starts)
    index = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 0:
            # From the last element on: the same places in the axis turned around.
            size = data.shape[axis]
            places = range(size)[slice(start, end, step)]
            data = data.flip(axis)
            start, end = (
                (size - 1 - place for place in (places[0], places[-1])) if places else (0, -1)
            )
            index[axis] = slice(start, end + 1, -step)
            continue
        index[axis] = slice(start, end, step)
    return data[tuple(index)]


@onnx_operator("Gather")
def run_gather(call: NodeCall) -> Any:
    """One known position is a view, anything else a lookup of rows."""
    data, axis = call.tensor(0), call.attribute("axis", 0) % call.tensor(0).ndim
    indices = call.value(1)
    if isinstance(indices, np.ndarray) or not isinstance(indices, torch.Tensor):
        numbers = call.known(1)
        if numbers.size == 1:
            picked = data.select(axis, int(numbers.item()))
            return picked if numbers.ndim == 0 else picked.unsqueeze(axis)
    positions = call.tensor(1)
    if axis == 0:
        return functional.embedding(positions, data) if data.ndim == 2 else data[positions]
    picked = data.transpose(0, axis)[positions.reshape(-1)].transpose(0, axis)
    return picked.reshape(*data.shape[:axis], *positions.shape, *data.shape[axis + 1 :])


@onnx_operator("Cast")
def run_cast(call: NodeCall) -> Any:
    return call.tensor(0).to(torch_dtype(call.attributes["to"], call.name))


@onnx_operator("CastLike")
def run_cast_like(call: NodeCall) -> Any:
    return call.tensor(0).to(call.tensor(1).dtype)


@onnx_operator("QuantizeLinear")
def run_quantize(call: NodeCall) -> Any:
    target = torch.uint8 if not call.has(2) else call.tensor(2).dtype
    return call.tensor(0).to(target)


@onnx_operator("DequantizeLinear")
def run_dequantize(call: NodeCall) -> Any:
    return call.tensor(0).to(torch.float32)


@onnx_operator("Identity", "Dropout")
def run_identity(call: NodeCall) -> Any:
    return call.tensor(0)


@onnx_operator("DepthToSpace")
def run_depth_to_space(call: NodeCall) -> Any:
    size = call.attributes["blocksize"]
    if call.attribute("mode", b"DCR") == b"CRD":
        return functional.pixel_shuffle(call.tensor(0), size)
    batch, channels, height, width = call.tensor(0).shape
    split = call.tensor(0).reshape(batch, size, size, channels // size**2, height, width)
    return split.permute(0, 3, 4, 1, 5, 2).reshape(batch, -1, height * size, width * size)


@onnx_operator("SpaceToDepth")
def run_space_to_depth(call: NodeCall) -> Any:
    size = call.attributes["blocksize"]
    batch, channels, height, width = call.tensor(0).shape
    split = call.tensor(0).reshape(batch, channels, height // size, size, width // size, size)
    merged = (batch, channels * size**2, height // size, width // size)
    return split.permute(0, 3, 5, 1, 2, 4).reshape(merged)


@onnx_operator("Resize", "Upsample")
def run_resize(call: NodeCall) -> Any:
    data = call.tensor(0)
    mode = call.attribute("mode", b"nearest").decode()
    scales_at = 1 if call.operator == "Upsample" else 2
    if call.has(3):
        size = call.integers(3) or []
    elif call.has(scales_at):
        scales = call.known(scales_at).reshape(-1)
        size = [int(s * f) for s, f in zip(data.shape, scales, strict=True)]
    else:
        size = [int(s * f) for s, f in zip(data.shape, call.attributes["scales"], strict=True)]
    modes = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}
    return functional.interpolate(data, size=size[2:], mode=modes[mode])


@onnx_operator("TopK")
def run_top_k(call: NodeCall) -> Any:
    count = int(call.known(1).reshape(-1)[0])
    return torch.topk(call.tensor(0), count, dim=call.attribute("axis", -1))

"""Elements read or written at indices, running sums, and choices among classes."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from mapper.workload.onnx_import.values import NodeCall, onnx_operator


@onnx_operator("GatherElements")
def run_gather_elements(call: NodeCall) -> Any:
    return torch.gather(call.tensor(0), call.attribute("axis", 0), call.tensor(1).long())


@onnx_operator("GatherND")
def run_gather_nd(call: NodeCall) -> Any:
    """Slices at positions along the first axis; along several at once it is one flat index."""
    data, flat = _flattened(call)
    return data[flat]


@onnx_operator("ScatterND")
def run_scatter_nd(call: NodeCall) -> Any:
    data, flat = _flattened(call)
    updates = call.tensor(2).reshape(flat.numel(), *data.shape[1:])
    adds = call.attribute("reduction", b"none") == b"add"
    return torch.index_put(data, (flat.reshape(-1),), updates, adds).reshape(call.tensor(0).shape)


def _flattened(call: NodeCall) -> tuple[torch.Tensor, torch.Tensor]:
    """The data with the axes that are indexed as one, and one index into it."""
    if call.attribute("batch_dims", 0):
        raise call.error("batch_dims cannot be imported; allowed: 0")
    data, indices = call.tensor(0), call.tensor(1).long()
    depth = indices.shape[-1]
    flat = indices[..., 0]
    for axis in range(1, depth):
        flat = flat * data.shape[axis] + indices[..., axis]
    return data.reshape(-1, *data.shape[depth:]), flat


@onnx_operator("ScatterElements", "Scatter")
def run_scatter_elements(call: NodeCall) -> Any:
    adds = call.attribute("reduction", b"none") == b"add"
    scatter = torch.scatter_add if adds else torch.scatter
    index = call.tensor(1).long()
    return scatter(call.tensor(0), call.attribute("axis", 0), index, call.tensor(2))


@onnx_operator("CumSum")
def run_running_sum(call: NodeCall) -> Any:
    (axis,) = (int(number) for number in call.known(1).reshape(-1))
    data = call.tensor(0)
    if call.attribute("reverse", 0):
        summed = data.flip(axis).cumsum(axis).flip(axis)
    else:
        summed = data.cumsum(axis)
    return summed - data if call.attribute("exclusive", 0) else summed


@onnx_operator("OneHot")
def run_one_hot(call: NodeCall) -> Any:
    """A comparison of every index with every class."""
    (depth,) = (int(number) for number in call.known(1).reshape(-1))
    indices = call.tensor(0)
    axis = call.attribute("axis", -1) % (indices.ndim + 1)
    shape = [1] * (indices.ndim + 1)
    shape[axis] = depth
    classes = torch.arange(depth, device=indices.device).reshape(shape)
    off, on = call.known(2).reshape(-1)
    return torch.where(indices.unsqueeze(axis) == classes, float(on), float(off))


@onnx_operator("LpNormalization")
def run_normalization_by_length(call: NodeCall) -> Any:
    return functional.normalize(call.tensor(0), call.attribute("p", 2), call.attribute("axis", -1))

"""Runs workloads on numpy arrays, straight from the definition of an operator.

For every point of the loop nest each input is read at its affine address (beyond the edge: the
reduction's neutral element), combined, and reduced into the output. Nothing here knows what a
convolution is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from mapper.workload.graph import Workload
from mapper.workload.operators import Access, Operator

Array = NDArray[np.float64]


def run(workload: Workload, given: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor's values, in its stored shape, from those of inputs and weights."""
    values = {
        t.name: given[t.name].reshape(t.shape).astype(np.float64)
        if t.name in given
        else np.full(t.shape, np.nan)
        for t in workload.tensors
    }
    for operator in workload.operators:
        execute(operator, values)
    return values


def execute(operator: Operator, values: dict[str, Array]) -> None:
    neutral = -np.inf if operator.operation == "max" else 0.0
    inputs = [_read(a, operator.extents, values[a.tensor], neutral) for a in operator.inputs]
    points = _scanned(operator, inputs) if operator.kind in _SCANS else _combine(operator, inputs)
    kept = [at for at, dim in enumerate(operator.extents) if dim in operator.output.dims]
    reduced = tuple(at for at in range(len(operator.extents)) if at not in kept)
    output = values[operator.output.tensor]
    extents = {dim: e for dim, e in operator.extents.items() if dim in operator.output.dims}
    places = _places(operator.output, extents)
    output[places] = _reduce(operator.operation, points, reduced)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


_SCANS: dict[str, Callable[..., Array]] = {
    "cumulative_sum": np.cumsum,
    "cumulative_product": np.cumprod,
}


def _scanned(operator: Operator, inputs: list[Array]) -> Array:
    (whole,) = (list(operator.extents).index(dim) for dim in operator.whole_dims)
    return _SCANS[operator.kind](inputs[0], axis=whole)


def _combine(operator: Operator, inputs: list[Array]) -> Array:
    shape = tuple(operator.extents.values())
    inputs = [np.broadcast_to(values, shape) for values in inputs]
    match operator.operation, operator.kind:
        case (("mac" | "mul"), _):
            return np.prod(inputs, axis=0)
        case (("add" | "mean" | "copy"), kind):
            signs = [1, -1] if kind == "sub" else [1] * len(inputs)
            return np.sum([s * v for s, v in zip(signs, inputs, strict=True)], axis=0)
        case "max", _:
            return np.max(inputs, axis=0)
        case "softmax", _:
            shifted = np.exp(np.sum(inputs, axis=0))
            return shifted / shifted.sum(axis=-1, keepdims=True)
        case "activation", kind if kind in _ACTIVATIONS:
            return _ACTIVATIONS[kind](inputs[0])
        case "norm", "rms_norm":
            mean_square = np.mean(inputs[0] ** 2, axis=-1, keepdims=True)
            return inputs[0] / np.sqrt(mean_square) * inputs[1]
    raise NotImplementedError(f"{operator.operation} {operator.kind}")


def _reduce(operation: str, points: Array, axes: tuple[int, ...]) -> Array:
    match operation:
        case "max":
            return points.max(axis=axes) if axes else points
        case "mean":
            return points.mean(axis=axes) if axes else points
    return points.sum(axis=axes) if axes else points


def _read(access: Access, extents: Mapping[str, int], array: Array, neutral: float) -> Array:
    places = _places(access, extents)
    inside = np.ones(np.broadcast_shapes(*(p.shape for p in places), ()), dtype=bool)
    clipped = []
    for place, size in zip(places, array.shape, strict=True):
        inside = inside & (place >= 0) & (place < size)
        clipped.append(np.clip(place, 0, size - 1))
    return np.where(inside, array[tuple(clipped)], neutral)


def _places(access: Access, extents: Mapping[str, int]) -> tuple[NDArray[np.int64], ...]:
    """Position on each axis of the tensor, over the loops (broadcast where one is unused)."""
    grids = dict(zip(extents, np.ogrid[tuple(slice(e) for e in extents.values())], strict=True))
    if not extents:
        grids = {}
    flat = np.zeros((1,) * len(extents), dtype=np.int64)
    return tuple(
        sum((step * grids[dim] for dim, step in index.terms), flat + index.offset)
        for index in access.index
    )

"""What each kind of operator computes at the points of a box, on numpy arrays.

Every dimension that a kind needs whole (a softmax its row) is whole in the boxes it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mapper.workload.operators import Operator

Array = NDArray[np.float64]
Range = tuple[int, int]

#: Kinds whose points are reduced by something else than their operation says.
_LOG_SUM_EXP = ("log_sum_exp",)

STREAMING = ("attention", "causal_attention")

EPSILON = 1e-12


def neutral(operator: Operator) -> float:
    """What a sum (or a maximum) starts from, and what padding counts as."""
    return -math.inf if operator.operation == "max" or operator.kind in _LOG_SUM_EXP else 0.0


def reduce(operator: Operator, points: Array, axes: tuple[int, ...]) -> Array:
    if not axes:
        return points
    if operator.operation == "max":
        return points.max(axis=axes)
    if operator.kind in _LOG_SUM_EXP:
        return np.logaddexp.reduce(points, axis=axes[0])
    return points.sum(axis=axes)


def accumulate(operator: Operator, old: Array, new: Array) -> Array:
    if operator.operation == "max":
        return np.maximum(old, new)
    if operator.kind in _LOG_SUM_EXP:
        return np.logaddexp(old, new)
    return old + new


def points(operator: Operator, inputs: Sequence[Array], ranges: Mapping[str, Range]) -> Array:
    """Values at every point of the box; inputs are broadcast over it."""
    dims = list(ranges)
    shape = tuple(stop - start for start, stop in ranges.values())
    values = [np.broadcast_to(each, shape) for each in inputs]
    whole = tuple(dims.index(dim) for dim in operator.whole_dims) or (len(dims) - 1,)
    if operator.kind in _BY_KIND:
        return _BY_KIND[operator.kind](values)
    if operator.kind in _ON_ROWS:
        return _ON_ROWS[operator.kind](values, whole)
    if operator.kind in _WITH_POSITIONS:
        return _WITH_POSITIONS[operator.kind](values, ranges)
    reduced = math.prod(e for d, e in operator.extents.items() if d not in operator.output.dims)
    return _BY_OPERATION[operator.operation](values, reduced)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_erf = np.vectorize(math.erf)

_BY_KIND: dict[str, Callable[[list[Array]], Array]] = {
    "lookup": lambda v: v[-1],
    "combine": lambda v: v[0] * v[1],
    "divide": lambda v: v[0] / v[1],
    "multiply_add": lambda v: v[0] * v[1] + v[2],
    "combine_backward": lambda v: v[0] * v[1],
    "mul_backward": lambda v: v[0] * v[1],
    "silu_backward": lambda v: v[0] * _sigmoid(v[1]) * (1 + v[1] * (1 - _sigmoid(v[1]))),
    "times_exp_add": lambda v: v[0] * np.exp(v[1]) + v[2],
    "times_exp_difference": lambda v: v[0] * np.exp(v[1] - v[2]),
    "log_sum_exp": lambda v: v[0],
    "exp_difference": lambda v: np.exp(v[0] - v[1]),
    "rms_scale": lambda v: v[0] / np.sqrt(v[1] + EPSILON) * v[2],
    "batch_norm": lambda v: v[0] * v[1] + v[2],
    "relu": lambda v: np.maximum(v[0], 0),
    "relu6": lambda v: np.clip(v[0], 0, 6),
    "gelu": lambda v: v[0] * (1 + _erf(v[0] / math.sqrt(2))) / 2,
    "gelu_tanh": lambda v: (
        v[0] * (1 + np.tanh(math.sqrt(2 / math.pi) * (v[0] + 0.044715 * v[0] ** 3))) / 2
    ),
    "silu": lambda v: v[0] * _sigmoid(v[0]),
    "sigmoid": lambda v: _sigmoid(v[0]),
    "tanh": lambda v: np.tanh(v[0]),
    "exp": lambda v: np.exp(v[0]),
    "softplus": lambda v: np.log1p(np.exp(v[0])),
}

Axes = tuple[int, ...]


def _softmax(values: list[Array], axes: Axes) -> Array:
    scores = np.sum(values, axis=0)
    exponentials = np.exp(scores - scores.max(axis=axes, keepdims=True))
    return exponentials / exponentials.sum(axis=axes, keepdims=True)


def _masked_softmax(values: list[Array], axes: Axes) -> Array:
    return _softmax([*values[:-1], np.where(values[-1] > 0, 0.0, -np.inf)], axes)


def _standard(values: list[Array], axes: Axes) -> Array:
    centred = values[0] - values[0].mean(axis=axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + EPSILON)


def _affine_norm(values: list[Array], axes: Axes) -> Array:
    return _standard(values, axes) * values[1] + values[2]


def _rms_norm(values: list[Array], axes: Axes) -> Array:
    mean_square = (values[0] ** 2).mean(axis=axes, keepdims=True)
    return values[0] / np.sqrt(mean_square + EPSILON) * values[1]


def _top_k(values: list[Array], axes: Axes) -> Array:
    """Over ``t j e``: the ``j``-th largest of ``e``, at every ``e``."""
    (data,) = values
    ordered = -np.sort(-data[:, 0, :], axis=-1)[:, : data.shape[1]]
    return np.broadcast_to(ordered[:, :, None], data.shape)


def _rotary(values: list[Array], axes: Axes) -> Array:
    """Pairs ``(s=0, i)`` and ``(s=1, i)`` turned by angles whose cosines and sines are given."""
    data, cosine, sine = values
    (pair,) = axes
    first, second = np.split(data, 2, axis=pair)
    c, s = (np.take(table, [0], axis=pair) for table in (cosine, sine))
    return np.concatenate([first * c - second * s, second * c + first * s], axis=pair)


def _softmax_backward(values: list[Array], axes: Axes) -> Array:
    gradient, weights = values
    return weights * (gradient - (gradient * weights).sum(axis=axes, keepdims=True))


_ON_ROWS: dict[str, Callable[[list[Array], Axes], Array]] = {
    "softmax": _softmax,
    "masked_softmax": _masked_softmax,
    "softmax_backward": _softmax_backward,
    "layer_norm": _affine_norm,
    "group_norm": _affine_norm,
    "plain_norm": _standard,
    "rms_norm": _rms_norm,
    "top_k": _top_k,
    "rotary": _rotary,
    "cumulative_product": lambda v, axes: np.cumprod(v[0], axis=axes[0]),
    "cumulative_sum": lambda v, axes: np.cumsum(v[0], axis=axes[0]),
}


def _decay_between(values: list[Array], ranges: Mapping[str, Range]) -> Array:
    """``exp(sum of i - sum of j)`` where ``j`` is not after ``i``."""
    i, j = _positions(ranges, "i"), _positions(ranges, "j")
    return np.where(j <= i, np.exp(values[0] - values[1]), 0.0)


def _positions(ranges: Mapping[str, Range], dim: str) -> NDArray[np.int64]:
    shape = [-1 if name == dim else 1 for name in ranges]
    return np.arange(*ranges[dim]).reshape(shape)


_WITH_POSITIONS = {"decay_between": _decay_between}

_BY_OPERATION: dict[str, Callable[[list[Array], int], Array]] = {
    "mac": lambda v, _: np.prod(v, axis=0),
    "mul": lambda v, _: np.prod(v, axis=0),
    "add": lambda v, _: np.sum(v, axis=0),
    "copy": lambda v, _: v[-1],
    "max": lambda v, _: np.max(v, axis=0),
    "mean": lambda v, count: v[0] / count,
    "norm": lambda v, count: v[0] ** 2 / count,  # the mean square of a row
}

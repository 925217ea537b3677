"""Pooling and reductions: many elements to one, without weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from mapper.workload.nests import SPATIAL_DIMS, Nest, Window, at, per_axis
from mapper.workload.operators import AffineIndex
from mapper.workload.torch_import.draft import Kernel, point_dims
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, fresh, narrow

# What a vector unit does and the scalar operations an element. A sum is a mean without the
# final scaling; extremes and their positions are comparisons; a norm squares and adds, a
# variance subtracts the mean, squares and adds after having added once for the mean.
_REDUCTIONS = {
    "aten.mean": ("mean", 1),
    "aten.sum": ("add", 1),
    "aten.amax": ("max", 1),
    "aten.amin": ("max", 1),
    "aten.argmax": ("max", 1),
    "aten.argmin": ("max", 1),
    "aten.linalg_vector_norm": ("add", 2),
    "aten.norm": ("add", 2),
    "aten.var": ("add", 4),
    "aten.std": ("add", 4),
}


@lowers("aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d", "aten.max_pool2d_with_indices")
def lower_max_pool(call: Call) -> Value:
    return _pool(call, "max_pool", "max", call["dilation"])


@lowers("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def lower_average_pool(call: Call) -> Value:
    return _pool(call, "avg_pool", "mean", 1)


@lowers(
    "aten.adaptive_avg_pool1d",
    "aten.adaptive_avg_pool2d",
    "aten.adaptive_avg_pool3d",
    "aten._adaptive_avg_pool2d",
)
def lower_adaptive_average_pool(call: Call) -> Value:
    return _adaptive_pool(call, "avg_pool", "mean")


@lowers("aten.adaptive_max_pool1d", "aten.adaptive_max_pool2d")
def lower_adaptive_max_pool(call: Call) -> Value:
    return _adaptive_pool(call, "max_pool", "max")


@lowers(*_REDUCTIONS)
def lower_reduction(call: Call) -> Value:
    return _reduce(call, *_REDUCTIONS[call.operation])


@lowers("aten.var_mean", "aten.std_mean")
def lower_spread_and_mean(call: Call) -> Value:
    """The mean is there once the spread is."""
    spread = _reduce(call, "add", _REDUCTIONS["aten.var"][1])
    call.draft.folded.append(f"{call.name}: the mean is written with the spread")
    return spread, spread


@lowers("aten.max", "aten.min")
def lower_extreme(call: Call) -> Value:
    """torch's ``max``: of two tensors, or over one axis with the positions, or over all."""
    if call.arguments.get("other") is not None:
        return call.emit_pointwise("max", "max", 1, call["self"], call["other"])
    return _reduce(call, "max", 1)


def _reduce(call: Call, operation: str, ops: int) -> View:
    data: View = call["self"]
    rank = len(data.axes)
    reduced = {dim % rank for dim in _listed(call.arguments.get("dim"), rank)}
    dims = point_dims(rank)
    kept = [axis for axis in range(rank) if axis not in reduced]
    nest = Nest(
        extents=dict(zip(dims, data.shape, strict=True)),
        inputs=(at(*dims),),
        output=at(*(dims[axis] for axis in kept)),
    )
    kind = call.operation.removeprefix("aten.")
    kernel = Kernel(kind=kind, operation=operation, nest=nest, ops_per_point=ops)
    shape = [data.shape[axis] for axis in kept]
    result = call.draft.emit(call.name, kernel, [data], shape, call.dtype)
    return call.draft.reshape(result, call.shape)


def _listed(dim: int | Sequence[int] | None, rank: int) -> Sequence[int]:
    if isinstance(dim, int):
        return (dim,)
    return dim or range(rank)


def _pool(call: Call, kind: str, operation: str, dilation: Any) -> View:
    rank = _spatial_rank(call)
    kernel = per_axis(call["kernel_size"], rank)
    window = Window(
        kernel=kernel,
        stride=per_axis(call["stride"] or kernel, rank),
        padding=per_axis(call["padding"], rank),
        dilation=per_axis(dilation, rank),
    )
    return _emit_windows(call, kind, operation, window)


def _adaptive_pool(call: Call, kind: str, operation: str) -> View:
    rank = _spatial_rank(call)
    sizes, outputs = call["self"].shape[-rank:], call.shape[-rank:]
    if any(size % output for size, output in zip(sizes, outputs, strict=True)):
        return _uneven_windows(call, f"{kind}{rank}d", operation)
    kernel = tuple(size // output for size, output in zip(sizes, outputs, strict=True))
    window = Window(kernel=kernel, stride=kernel, padding=(0,) * rank, dilation=(1,) * rank)
    return _emit_windows(call, kind, operation, window)


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring results of one axis whose windows are equally long and equally far apart."""

    first: int
    count: int
    start: int
    stride: int
    length: int


def _runs(size: int, outputs: int) -> Iterator[_Run]:
    """torch's windows of adaptive pooling: rounded down where they start, up where they end."""
    starts = [at_ * size // outputs for at_ in range(outputs)]
    lengths = [-(-(at_ + 1) * size // outputs) - starts[at_] for at_ in range(outputs)]
    first = 0
    while first < outputs:
        end = first + 1
        while end < outputs and lengths[end] == lengths[first]:
            if starts[end] - starts[end - 1] != starts[first + 1] - starts[first]:
                break
            end += 1
        stride = starts[first + 1] - starts[first] if end > first + 1 else 1
        yield _Run(first, end - first, starts[first], stride, lengths[first])
        first = end


def _uneven_windows(call: Call, kind: str, operation: str) -> View:
    """One operator for each combination of runs of equal windows."""
    rank = _spatial_rank(call)
    data: View = call["self"]
    name = call.draft.unique(call.name)
    result = fresh(call.draft.store(f"{name}.out", call.shape, call.dtype, "activation"))
    outputs, kernels = SPATIAL_DIMS[rank]
    leading = ("N", "C")[2 - (len(call.shape) - rank) :]
    axes = [list(_runs(*pair)) for pair in zip(data.shape[-rank:], call.shape[-rank:], strict=True)]
    for number, runs in enumerate(product(*axes)):
        place = result
        for axis, run in enumerate(runs, start=len(leading)):
            place = narrow(place, axis, run.first, run.count)
        windows = [
            AffineIndex(((p, run.stride), (r, 1)), run.start)
            for p, r, run in zip(outputs, kernels, runs, strict=True)
        ]
        extents = {
            **dict(zip((*leading, *outputs), place.shape, strict=True)),
            **{r: run.length for r, run in zip(kernels, runs, strict=True)},
        }
        nest = Nest(
            extents=extents, inputs=((*at(*leading), *windows),), output=at(*leading, *outputs)
        )
        kernel = Kernel(kind=kind, operation=operation, nest=nest)
        call.draft.emit_into(call.draft.unique(f"{name}.part{number}"), kernel, [data], place)
    return result


def _emit_windows(call: Call, kind: str, operation: str, window: Window) -> View:
    rank = len(window.kernel)
    outputs, kernels = SPATIAL_DIMS[rank]
    leading = ("N", "C")[2 - (len(call.shape) - rank) :]
    extents = {
        **dict(zip((*leading, *outputs), call.shape, strict=True)),
        **dict(zip(kernels, window.kernel, strict=True)),
    }
    windows = tuple(window.index(axis) for axis in range(rank))
    nest = Nest(extents=extents, inputs=((*at(*leading), *windows),), output=at(*leading, *outputs))
    return call.emit(Kernel(kind=f"{kind}{rank}d", operation=operation, nest=nest), call["self"])


def _spatial_rank(call: Call) -> int:
    """1, 2 or 3, from the name of the torch operator."""
    return int(call.operation.removesuffix("_with_indices")[-2])

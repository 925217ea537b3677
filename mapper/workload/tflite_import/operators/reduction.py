"""Many elements to one: pooling, sums and extremes over axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mapper.workload.nests import Nest, Window, at
from mapper.workload.tflite_import.geometry import window_of
from mapper.workload.tflite_import.importing import Call, as_seen, as_stored, imports
from mapper.workload.torch_import.draft import Kernel, point_dims
from mapper.workload.torch_import.storage import View

_POOLS = {
    "AVERAGE_POOL_2D": ("avg_pool2d", "mean", 1),
    "MAX_POOL_2D": ("max_pool2d", "max", 1),
    "L2_POOL_2D": ("l2_pool2d", "mean", 2),
}

_REDUCTIONS = {
    "MEAN": "mean",
    "SUM": "add",
    "REDUCE_MAX": "max",
    "REDUCE_MIN": "max",
    "REDUCE_ALL": "max",
    "REDUCE_ANY": "max",
    "ARG_MAX": "max",
    "ARG_MIN": "max",
}


@imports(*_POOLS)
def pool(call: Call) -> Sequence[View]:
    kernel = (call.option("FilterHeight"), call.option("FilterWidth"))
    kind, operation, ops = _POOLS[call.operator.kind]
    target = call.target().shape
    outputs = (target[1], target[2])
    window = window_of(call.into.graph, call.operator, kernel)
    return [
        _pooled(
            call,
            _Pool(kind=kind, operation=operation, ops=ops, window=window, outputs=outputs),
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    kind: str
    operation: str
    ops: int
    window: Window
    outputs: tuple[int, int]


def _pooled(call: Call, pool: _Pool) -> View:
    data = as_stored(call.view(0))
    stored = (*data.shape[:2], *pool.outputs)
    extents = dict(zip(("N", "C", "P", "Q"), stored, strict=True))
    extents |= dict(zip(("R", "S"), pool.window.kernel, strict=True))
    nest = Nest(
        extents=extents,
        inputs=((*at("N", "C"), pool.window.index(0), pool.window.index(1)),),
        output=at("N", "C", "P", "Q"),
    )
    kernel = Kernel(kind=pool.kind, operation=pool.operation, nest=nest, ops_per_point=pool.ops)
    return as_seen(call.emit(kernel, [data], stored))


@imports(*_REDUCTIONS)
def reduction(call: Call) -> Sequence[View]:
    """Over the rows and columns of a map as a pool of one window, else axis by axis."""
    data = call.view(0)
    rank = len(data.axes)
    reduced = {axis % rank for axis in call.constants(1)}
    operation, kind = _REDUCTIONS[call.operator.kind], call.operator.kind.lower()
    if rank == 4 and reduced == {1, 2}:
        size = (data.shape[1], data.shape[2])
        window = Window(kernel=size, stride=size, padding=(0, 0), dilation=(1, 1))
        pool = _Pool(kind=kind, operation=operation, ops=1, window=window, outputs=(1, 1))
        result = _pooled(call, pool)
        return [call.draft.reshape(result, call.target().shape)]
    dims = point_dims(rank)
    kept = [axis for axis in range(rank) if axis not in reduced]
    nest = Nest(
        extents=dict(zip(dims, data.shape, strict=True)),
        inputs=(at(*dims),),
        output=at(*(dims[axis] for axis in kept)),
    )
    kernel = Kernel(kind=kind, operation=operation, nest=nest)
    result = call.emit(kernel, [data], [data.shape[axis] for axis in kept])
    return [call.draft.reshape(result, call.target().shape)]

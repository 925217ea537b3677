"""vMCU's plan: layers overlap with their inputs, inverted bottlenecks are fused by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mapper.memory_plan.layers import Layer
from mapper.memory_plan.stages import Choice, CycleModel, cuts, fused, unfused

#: Kinds of an inverted bottleneck: expansion, depthwise, projection, and a residual's addition.
BOTTLENECK = ("conv2d", "depthwise", "conv2d")


def choices(layers: Sequence[Layer], cycles: CycleModel) -> list[Choice]:
    """One choice per bottleneck and per other run of layers between cuts."""
    return [_choice(layers[a:b], cycles) for a, b in _parts(layers)]


def _parts(layers: Sequence[Layer]) -> Iterator[tuple[int, int]]:
    """From cut to cut, bottlenecks as a whole."""
    points = cuts(layers)
    position = 0
    while position < len(points) - 1:
        start = points[position]
        ends = [p for p in points[position + 1 :] if is_bottleneck(layers[start:p])]
        end = ends[-1] if ends else points[position + 1]
        yield start, end
        position = points.index(end)


def is_bottleneck(layers: Sequence[Layer]) -> bool:
    kinds = tuple(layer.kind for layer in layers)
    if kinds not in (BOTTLENECK, (*BOTTLENECK, "elementwise")):
        return False
    return layers[0].is_pointwise and layers[2].is_pointwise


def _choice(layers: Sequence[Layer], cycles: CycleModel) -> Choice:
    """The least memory that the paper's kernels reach; of equal memory the least time."""
    if is_bottleneck(layers):
        return next(iter(fused(layers, cycles, limit_bytes=1 << 62)))
    return min(unfused(layers, cycles), key=lambda c: (c.size_bytes, c.cycles))

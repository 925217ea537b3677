"""Layers executed patch by patch, each patch through all of them (as MCUNetV2 does).

The stage's input and output exist as a whole; between them only what a patch of the output
needs. Neighbouring patches overlap in what they need, and compute that twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mapper.memory_plan.layers import FeatureMap, Layer, Window
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.plan import Buffer

#: First and last row (or column), both included.
Range = tuple[int, int]
#: What a patch needs of each map along one axis.
Needed = dict[str, Range]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedStage:
    """``macs`` and ``layer_macs`` count what is computed again in every patch."""

    source: FeatureMap
    target: FeatureMap
    per_side: int
    workspace_bytes: int
    layer_macs: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        return self.source.size_bytes + self.target.size_bytes + self.workspace_bytes


def patch(layers: Sequence[Layer], per_side: int) -> PatchedStage:
    """The stage of layers that ``can_fuse``, in ``per_side`` x ``per_side`` patches."""
    target = layers[-1].output
    made = {layer.output.name for layer in layers}
    source = next(i for layer in layers for i in layer.inputs if i.name not in made)
    rows = list(_parts(target.height, per_side))
    columns = list(_parts(target.width, per_side))
    tall = [_needed(layers, part, "height") for part in rows]
    wide = [_needed(layers, part, "width") for part in columns]
    lives = lifetimes(layers)
    inner = [lives[layer.output.name] for layer in layers[:-1]]
    pixel_bytes = {layer.output.name: layer.output.pixel_bytes for layer in layers}
    shapes = itertools.product(_distinct(tall), _distinct(wide))
    workspace = max(_workspace_bytes(inner, pixel_bytes, shape) for shape in shapes)
    area = {layer.output.name: layer.output.height * layer.output.width for layer in layers}
    done = {
        name: sum(_length(h, name) for h in tall) * sum(_length(w, name) for w in wide)
        for name in area
    }
    return PatchedStage(
        source=source,
        target=target,
        per_side=per_side,
        workspace_bytes=workspace,
        layer_macs=tuple(
            layer.macs * done[layer.output.name] // area[layer.output.name] for layer in layers
        ),
    )


def _parts(size: int, count: int) -> Iterator[Range]:
    """``count`` parts (or fewer), all but the last equally long."""
    step = -(-size // count)
    for start in range(0, size, step):
        yield start, min(start + step, size) - 1


def _needed(layers: Sequence[Layer], part: Range, axis: str) -> Needed:
    """The range of each map that a range of the last one needs, padding left out."""
    found: Needed = {layers[-1].output.name: part}
    for layer in reversed(layers):
        first, last = found[layer.output.name]
        window = layer.rows if axis == "height" else layer.columns
        for source in layer.inputs:
            low = max(0, first * window.stride - window.pad)
            high = _end(window, last, getattr(source, axis))
            before = found.get(source.name, (low, high))
            found[source.name] = min(low, before[0]), max(high, before[1])
    return found


def _end(window: Window, last: int, size: int) -> int:
    return min(size - 1, last * window.stride - window.pad + window.reach - 1)


def _length(needed: Needed, name: str) -> int:
    first, last = needed[name]
    return last - first + 1


def _distinct(parts: Sequence[Needed]) -> list[Needed]:
    """One of those that need equally much of every map."""
    by_lengths = {tuple(_length(part, name) for name in part): part for part in parts}
    return list(by_lengths.values())


def _workspace_bytes(
    inner: Sequence[Buffer], pixel_bytes: dict[str, int], shape: tuple[Needed, Needed]
) -> int:
    """Live bytes of a patch's own maps; the stage's input and output are elsewhere."""
    rows, columns = shape
    sizes = [pixel_bytes[b.name] * _length(rows, b.name) * _length(columns, b.name) for b in inner]
    return max(
        sum(size for b, size in zip(inner, sizes, strict=True) if b.first <= step <= b.last)
        for step in {b.first for b in inner}
    )

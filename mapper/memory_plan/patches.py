"""Layers executed patch by patch, each patch through all of them (as MCUNetV2 does).

The stage's input and output exist as a whole; between them only what a patch of the output
needs. Neighbouring patches overlap in what they need, and compute that twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mapper.memory_plan.arena import extent_bytes, first_fit
from mapper.memory_plan.layers import FeatureMap, Layer, Window
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.plan import Placement

#: First and last row (or column), both included.
Range = tuple[int, int]
#: What a patch needs of each map along one axis.
Needed = dict[str, Range]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What a patch of the stage's output needs of each map, in rows and in columns."""

    rows: Needed
    columns: Needed


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
    made = {layer.output.name for layer in layers}
    source = next(i for layer in layers for i in layer.inputs if i.name not in made)
    grid = _Grid.of(layers, per_side)
    return PatchedStage(
        source=source,
        target=layers[-1].output,
        per_side=per_side,
        workspace_bytes=extent_bytes(_placed(layers, grid)),
        layer_macs=tuple(
            layer.macs * grid.computed_bytes(layer.output) // layer.output.size_bytes
            for layer in layers
        ),
    )


def least_patched_bytes(layers: Sequence[Layer], per_side: int) -> int:
    """A bound for ``patch``: in the patch in the middle each layer's input and output are there."""
    target = layers[-1].output
    middle = {axis: list(_parts(getattr(target, axis), per_side)) for axis in ("height", "width")}
    tall, wide = (_needed(layers, parts[len(parts) // 2], axis) for axis, parts in middle.items())
    inside = {layer.output.name for layer in layers[:-1]}

    def part_bytes(of: FeatureMap) -> int:
        if of.name not in inside:
            return 0
        return length(tall, of.name) * length(wide, of.name) * of.pixel_bytes

    made = {layer.output.name for layer in layers}
    source = next(i for layer in layers for i in layer.inputs if i.name not in made)
    touched = ({m.name: m for m in (*layer.inputs, layer.output)} for layer in layers)
    workspace = max(sum(map(part_bytes, maps.values())) for maps in touched)
    return source.size_bytes + target.size_bytes + workspace


def patches_of(layers: Sequence[Layer], per_side: int) -> Iterator[Patch]:
    """The patches in rows, with what each needs of every map."""
    grid = _Grid.of(layers, per_side)
    for rows in grid.rows:
        for columns in grid.columns:
            yield Patch(rows=rows, columns=columns)


def patch_layout(layers: Sequence[Layer], per_side: int) -> dict[str, int]:
    """Offsets of a patch's own maps (those inside the stage) in its workspace, for all patches."""
    return {p.buffer.name: p.offset_bytes for p in _placed(layers, _Grid.of(layers, per_side))}


@dataclass(frozen=True, slots=True)
class _Grid:
    """What each row and each column of patches needs of every map."""

    rows: tuple[Needed, ...]
    columns: tuple[Needed, ...]

    @classmethod
    def of(cls, layers: Sequence[Layer], per_side: int) -> _Grid:
        target = layers[-1].output
        tall = (_needed(layers, part, "height") for part in _parts(target.height, per_side))
        wide = (_needed(layers, part, "width") for part in _parts(target.width, per_side))
        return cls(tuple(tall), tuple(wide))

    def largest_bytes(self, of: FeatureMap) -> int:
        """Of the patch that needs most of a map."""
        tall = max(length(needed, of.name) for needed in self.rows)
        return tall * max(length(needed, of.name) for needed in self.columns) * of.pixel_bytes

    def computed_bytes(self, of: FeatureMap) -> int:
        """Of all patches together, with what neighbours compute again."""
        tall = sum(length(needed, of.name) for needed in self.rows)
        return tall * sum(length(needed, of.name) for needed in self.columns) * of.pixel_bytes


def _placed(layers: Sequence[Layer], grid: _Grid) -> list[Placement]:
    """One layout, with room for the largest patch of each map."""
    lives = lifetimes(layers)
    inner = (
        replace(lives[layer.output.name], size_bytes=grid.largest_bytes(layer.output))
        for layer in layers[:-1]
    )
    return first_fit(sorted(inner, key=lambda b: -b.size_bytes))


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


def length(needed: Needed, name: str) -> int:
    first, last = needed[name]
    return last - first + 1

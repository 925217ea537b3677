"""The ways to run a stage (layers between two points where one tensor is all that is needed)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from mapper.memory_plan.fused import FusedStage, fuse, least_workspace_bytes
from mapper.memory_plan.layers import FeatureMap, Layer
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.offsets import Overlap, overlap
from mapper.memory_plan.patches import PatchedStage, least_patched_bytes, patch
from mapper.memory_plan.ring import Ring, linear, place, seen_from
from mapper.memory_plan.schedule import best_order

#: Cycles of a layer that computes ``macs`` and addresses the ring ``accesses`` times.
CycleModel = Callable[[Layer, int, int], float]

#: Patches per side that are tried.
PATCHES = (2, 3, 4, 5, 6, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A way to run a stage: its memory, its time, and how."""

    layers: tuple[Layer, ...]
    size_bytes: int
    cycles: float
    how: Overlap | Ring | FusedStage | PatchedStage
    layer_macs: tuple[int, ...]
    segment_bytes: tuple[int, ...]

    @property
    def lower_bound_bytes(self) -> int:
        """Less than the size only where the integer program ran out of time."""
        return self.how.lower_bound_bytes if isinstance(self.how, Ring) else self.size_bytes


def cuts(layers: Sequence[Layer]) -> tuple[int, ...]:
    """Numbers of layers before which exactly one tensor is needed, and the two ends."""
    buffers = lifetimes(layers).values()
    inner = (
        step
        for step in range(1, len(layers))
        if sum(b.first < step <= b.last or b.first == step == 0 for b in buffers) == 1
    )
    return (0, *inner, len(layers))


def unfused(layers: Sequence[Layer], cycles: CycleModel) -> Iterator[Choice]:
    """Layer by layer: in a ring (a single layer with every segment size that is worth it), and
    with everything apart, which needs no ring addressing."""
    if len(layers) > 1 or len(layers[0].inputs) > 1:
        units = {layer.name: _least_unit(layer) for layer in layers}
        ring = _over_all_orders(layers, place(layers, units))
        yield _choice(layers, ring.span_bytes, ring, cycles, tuple(units.values()))
        apart_ring = linear(layers)
        yield _choice(layers, apart_ring.span_bytes, apart_ring, cycles, (0,) * len(units))
        return
    layer = layers[0]
    least = layer.inputs[0].size_bytes + layer.output.size_bytes
    apart = replace(overlap(layer), offset=layer.output.size_bytes)
    yield _choice(layers, least, apart, cycles, (0,))
    for unit in _units(layer) if layer.may_overwrite(layer.inputs[0]) else ():
        pair = overlap(layer, unit)
        if pair.span_bytes < least:
            least = pair.span_bytes
            yield _choice(layers, least, pair, cycles, (unit,))


def _over_all_orders(layers: Sequence[Layer], ring: Ring) -> Ring:
    """With the bound of every order, not just of the one that was placed."""
    bound = best_order(layers, shared=shared_bytes).bound_bytes
    largest = max(p.buffer.size_bytes for p in ring.placements)
    return replace(ring, lower_bound_bytes=max(largest, min(bound, ring.lower_bound_bytes)))


def shared_bytes(layer: Layer, source: FeatureMap) -> int:
    """Bytes of a layer's output that may lie over an input that dies, at best."""
    if not layer.may_overwrite(source):
        return 0
    pair = overlap(seen_from(layer, source), _least_unit(layer))
    return max(0, layer.output.size_bytes - pair.offset * pair.segment_bytes)


def _least_unit(layer: Layer) -> int:
    """The segment size of the least offset; of equal ones the largest."""

    def offset_bytes(unit: int) -> int:
        return overlap(layer, unit).offset * unit

    return min(_units(layer), key=offset_bytes)


def fused(layers: Sequence[Layer], cycles: CycleModel, limit_bytes: int) -> Iterator[Choice]:
    """By rows, and by patches where that may need less, within a limit of memory.

    Rows are computed once and patches more than once, so patches that need more than the rows do
    are never better. Fewer, larger patches need more.
    """
    needed = least_workspace_bytes(layers)
    larger = max(layers[0].inputs[0].size_bytes, layers[-1].output.size_bytes)
    if len(layers) == 1 or needed + larger > limit_bytes:
        return
    stage = fuse(layers)
    unit = math.gcd(stage.source.pixel_bytes, stage.target.pixel_bytes)
    rows = _choice(layers, stage.size_bytes, stage, cycles, (unit,) * len(layers))
    if rows.size_bytes <= limit_bytes:
        yield rows
    limit_bytes = min(limit_bytes, rows.size_bytes - 1)
    if stage.source.size_bytes + stage.target.size_bytes <= limit_bytes:
        sides = [n for n in PATCHES if n <= stage.target.height]
        yield from _patched_within(layers, cycles, sides, limit_bytes)


def _patched_within(
    layers: Sequence[Layer], cycles: CycleModel, sides: Sequence[int], limit_bytes: int
) -> Iterator[Choice]:
    """The smallest patches first, as long as they keep the limit."""
    for side in reversed(sides):
        if least_patched_bytes(layers, side) > limit_bytes:
            return
        choice = patched(layers, cycles, side)
        if choice.size_bytes > limit_bytes:
            return
        yield choice


def patched(layers: Sequence[Layer], cycles: CycleModel, per_side: int) -> Choice:
    """Fused, in ``per_side`` x ``per_side`` patches."""
    stage = patch(layers, per_side)
    spent = zip(layers, stage.layer_macs, strict=True)
    return Choice(
        layers=tuple(layers),
        size_bytes=stage.size_bytes,
        cycles=sum(cycles(layer, macs, 0) for layer, macs in spent),
        how=stage,
        layer_macs=stage.layer_macs,
        segment_bytes=(0,) * len(layers),
    )


def _choice(
    layers: Sequence[Layer],
    size_bytes: int,
    how: Overlap | Ring | FusedStage,
    cycles: CycleModel,
    units: tuple[int, ...],
) -> Choice:
    pairs = zip(layers, units, strict=True)
    return Choice(
        layers=tuple(layers),
        size_bytes=size_bytes,
        cycles=sum(cycles(layer, layer.macs, ring_accesses(layer, u)) for layer, u in pairs),
        how=how,
        layer_macs=tuple(layer.macs for layer in layers),
        segment_bytes=units,
    )


def _units(layer: Layer) -> list[int]:
    """Segment sizes that leave every pixel dense: common divisors of the pixels, largest first.

    Where an integer program says the offset, it does so in bytes.
    """
    if layer.nests:
        return [1]
    common = math.gcd(*(m.pixel_bytes for m in (*layer.inputs, layer.output)))
    return [d for d in range(common, 0, -1) if common % d == 0]


def ring_accesses(layer: Layer, segment_bytes: int) -> int:
    """Segments that the kernel loads and stores, each behind a modulo.

    Every input segment is loaded for each window that it lies in, and stays in registers for all
    channels of the output. A segment of 0 bytes is no ring.
    """
    if segment_bytes == 0:
        return 0
    loads = sum(_segments(i, segment_bytes) for i in layer.inputs)
    reuse = layer.rows.size * layer.columns.size / (layer.rows.stride * layer.columns.stride)
    return round(loads * max(1.0, reuse)) + _segments(layer.output, segment_bytes)


def _segments(feature_map: FeatureMap, segment_bytes: int) -> int:
    return feature_map.size_bytes // segment_bytes

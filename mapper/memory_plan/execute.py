"""Running a plan on int8 values in a pool of bytes, as the microcontroller would.

Every value of an activation is written to the pool where the plan puts it, and read from there in
the order of the kernels: pixel by pixel, channel by channel. Each byte knows which value it holds,
so a plan that overwrites something still needed is caught at the next read, even where the
numbers happen to agree. Weights are in flash, outside the pool.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mapper.memory_plan import affine
from mapper.memory_plan.fused import Rows, fuse
from mapper.memory_plan.layers import FeatureMap, Layer, Window
from mapper.memory_plan.lifetimes import maps_of
from mapper.memory_plan.offsets import window_pixels
from mapper.memory_plan.patches import Patch, length, patch_layout, patches_of
from mapper.memory_plan.plan import MemoryPlan, Step

Int8 = NDArray[np.int8]
Windows = Sequence[NDArray[np.int64]]

#: Sums are scaled down by this many bits before they are saturated to int8.
SHIFT = 7


class ClobberedError(Exception):
    """A byte no longer holds the value that a kernel wants to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Weights of each layer (output channels x window x input channels), and the input."""

    weights: Mapping[str, Int8]
    source: Int8


def random_values(layers: Sequence[Layer], rng: np.random.Generator) -> Values:
    """Int8 values for every weight and for the network's input."""
    source = layers[0].inputs[0]
    shapes = {layer.name: _weight_shape(layer) for layer in layers}
    shapes[""] = (source.height * source.width, source.channels)
    drawn = {name: rng.integers(-128, 128, s, dtype=np.int8) for name, s in shapes.items()}
    return Values(weights=drawn, source=drawn[""])


def _weight_shape(layer: Layer) -> tuple[int, ...]:
    source = layer.inputs[0]
    if layer.kind == "dense":
        return layer.output.channels, source.height * source.width, source.channels
    window = layer.rows.size * layer.columns.size
    return layer.output.channels, window, source.channels if layer.kind == "conv2d" else 1


class Memory(Protocol):
    """Where activations are. Pixels are counted in rows over the whole map."""

    def read(self, read: FeatureMap, pixels: Sequence[int]) -> Int8:
        """Values of the pixels (pixels x channels)."""

    def read_value(self, read: FeatureMap, pixel: int, channel: int) -> np.int8:
        """One value."""

    def check(self, read: FeatureMap, pixels: Sequence[int], channels: slice) -> None:
        """Raises ``ClobberedError`` unless they still are what they were."""

    def write(self, written: FeatureMap, pixel: int, channel: int, value: int) -> None: ...


class Apart:
    """A memory in which every map has a place of its own: the reference."""

    def __init__(self, maps: Mapping[str, FeatureMap]) -> None:
        self.maps = {
            name: np.zeros((m.height * m.width, m.channels), np.int8) for name, m in maps.items()
        }

    def read(self, read: FeatureMap, pixels: Sequence[int]) -> Int8:
        return self.maps[read.name][list(pixels)]

    def read_value(self, read: FeatureMap, pixel: int, channel: int) -> np.int8:
        return np.int8(self.maps[read.name][pixel, channel])

    def check(self, read: FeatureMap, pixels: Sequence[int], channels: slice) -> None:
        return

    def write(self, written: FeatureMap, pixel: int, channel: int, value: int) -> None:
        self.maps[written.name][pixel, channel] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Where (part of) a map lies: rows and columns beyond it wrap around inside it."""

    start: int
    top: int
    left: int
    rows: int
    columns: int


class Pool:
    """A ring of bytes; ``regions`` says where each map lies at the moment."""

    def __init__(self, size_bytes: int, maps: Mapping[str, FeatureMap]) -> None:
        self.bytes = np.zeros(size_bytes, np.int8)
        self.holds = np.full(size_bytes, -1, np.int64)
        self.regions: dict[str, Region] = {}
        sizes = [m.height * m.width * m.channels for m in maps.values()]
        self.first = dict(zip(maps, np.cumsum([0, *sizes]).tolist(), strict=False))

    def read(self, read: FeatureMap, pixels: Sequence[int]) -> Int8:
        self.check(read, pixels, slice(None))
        return self.bytes[self._addresses(read, pixels)]

    def read_value(self, read: FeatureMap, pixel: int, channel: int) -> np.int8:
        self.check(read, (pixel,), slice(channel, channel + 1))
        return np.int8(self.bytes[self._addresses(read, (pixel,))[0, channel]])

    def check(self, read: FeatureMap, pixels: Sequence[int], channels: slice) -> None:
        found = self.holds[self._addresses(read, pixels)][:, channels]
        wanted = self._values(read, pixels)[:, channels]
        if not (found == wanted).all():
            raise ClobberedError(f"{read.name} was overwritten before its last use")

    def write(self, written: FeatureMap, pixel: int, channel: int, value: int) -> None:
        address = self._addresses(written, (pixel,))[0, channel]
        self.bytes[address] = value
        self.holds[address] = self._values(written, (pixel,))[0, channel]

    def _values(self, of: FeatureMap, pixels: Sequence[int]) -> NDArray[np.int64]:
        """Numbers of the values, unique in the network."""
        first = self.first[of.name] + np.asarray(pixels) * of.channels
        return np.asarray(first[:, None] + np.arange(of.channels))

    def _addresses(self, of: FeatureMap, pixels: Sequence[int]) -> NDArray[np.int64]:
        region = self.regions[of.name]
        rows, columns = np.divmod(np.asarray(pixels), of.width)
        row, column = (rows - region.top) % region.rows, (columns - region.left) % region.columns
        first = region.start + (row * region.columns + column) * of.channels
        return np.asarray((first[:, None] + np.arange(of.channels)) % len(self.bytes))


def reference(layers: Sequence[Layer], values: Values) -> Int8:
    """The network's output, layer by layer, each activation in memory of its own."""
    memory = Apart(maps_of(layers))
    memory.maps[layers[0].inputs[0].name] = values.source
    for layer in layers:
        compute_all(layer, memory, values)
    return memory.maps[layers[-1].output.name]


def execute(layers: Sequence[Layer], plan: MemoryPlan, values: Values) -> Int8:
    """The network's output by the plan, in a pool of ``plan.pool_bytes``.

    ``layers`` are those that were planned. Raises ``ClobberedError`` if the plan is wrong.
    """
    by_name = {layer.name: layer for layer in layers}
    maps = maps_of(layers)
    pool = Pool(plan.pool_bytes, maps)
    source = next(iter(maps.values()))
    for number, step in enumerate(plan.steps):
        starts = {
            p.buffer.name: p.offset_bytes
            for p in plan.placements
            if p.buffer.first <= number <= p.buffer.last
        }
        pool.regions = {name: _whole(maps[name], s) for name, s in starts.items() if name in maps}
        if number == 0:
            for pixel, channel in np.ndindex(*values.source.shape):
                pool.write(source, pixel, channel, int(values.source[pixel, channel]))
        members = [by_name[name] for name in step.layers]
        _run(_Kernel(layers=members, step=step, starts=starts, pool=pool, values=values))
    target = by_name[plan.steps[-1].layers[-1]].output
    return pool.read(target, range(target.height * target.width))


def _whole(of: FeatureMap, start: int) -> Region:
    return Region(start=start, top=0, left=0, rows=of.height, columns=of.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kernel:
    layers: Sequence[Layer]
    step: Step
    starts: Mapping[str, int]
    pool: Pool
    values: Values


def _run(kernel: _Kernel) -> None:
    if kernel.step.patches > 1:
        _run_patches(kernel)
    elif len(kernel.layers) > 1:
        _run_rows(kernel)
    else:
        unit = max(1, kernel.step.segment_bytes)
        compute_all(kernel.layers[0], kernel.pool, kernel.values, unit)


def _run_rows(kernel: _Kernel) -> None:
    """Row by row of the output; what is kept as a single pixel is made when it is read."""
    kept = {b.feature_map.name: b for b in fuse(kernel.layers).buffers}
    for name, buffer in kept.items():
        whole = _whole(buffer.feature_map, kernel.starts[f"{name} (part)"])
        size = (buffer.rows, whole.columns) if buffer.rows else (1, 1)
        kernel.pool.regions[name] = Region(
            start=whole.start, top=0, left=0, rows=size[0], columns=size[1]
        )
    on_demand = {x.output.name: x for x in kernel.layers[:-1] if not kept[x.output.name].rows}

    def make_row(layer: Layer, row: int) -> None:
        if layer.output.name not in on_demand:
            for column in range(layer.output.width):
                make_pixel(layer, row * layer.output.width + column)

    def make_pixel(layer: Layer, pixel: int) -> None:
        for source in layer.inputs:
            if source.name in on_demand:
                make_pixel(on_demand[source.name], pixel)
        compute(layer, pixel, kernel.pool, kernel.values)

    rows = Rows(kernel.layers, make_row)
    for row in range(kernel.layers[-1].output.height):
        rows.make(kernel.layers[-1].output.name, row)


def _run_patches(kernel: _Kernel) -> None:
    start = kernel.starts[f"patches of {kernel.layers[0].name} (part)"]
    per_side = math.isqrt(kernel.step.patches)
    layout = patch_layout(kernel.layers, per_side)
    for patch in patches_of(kernel.layers, per_side):
        for name, offset in layout.items():
            top, left = patch.rows[name][0], patch.columns[name][0]
            kernel.pool.regions[name] = Region(
                start=start + offset,
                top=top,
                left=left,
                rows=length(patch.rows, name),
                columns=length(patch.columns, name),
            )
        for layer in kernel.layers:
            for pixel in _pixels(layer.output, patch):
                compute(layer, pixel, kernel.pool, kernel.values)


def _pixels(of: FeatureMap, patch: Patch) -> Iterator[int]:
    (top, bottom), (left, right) = patch.rows[of.name], patch.columns[of.name]
    for row in range(top, bottom + 1):
        yield from range(row * of.width + left, row * of.width + right + 1)


def compute_all(layer: Layer, memory: Memory, values: Values, segment_bytes: int = 1) -> None:
    """The whole layer, in the order of its kernel."""
    if layer.kind == "other":
        _compute_nest(layer, memory)
        return
    for pixel in range(layer.output.height * layer.output.width):
        compute(layer, pixel, memory, values, segment_bytes)


def _compute_nest(layer: Layer, memory: Memory) -> None:
    """A layer of which only the loops are known: a sum in which every load has its weight."""
    kernels = [affine.steps(layer.nests[source.name]) for source in layer.inputs]
    for together in zip(*kernels, strict=True):
        total = 0
        for source, (_, addresses) in zip(layer.inputs, together, strict=True):
            for number, address in enumerate(addresses):
                pixel, channel = divmod(address, source.channels)
                total += int(memory.read_value(source, pixel, channel)) * _odd(number)
        for address in together[0][0]:
            pixel, channel = divmod(address, layer.output.channels)
            memory.write(layer.output, pixel, channel, max(-128, min(127, total >> 1)))


def _odd(number: int) -> int:
    """Small weights that differ from load to load."""
    return 3 + 2 * (number % 5)


def compute(
    layer: Layer, pixel: int, memory: Memory, values: Values, segment_bytes: int = 1
) -> None:
    """One pixel of a layer: segment by segment, each made in registers and then stored."""
    p, q = divmod(pixel, layer.output.width)
    pixels = window_pixels(layer, p, q)
    windows = [memory.read(source, pixels).astype(np.int64) for source in layer.inputs]
    result = _RESULTS[layer.kind](layer, windows, _used_weights(layer, (p, q), values))
    saturated = np.clip(result, -128, 127)
    for first in range(0, layer.output.channels, segment_bytes):
        made = slice(first, first + segment_bytes)
        mixes = layer.kind in ("conv2d", "dense")
        for source in layer.inputs:
            memory.check(source, pixels, slice(None) if mixes else made)
        for channel, value in enumerate(saturated[made], start=first):
            memory.write(layer.output, pixel, channel, int(value))


def _used_weights(layer: Layer, at: tuple[int, int], values: Values) -> NDArray[np.int64]:
    """Output channels x pixels of the window inside the map x input channels."""
    weights = values.weights[layer.name].astype(np.int64)
    if layer.kind == "dense":
        return weights
    source = layer.inputs[0]
    rows = _taps(layer.rows, at[0], source.height)
    columns = _taps(layer.columns, at[1], source.width)
    return weights[:, [r * layer.columns.size + s for r in rows for s in columns]]


def _taps(window: Window, position: int, size: int) -> list[int]:
    start = position * window.stride - window.pad
    return [i for i in range(window.size) if 0 <= start + i * window.dilation < size]


def _mix(layer: Layer, windows: Windows, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.tensordot(weights, windows[0], axes=2) >> SHIFT


def _filter(layer: Layer, windows: Windows, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray((weights[:, :, 0].T * windows[0]).sum(axis=0) >> SHIFT)


def _mean(layer: Layer, windows: Windows, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(windows[0].sum(axis=0) // len(windows[0]))


def _sum(layer: Layer, windows: Windows, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(sum(window[0] for window in windows))


_RESULTS = {
    "conv2d": _mix,
    "dense": _mix,
    "depthwise": _filter,
    "pool": _mean,
    "elementwise": _sum,
}

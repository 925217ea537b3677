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

import numpy as np

from mapper.memory_plan import byte_kernels as bytewise
from mapper.memory_plan.byte_kernels import Int8, Ints
from mapper.memory_plan.fused import Rows, fuse
from mapper.memory_plan.layers import FeatureMap, Layer
from mapper.memory_plan.lifetimes import maps_of, results_of
from mapper.memory_plan.patches import Patch, length, patch_layout, patches_of
from mapper.memory_plan.plan import MemoryPlan, Step
from mapper.memory_plan.reference import Values, nest_steps, nest_value

_KINDS = {
    "conv2d": bytewise.MIX,
    "dense": bytewise.MIX,
    "depthwise": bytewise.FILTER,
    "pool": bytewise.MEAN,
    "elementwise": bytewise.SUM,
}


class ClobberedError(Exception):
    """A byte no longer holds the value that a kernel wants to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Where (part of) a map lies: rows and columns beyond it wrap around inside it."""

    start: int
    top: int
    left: int
    rows: int
    columns: int


class Pool:
    """A ring of bytes, and where each map lies at the moment."""

    def __init__(self, size_bytes: int, maps: Mapping[str, FeatureMap]) -> None:
        self.bytes = np.zeros(size_bytes, np.int8)
        self.holds = np.full(size_bytes, -1, np.int64)
        self.maps: dict[str, Ints] = {}
        sizes = [m.height * m.width * m.channels for m in maps.values()]
        self._first = dict(zip(maps, np.cumsum([0, *sizes]).tolist(), strict=False))

    def place(self, of: FeatureMap, at: Region) -> None:
        shape = at.start, at.top, at.left, at.rows, at.columns, of.height, of.width, of.channels
        self.maps[of.name] = np.array([*shape, self._first[of.name]], np.int64)

    def read(self, read: FeatureMap, pixel: int, channels: slice) -> Ints:
        """Raises ``ClobberedError`` unless they still are what they were."""
        into = np.zeros(len(range(read.channels)[channels]), np.int64)
        first = channels.start or 0
        if not bytewise.load(self.bytes, self.holds, self.maps[read.name], pixel, first, into):
            raise ClobberedError(f"{read.name} was overwritten before its last use")
        return into

    def write(self, written: FeatureMap, pixel: int, first: int, values: Ints) -> None:
        """Channels from ``first`` on."""
        of = self.maps[written.name]
        bytewise.store(self.bytes, self.holds, of, pixel, first, values)


def execute(layers: Sequence[Layer], plan: MemoryPlan, values: Values) -> Int8:
    """The network's results by the plan, in a pool of ``plan.pool_bytes``.

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
        pool.maps.clear()
        for name in starts.keys() & maps.keys():
            pool.place(maps[name], _whole(maps[name], starts[name]))
        if number == 0:
            for pixel, row in enumerate(values.source.astype(np.int64)):
                pool.write(source, pixel, 0, row)
        members = [by_name[name] for name in step.layers]
        _run(_Kernel(layers=members, step=step, starts=starts, pool=pool, values=values))
    return np.concatenate([_whole_map(pool, result) for result in results_of(layers)])


def _whole(of: FeatureMap, start: int) -> Region:
    return Region(start=start, top=0, left=0, rows=of.height, columns=of.width)


def _whole_map(pool: Pool, of: FeatureMap) -> Int8:
    if of.name not in pool.maps:
        raise ClobberedError(f"the result {of.name} has no place at the end")
    pixels = (pool.read(of, pixel, slice(None)) for pixel in range(of.height * of.width))
    return np.concatenate(list(pixels)).astype(np.int8)


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
        _run_layer(kernel, kernel.layers[0])


def _run_layer(kernel: _Kernel, layer: Layer) -> None:
    """The whole layer, in the order of its kernel."""
    if layer.kind == "other":
        _run_nest(kernel, layer)
        return
    made = _Maker(layer, kernel, max(1, kernel.step.segment_bytes))
    if kernel.step.in_place:
        made.in_place()
    else:
        made.pixels(0, layer.output.height * layer.output.width)


def _run_nest(kernel: _Kernel, layer: Layer) -> None:
    pool, target = kernel.pool, layer.output
    for written, loads in nest_steps(layer):
        loaded = [
            [_value(pool, source, address) for address in addresses]
            for source, addresses in zip(layer.inputs, loads, strict=True)
        ]
        result = np.array([nest_value(loaded)], np.int64)
        for address in written:
            pixel, channel = divmod(address, target.channels)
            pool.write(target, pixel, channel, result)


def _value(pool: Pool, source: FeatureMap, address: int) -> int:
    pixel, channel = divmod(address, source.channels)
    return int(pool.read(source, pixel, slice(channel, channel + 1))[0])


def _run_rows(kernel: _Kernel) -> None:
    """Row by row of the output; what is kept as a single pixel is made when it is read."""
    kept = {b.feature_map.name: b for b in fuse(kernel.layers).buffers}
    for name, buffer in kept.items():
        size = (buffer.rows, buffer.feature_map.width) if buffer.rows else (1, 1)
        start = kernel.starts[f"{name} (part)"]
        region = Region(start=start, top=0, left=0, rows=size[0], columns=size[1])
        kernel.pool.place(buffer.feature_map, region)
    makers = {layer.output.name: _Maker(layer, kernel, 1) for layer in kernel.layers}
    on_demand = {x.output.name: x for x in kernel.layers[:-1] if not kept[x.output.name].rows}

    def make_row(layer: Layer, row: int) -> None:
        if layer.output.name not in on_demand:
            for column in range(layer.output.width):
                make_pixel(layer, row * layer.output.width + column)

    def make_pixel(layer: Layer, pixel: int) -> None:
        for source in layer.inputs:
            if source.name in on_demand:
                make_pixel(on_demand[source.name], pixel)
        makers[layer.output.name].pixels(pixel, pixel + 1)

    rows = Rows(kernel.layers, make_row)
    for row in range(kernel.layers[-1].output.height):
        rows.make(kernel.layers[-1].output.name, row)


def _run_patches(kernel: _Kernel) -> None:
    start = kernel.starts[f"patches of {kernel.layers[0].name} (part)"]
    per_side = math.isqrt(kernel.step.patches)
    layout = patch_layout(kernel.layers, per_side)
    maps = maps_of(kernel.layers)
    for patch in patches_of(kernel.layers, per_side):
        for name, offset in layout.items():
            region = Region(
                start=start + offset,
                top=patch.rows[name][0],
                left=patch.columns[name][0],
                rows=length(patch.rows, name),
                columns=length(patch.columns, name),
            )
            kernel.pool.place(maps[name], region)
        for layer in kernel.layers:
            made = _Maker(layer, kernel, 1)
            for first, last in _pixels(layer.output, patch):
                made.pixels(first, last)


def _pixels(of: FeatureMap, patch: Patch) -> Iterator[tuple[int, int]]:
    """The patch's pixels, row by row."""
    (top, bottom), (left, right) = patch.rows[of.name], patch.columns[of.name]
    for row in range(top, bottom + 1):
        yield row * of.width + left, row * of.width + right + 1


class _Maker:
    """A layer's kernel, with its maps where they lie when it is created."""

    def __init__(self, layer: Layer, kernel: _Kernel, segment_bytes: int) -> None:
        source, target = layer.inputs[0], layer.output
        weights = kernel.values.weights[layer.name]
        everything = layer.kind == "dense"
        windows = [
            (0 if everything else w.size, w.stride, w.dilation, w.pad)
            for w in (layer.rows, layer.columns)
        ]
        taps = source.height * source.width if everything else layer.rows.size * layer.columns.size
        inputs = [kernel.pool.maps[i.name] for i in layer.inputs]
        channels = max(m.channels for m in layer.inputs)
        values = max(taps * channels, source.height * source.width)
        self.layer = layer
        self._memory = kernel.pool.bytes, kernel.pool.holds
        self._task = _KINDS[layer.kind], np.array(windows, np.int64), weights, segment_bytes
        self._maps = kernel.pool.maps[target.name], np.stack(inputs)
        self._room = (
            np.zeros((taps, 2), np.int64),
            np.zeros(values, np.int64),
            np.zeros(target.channels, np.int64),
        )

    def pixels(self, first: int, last: int) -> None:
        """Output pixels from the first up to the last, segment by segment."""
        self._check(
            bytewise.run_pixels(self._task, (first, last), self._memory, self._maps, self._room)
        )

    def in_place(self) -> None:
        """The whole layer over its own input, a channel at a time through a buffer."""
        self._check(bytewise.run_in_place(self._task, self._memory, self._maps, self._room))

    def _check(self, clobbered: int) -> None:
        if clobbered >= 0:
            name = self.layer.inputs[clobbered].name
            raise ClobberedError(f"{name} was overwritten before its last use")

"""Layers executed together, row by row: only a few rows of what lies between them exist.

The kernel of a fused stage makes one row of the stage's output after the other and asks for the
rows that it needs: an intermediate map is a buffer of as many rows as its window reaches over (a
line buffer), and nothing is computed twice. Where the window is one pixel, a pixel is enough.
The output may overwrite rows of the stage's input that no layer will read again. That is vMCU's
kernel for inverted bottlenecks, for any run of layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mapper.memory_plan.layers import FeatureMap, Layer
from mapper.memory_plan.offsets import first_read, overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class LineBuffer:
    """What is kept of an intermediate map: whole rows, or (``rows`` 0) one pixel."""

    feature_map: FeatureMap
    rows: int

    @property
    def size_bytes(self) -> int:
        if self.rows == 0:
            return self.feature_map.pixel_bytes
        return self.rows * self.feature_map.row_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedStage:
    """Memory of a fused stage: input and output in the ring, line buffers beside them."""

    source: FeatureMap
    target: FeatureMap
    offset_bytes: int
    buffers: tuple[LineBuffer, ...]

    @property
    def span_bytes(self) -> int:
        """Bytes of the ring for input and output."""
        return max(self.offset_bytes + self.source.size_bytes, self.target.size_bytes)

    @property
    def workspace_bytes(self) -> int:
        return sum(buffer.size_bytes for buffer in self.buffers)

    @property
    def size_bytes(self) -> int:
        return self.span_bytes + self.workspace_bytes


def can_fuse(layers: Sequence[Layer]) -> bool:
    """Whether the layers slide over their maps and have one input and one output.

    Every map inside is made by one layer, read by another one of the stage and not needed later.
    """
    made = [layer.output.name for layer in layers]
    read = {i.name for layer in layers for i in layer.inputs}
    inside = layers[:-1]
    closed = len(set(made)) == len(made) and {x.output.name for x in inside} <= read
    closed = closed and not any(layer.output.is_result for layer in inside)
    return closed and len(read - set(made)) == 1 and all(layer.slides for layer in layers)


def fuse(layers: Sequence[Layer]) -> FusedStage:
    """The stage of layers that ``can_fuse``; the last one makes the stage's output."""
    rows = Rows(layers)
    on_demand = {x.name for x in layers[:-1] if _is_pixel(rows.readers[x.output.name])}
    late = [x for x in rows.readers[rows.source.name] if x.name in on_demand or x is layers[-1]]
    target = layers[-1].output
    offset = target.size_bytes if rows.source.is_result else 0
    offset = max((offset, *(_pixel_offset(x, rows.source, layers[-1]) for x in late)))
    for row in range(target.height):
        rows.make(target.name, row)
        oldest = rows.oldest_of_source(late)
        offset = max(offset, (row + 1) * target.row_bytes - oldest * rows.source.row_bytes)
    return FusedStage(
        source=rows.source,
        target=target,
        offset_bytes=offset,
        buffers=tuple(
            LineBuffer(
                feature_map=x.output, rows=0 if x.name in on_demand else rows.most[x.output.name]
            )
            for x in layers[:-1]
        ),
    )


def least_fused_bytes(layers: Sequence[Layer]) -> int:
    """A bound for ``fuse`` that only grows with more layers: the input, and of each map inside the
    rows that its reader's window spans."""
    made = {layer.output.name for layer in layers[:-1]}
    source = next(i for layer in layers for i in layer.inputs if i.name not in made)
    rows: dict[str, tuple[FeatureMap, int]] = {}
    for layer in layers:
        for read in layer.inputs:
            reach = min(layer.rows.reach, read.height)
            if read.name in made and not _is_pixel([layer]):
                rows[read.name] = read, max(reach, rows.get(read.name, (read, 0))[1])
    return source.size_bytes + sum(read.row_bytes * reach for read, reach in rows.values())


def least_workspace_bytes(layers: Sequence[Layer]) -> int:
    """A closer bound for line buffers: what the first row of the output makes of a map, when its
    readers have made no more than that row needs of theirs (a residual waits for the others)."""
    needed = {layers[-1].output.name: 0}
    readers: dict[str, list[Layer]] = {}
    total = 0
    for layer in reversed(layers):
        made = layer.output
        if layer is not layers[-1] and not _is_pixel(readers[made.name]):
            total += made.row_bytes * _rows_of_first(made, readers[made.name], needed)
        for read in {i.name: i for i in layer.inputs}.values():
            last = _last_row(layer, read, needed[made.name])
            needed[read.name] = max(needed.get(read.name, 0), last)
            readers.setdefault(read.name, []).append(layer)
    return total


def _rows_of_first(read: FeatureMap, readers: Sequence[Layer], needed: Mapping[str, int]) -> int:
    """And at least the window of every reader."""
    oldest = min(first_read(x.rows, needed[x.output.name]) for x in readers)
    reach = max(x.rows.reach for x in readers)
    return max(min(reach, read.height), needed[read.name] + 1 - oldest)


def _is_pixel(readers: Sequence[Layer]) -> bool:
    """Whether the one reader of a map needs just the pixel at its own position."""
    windows = ((x.rows.reach, x.columns.reach, x.rows.stride, x.columns.stride) for x in readers)
    return len(readers) == 1 and set(windows) == {(1, 1, 1, 1)}


def _pixel_offset(reader: Layer, source: FeatureMap, last: Layer) -> int:
    """Least offset for a layer that reads the stage's input while the output is written.

    It runs once per output pixel, just before that is written; what it will read for later
    pixels must not be touched. A residual connection may be overwritten channel by channel.
    """
    if reader is last:
        others = tuple(i for i in last.inputs if i.name != source.name)
        return overlap(replace(last, inputs=(source, *others))).offset
    target = last.output
    first_row = np.array([first_read(reader.rows, p) for p in range(target.height)])
    first_column = np.array([first_read(reader.columns, q) for q in range(target.width)])
    starts = (first_row[:, None] * source.width + first_column).ravel() * source.pixel_bytes
    read_later = np.minimum.accumulate(starts[::-1])[::-1][1:]
    written = np.arange(1, len(starts)) * target.pixel_bytes
    return int(max(0, *(written - read_later))) if len(starts) > 1 else 0


def _ignore(layer: Layer, row: int) -> None:
    return


class Rows:
    """Which rows of each map exist while the stage runs; ``most`` is how many at once.

    ``on_row`` is called for each row when what it reads is there.
    """

    def __init__(
        self, layers: Sequence[Layer], on_row: Callable[[Layer, int], None] = _ignore
    ) -> None:
        self.on_row = on_row
        self.makers = {layer.output.name: layer for layer in layers}
        self.made = dict.fromkeys(self.makers, 0)
        self.most = dict.fromkeys(self.makers, 0)
        self.source = next(i for x in layers for i in x.inputs if i.name not in self.made)
        self.readers: dict[str, list[Layer]] = {self.source.name: []}
        for layer in layers:
            for read in {i.name for i in layer.inputs}:
                self.readers.setdefault(read, []).append(layer)

    def make(self, name: str, row: int) -> None:
        """Rows of a map up to ``row``, and before them what they read."""
        layer = self.makers[name]
        while self.made[name] <= row:
            for source in layer.inputs:
                if source.name in self.makers:
                    self.make(source.name, _last_row(layer, source, self.made[name]))
            self.on_row(layer, self.made[name])
            self.made[name] += 1
            kept = self.made[name] - self._oldest(layer.output, self.readers.get(name, []))
            self.most[name] = max(self.most[name], kept)

    def oldest_of_source(self, but: Sequence[Layer]) -> int:
        """The first row of the stage's input that some layer (``but`` for some) has yet to read."""
        readers = [reader for reader in self.readers[self.source.name] if reader not in but]
        return self._oldest(self.source, readers)

    def _oldest(self, read: FeatureMap, readers: Sequence[Layer]) -> int:
        next_rows = ((layer, self.made[layer.output.name]) for layer in readers)
        waiting = [
            first_read(layer.rows, row) for layer, row in next_rows if row < layer.output.height
        ]
        return min(waiting, default=read.height)


def _last_row(layer: Layer, source: FeatureMap, row: int) -> int:
    last = row * layer.rows.stride - layer.rows.pad + layer.rows.reach - 1
    return min(last, source.height - 1)

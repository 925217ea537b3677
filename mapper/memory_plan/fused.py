"""Layers executed together, row by row: only a few rows of what lies between them exist.

The kernel of a fused stage makes one row of the stage's output after the other and asks for the
rows that it needs: an intermediate map is a buffer of as many rows as its window reaches over (a
line buffer), and nothing is computed twice. Where the window is one pixel, a pixel is enough.
The output may overwrite rows of the stage's input that no layer will read again. That is vMCU's
kernel for inverted bottlenecks, for any run of layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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

    Every map inside is made by one layer and read by another one of the stage.
    """
    made = [layer.output.name for layer in layers]
    read = {i.name for layer in layers for i in layer.inputs}
    closed = len(set(made)) == len(made) and set(made[:-1]) <= read
    return closed and len(read - set(made)) == 1 and all(layer.slides for layer in layers)


def fuse(layers: Sequence[Layer]) -> FusedStage:
    """The stage of layers that ``can_fuse``; the last one makes the stage's output."""
    rows = _Rows(layers)
    target = layers[-1].output
    needed: list[int] = []
    for row in range(target.height):
        rows.make(target.name, row)
        needed.append(rows.oldest_of_source())
    return FusedStage(
        source=rows.source,
        target=target,
        offset_bytes=_offset_bytes(layers, rows.source, needed),
        buffers=tuple(
            LineBuffer(feature_map=layer.output, rows=_kept_rows(rows, layer.output.name))
            for layer in layers[:-1]
        ),
    )


def _offset_bytes(layers: Sequence[Layer], source: FeatureMap, needed: Sequence[int]) -> int:
    """Least bytes of the output before the input; ``needed[p]`` is the oldest input row that is
    read after the row ``p`` of the output is written."""
    last = layers[-1]
    row_bytes = last.output.row_bytes
    ends = [(p + 1) * row_bytes - oldest * source.row_bytes for p, oldest in enumerate(needed)]
    same = [i for i in last.inputs if i.name == source.name]
    if same:  # a residual connection reads each input pixel just before its output is written
        others = tuple(i for i in last.inputs if i.name != source.name)
        ends.append(overlap(replace(last, inputs=(source, *others))).offset)
    return max(0, *ends)


def _kept_rows(rows: _Rows, name: str) -> int:
    readers = rows.readers[name]
    pixels = all(r.rows.reach == r.columns.reach == r.rows.stride == 1 for r in readers)
    return 0 if pixels and len(readers) == 1 else rows.most[name]


class _Rows:
    """Which rows of each map exist while the stage runs; ``most`` is how many at once."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.makers = {layer.output.name: layer for layer in layers}
        self.made = dict.fromkeys(self.makers, 0)
        self.most = dict.fromkeys(self.makers, 0)
        self.source = next(i for x in layers for i in x.inputs if i.name not in self.made)
        self.readers: dict[str, list[Layer]] = {self.source.name: []}
        for layer in layers:
            for read in {i.name for i in layer.inputs}:
                self.readers.setdefault(read, []).append(layer)
        self.last = layers[-1]

    def make(self, name: str, row: int) -> None:
        """Rows of a map up to ``row``, and before them what they read."""
        layer = self.makers[name]
        while self.made[name] <= row:
            for source in layer.inputs:
                if source.name in self.makers:
                    self.make(source.name, _last_row(layer, source, self.made[name]))
            self.made[name] += 1
            kept = self.made[name] - self._oldest(layer.output, self.readers.get(name, []))
            self.most[name] = max(self.most[name], kept)

    def oldest_of_source(self) -> int:
        """The first row of the stage's input that some layer but the last has yet to read."""
        readers = [r for r in self.readers[self.source.name] if r is not self.last]
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

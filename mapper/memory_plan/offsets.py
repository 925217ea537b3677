"""How far below its input a layer's output may be written while the input is still read.

The idea is vMCU's (Zheng et al., "vMCU: Coordinated Memory Management and Kernel Optimization
for DNN Inference on MCUs", MLSys 2024): memory is a ring of segments; the output starts ``d``
segments before the input and overwrites what was read for the last time. A step of the kernel
may write over what it reads itself for the last time, not over what a later step reads. Least
``d`` means least memory: ``max(d + input, output)`` segments. Windows are taken to cover their
input (the stride is at most the window); pixels that no window reads are kept nevertheless,
but for those behind the last one read.

Kernels walk over output pixels in rows, then over output channels, and read the whole window of
all input channels for each (of the same channel in a depthwise layer).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mapper.memory_plan.affine import distances
from mapper.memory_plan.layers import FeatureMap, Layer, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """The least offset of a layer's output before one of its inputs, in segments."""

    segment_bytes: int
    offset: int
    input_segments: int
    read_segments: int
    output_segments: int

    @property
    def span(self) -> int:
        """Segments that a ring needs for input and output of this layer together.

        What lies behind the last segment that is read at all may be overwritten at once.
        """
        return max(self.offset + self.read_segments, self.input_segments, self.output_segments)

    @property
    def span_bytes(self) -> int:
        return self.span * self.segment_bytes


def default_segment_bytes(layer: Layer) -> int:
    """vMCU's choice: the smaller row of a dense layer, the fewer channels of a convolution."""
    return min(layer.inputs[0].pixel_bytes, layer.output.pixel_bytes)


def segments_of(feature_map: FeatureMap, segment_bytes: int) -> int:
    """Segments of a map; each pixel starts a new one."""
    pixels = feature_map.height * feature_map.width
    return pixels * -(-feature_map.pixel_bytes // segment_bytes)


def overlap(layer: Layer, segment_bytes: int = 1) -> Overlap:
    """The least offset before the first input: in closed form, else by the integer program.

    The condition is separable over rows and columns of the output, and concave in each, so the
    worst pixel lies where the window leaves the padding, or in a corner. A layer that may read
    anything at any time must not overlap its input at all.
    """
    source, target = layer.inputs[0], layer.output
    if source.name in layer.nests and not layer.is_part and segment_bytes == 1:
        return _of_nest(layer)
    inputs, outputs = segments_of(source, segment_bytes), segments_of(target, segment_bytes)
    return Overlap(
        segment_bytes=segment_bytes,
        offset=_OFFSETS[layer.kind](layer, segment_bytes),
        input_segments=inputs,
        read_segments=_read_segments(layer, segment_bytes),
        output_segments=outputs,
    )


def _of_nest(layer: Layer) -> Overlap:
    source, target = layer.inputs[0], layer.output
    found = distances(layer.nests[source.name])
    return Overlap(
        segment_bytes=1,
        offset=max(0, found.offset),
        input_segments=source.size_bytes,
        read_segments=max(0, found.read),
        output_segments=target.size_bytes,
    )


def _read_segments(layer: Layer, segment_bytes: int) -> int:
    """Segments up to the last one that any step reads."""
    source, target = layer.inputs[0], layer.output
    if layer.kind in ("dense", "other"):
        return segments_of(source, segment_bytes)
    row = last_read(layer.rows, target.height, source.height)
    column = last_read(layer.columns, target.width, source.width)
    return (row * source.width + column + 1) * -(-source.pixel_bytes // segment_bytes)


def _sliding(layer: Layer, segment_bytes: int) -> int:
    """A channel of the output needs all channels of its window: the last one decides."""
    channels = -(-layer.output.pixel_bytes // segment_bytes)
    return max(0, _per_pixel(layer, segment_bytes) + channels - 1)


def _per_channel(layer: Layer, segment_bytes: int) -> int:
    return max(0, _per_pixel(layer, segment_bytes))


def _dense(layer: Layer, segment_bytes: int) -> int:
    return segments_of(layer.output, segment_bytes) - 1


def _apart(layer: Layer, segment_bytes: int) -> int:
    return segments_of(layer.output, segment_bytes)


_OFFSETS = {
    "conv2d": _sliding,
    "depthwise": _per_channel,
    "pool": _per_channel,
    "elementwise": _per_channel,
    "dense": _dense,
    "other": _apart,
}


def _per_pixel(layer: Layer, segment_bytes: int) -> int:
    """Most segments that the first one of an output pixel is ahead of its window's first."""
    source, target = layer.inputs[0], layer.output
    read = -(-source.pixel_bytes // segment_bytes)
    written = -(-target.pixel_bytes // segment_bytes)
    down = _ahead(target.height, written * target.width, read * source.width, layer.rows)
    along = _ahead(target.width, written, read, layer.columns)
    return down + along


def _ahead(count: int, write_step: int, read_step: int, window: Window) -> int:
    """Largest ``p * write_step - first(p) * read_step`` of ``count`` positions."""
    turning = window.pad // window.stride
    candidates = {min(max(p, 0), count - 1) for p in (0, turning, turning + 1, count - 1)}
    return max(p * write_step - first_read(window, p) * read_step for p in candidates)


def first_read(window: Window, position: int) -> int:
    """The first row (or column) inside the map that an output position reads."""
    start = position * window.stride - window.pad
    return start if start >= 0 else start + -(start // window.dilation) * window.dilation


def last_read(window: Window, positions: int, size: int) -> int:
    """The last row (or column) inside the map that any of the output positions reads.

    With a stride of at most the window, that is where the last position's window ends.
    """
    tail = range(max(0, positions - 2), positions)
    return max((_inside(window, p, size) or [0])[-1] for p in tail)


def steps(layer: Layer, segment_bytes: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The kernel, step by step: the output segment written and the input segments read."""
    source, target = layer.inputs[0], layer.output
    read = -(-source.pixel_bytes // segment_bytes)
    written = -(-target.pixel_bytes // segment_bytes)
    for p in range(target.height):
        for q in range(target.width):
            pixels = window_pixels(layer, p, q)
            for k in range(written):
                same = layer.kind in ("depthwise", "pool", "elementwise")
                channels = (k,) if same else range(read)
                yield (
                    (p * target.width + q) * written + k,
                    tuple(pixel * read + c for pixel in pixels for c in channels),
                )


def window_pixels(layer: Layer, p: int, q: int) -> tuple[int, ...]:
    """Positions of the input pixels that output pixel ``(p, q)`` reads."""
    source = layer.inputs[0]
    if layer.kind in ("dense", "other"):
        return tuple(range(source.height * source.width))
    return tuple(
        h * source.width + w
        for h in _inside(layer.rows, p, source.height)
        for w in _inside(layer.columns, q, source.width)
    )


def _inside(window: Window, position: int, size: int) -> list[int]:
    start = position * window.stride - window.pad
    reads = (start + i * window.dilation for i in range(window.size))
    return [r for r in reads if 0 <= r < size]

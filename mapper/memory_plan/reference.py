"""What the layers of a network compute on int8 values, each on whole maps: the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mapper.memory_plan import affine
from mapper.memory_plan.byte_kernels import SHIFT
from mapper.memory_plan.layers import Layer
from mapper.memory_plan.lifetimes import results_of

Int8 = NDArray[np.int8]
Int64 = NDArray[np.int64]


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


def reference(layers: Sequence[Layer], values: Values) -> Int8:
    """The network's results, one after the other, each activation in memory of its own."""
    maps: dict[str, Int8] = {layers[0].inputs[0].name: values.source}
    for layer in layers:
        sources = [
            maps[i.name].reshape(i.height, i.width, i.channels).astype(np.int64)
            for i in layer.inputs
        ]
        weights = values.weights[layer.name].astype(np.int64)
        result = np.clip(_RESULTS[layer.kind](layer, sources, weights), -128, 127)
        shape = layer.output.height * layer.output.width, layer.output.channels
        maps[layer.output.name] = result.astype(np.int8).reshape(shape)
    return np.concatenate([maps[result.name].ravel() for result in results_of(layers)])


def _taps(layer: Layer, source: Int64) -> Iterator[tuple[int, Int64, Int64]]:
    """For each position of the window: its number, and what all output pixels read there (0
    outside the map) with a mask of those that read anything."""
    target = layer.output
    for r in range(layer.rows.size):
        for s in range(layer.columns.size):
            window = ((layer.rows, r, target.height), (layer.columns, s, target.width))
            rows, columns = (
                np.arange(size) * w.stride - w.pad + i * w.dilation for w, i, size in window
            )
            inside = np.outer(
                (rows >= 0) & (rows < len(source)), (columns >= 0) & (columns < source.shape[1])
            )
            read = source[np.ix_(rows % len(source), columns % source.shape[1])]
            mask = inside[..., None].astype(np.int64)
            yield r * layer.columns.size + s, read * mask, mask


def _conv2d(layer: Layer, sources: Sequence[Int64], weights: Int64) -> Int64:
    total: Int64 = np.zeros(1, np.int64)
    for number, read, _ in _taps(layer, sources[0]):
        total = total + read @ weights[:, number].T
    return total >> SHIFT


def _dense(layer: Layer, sources: Sequence[Int64], weights: Int64) -> Int64:
    return np.asarray((weights.reshape(len(weights), -1) @ sources[0].ravel()) >> SHIFT)


def _filter(layer: Layer, sources: Sequence[Int64], weights: Int64) -> Int64:
    total: Int64 = np.zeros(1, np.int64)
    for number, read, _ in _taps(layer, sources[0]):
        total = total + read * weights[:, number, 0]
    return total >> SHIFT


def _mean(layer: Layer, sources: Sequence[Int64], weights: Int64) -> Int64:
    parts = list(_taps(layer, sources[0]))
    return np.asarray(sum(read for _, read, _ in parts) // sum(mask for *_, mask in parts))


def _sum(layer: Layer, sources: Sequence[Int64], weights: Int64) -> Int64:
    return np.asarray(sum(sources))


def _nest(layer: Layer, sources: Sequence[Int64], weights: Int64) -> Int64:
    flat = [source.ravel() for source in sources]
    result: Int64 = np.zeros(layer.output.height * layer.output.row_bytes, np.int64)
    for written, loads in nest_steps(layer):
        loaded = [[int(f[a]) for a in at] for f, at in zip(flat, loads, strict=True)]
        result[list(written)] = nest_value(loaded)
    return result


def nest_steps(layer: Layer) -> Iterator[tuple[range, list[tuple[int, ...]]]]:
    """A layer of which only the loops are known, step by step: where it writes and, for each of
    its inputs, where it reads."""
    kernels = [affine.steps(layer.nests[source.name]) for source in layer.inputs]
    for together in zip(*kernels, strict=True):
        yield together[0][0], [addresses for _, addresses in together]


def nest_value(loaded: Sequence[Sequence[int]]) -> int:
    """What a step makes of it: a sum in which small weights differ from load to load."""
    total = sum(value * (3 + 2 * (i % 5)) for values in loaded for i, value in enumerate(values))
    return max(-128, min(127, total >> 1))


_RESULTS = {
    "conv2d": _conv2d,
    "dense": _dense,
    "depthwise": _filter,
    "pool": _mean,
    "elementwise": _sum,
    "other": _nest,
}

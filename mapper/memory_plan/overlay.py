"""A linear arena in which a result lies over inputs that its kernel reads for the last time.

As the ring of vMCU, but without a modulo, so that unchanged kernels run in it: TensorFlow Lite
Micro takes such offsets from the file. The reference kernels walk over output pixels in rows, then
over channels, as ``offsets`` assumes; what copies as a block or reads in another order stays apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mapper.memory_plan.arena import TFLM_ALIGNMENT, aligned, extent_bytes, first_fit, tflm_order
from mapper.memory_plan.layers import FeatureMap, Layer, Window
from mapper.memory_plan.offsets import overlap
from mapper.memory_plan.plan import Buffer, Placement
from mapper.workload.tflite_import.embed import ONLINE
from mapper.workload.tflite_import.geometry import window_of
from mapper.workload.tflite_import.model import FileGraph, FileModel, FileOperator

#: (result, input) -> bytes by which the result starts before the input at the least.
Distances = Mapping[tuple[str, str], int]

#: Random exchanges of the order in which tensors are placed.
EXCHANGES = 400
SEED = 1

_WINDOWED = {
    "CONV_2D": "conv2d",
    "DEPTHWISE_CONV_2D": "depthwise",
    "AVERAGE_POOL_2D": "pool",
    "MAX_POOL_2D": "pool",
}
_ELEMENTWISE = frozenset(
    (
        *("ADD", "SUB", "MUL", "RELU", "RELU6", "LEAKY_RELU"),
        *("LOGISTIC", "TANH", "HARD_SWISH", "QUANTIZE", "SOFTMAX"),
    )
)


def layer_of(graph: FileGraph, number: int) -> Layer | None:
    """The call as a layer over the file's own tensors; ``None`` if it may read in any order."""
    operator = graph.operators[number]
    kind = _WINDOWED.get(operator.kind)
    if kind is not None:
        return _windowed(graph, operator, kind)
    if operator.kind == "FULLY_CONNECTED":
        return _dense(graph, operator)
    return _same_position(graph, operator) if operator.kind in _ELEMENTWISE else None


def _windowed(graph: FileGraph, operator: FileOperator, kind: str) -> Layer:
    source, target = (_map(graph, i) for i in (operator.inputs[0], operator.outputs[0]))
    if kind == "pool":
        size = (operator.options["FilterHeight"], operator.options["FilterWidth"])
    else:
        height, width = graph.tensors[operator.inputs[1]].shape[1:3]
        size = (height, width)
    window = window_of(graph, operator, size)
    rows, columns = (
        Window(size=k, stride=s, dilation=d, pad=p)
        for k, s, d, p in zip(
            window.kernel, window.stride, window.dilation, window.padding, strict=True
        )
    )
    several = kind == "depthwise" and source.channels != target.channels
    # Several results per channel: as if each read all channels, which asks for more.
    return _layer("conv2d" if several else kind, source, target, (rows, columns))


def _dense(graph: FileGraph, operator: FileOperator) -> Layer:
    """Rows are pixels: each result needs its whole row."""
    units, length = graph.tensors[operator.inputs[1]].shape
    rows = graph.tensors[operator.inputs[0]].elements // length
    source, target = (
        FeatureMap(
            name=_map(graph, i).name,
            height=rows,
            width=1,
            channels=count,
            bytes_per_value=_map(graph, i).bytes_per_value,
        )
        for i, count in ((operator.inputs[0], length), (operator.outputs[0], units))
    )
    return _layer("conv2d", source, target, (Window(), Window()))


def _same_position(graph: FileGraph, operator: FileOperator) -> Layer | None:
    """Only for the first input of the result's shape and type; the other is read as it is."""
    target = graph.tensors[operator.outputs[0]]
    for number in dict.fromkeys(operator.inputs):
        tensor = graph.tensors[number]
        if (tensor.shape, tensor.type) == (target.shape, target.type) and not tensor.constant:
            source = _map(graph, number)
            result = _map(graph, operator.outputs[0])
            return _layer("elementwise", source, result, (Window(), Window()))
    return None


def _layer(
    kind: str, source: FeatureMap, target: FeatureMap, windows: tuple[Window, Window]
) -> Layer:
    return Layer(
        name=target.name,
        kind=kind,
        inputs=(source,),
        output=target,
        rows=windows[0],
        columns=windows[1],
        macs=0,
        operations=0,
        weight_bytes=0,
    )


def _map(graph: FileGraph, number: int) -> FeatureMap:
    tensor = graph.tensors[number]
    height, width, channels = (
        tensor.shape[1:] if len(tensor.shape) == 4 else (1, 1, tensor.elements)
    )
    return FeatureMap(
        name=graph.tensor_names()[number],
        height=height,
        width=width,
        channels=channels,
        bytes_per_value=tensor.size_bytes // max(1, tensor.elements),
    )


def file_distances(model: FileModel, buffers: Iterable[Buffer]) -> dict[tuple[str, str], int]:
    """For every call of the network that may write over an input which nobody reads later."""
    graph = model.graphs[0]
    names = graph.tensor_names()
    results = {names[number] for number in graph.outputs}
    lives = {buffer.name: buffer for buffer in buffers}
    layers = (layer_of(graph, number) for number in range(len(graph.operators)))
    found = dict(_pairs([layer for layer in layers if layer is not None], lives))
    found |= _paddings(graph, lives)
    return {pair: offset for pair, offset in found.items() if pair[1] not in results}


def _paddings(graph: FileGraph, lives: Mapping[str, Buffer]) -> dict[tuple[str, str], int]:
    """A padding of rows and columns reads and writes value by value: the result is furthest ahead
    at the last value of the input."""
    names = graph.tensor_names()
    found = {}
    for operator in graph.operators:
        if operator.kind != "PAD" or len(graph.tensors[operator.inputs[1]].values) != 8:
            continue
        before = graph.tensors[operator.inputs[1]].values[::2]
        source, target = (graph.tensors[i] for i in (operator.inputs[0], operator.outputs[0]))
        ends = [b + size - 1 for b, size in zip(before, source.shape, strict=True)]
        last = 0
        for end, size in zip(ends, target.shape, strict=True):
            last = last * size + end
        pair = names[operator.outputs[0]], names[operator.inputs[0]]
        if all(name in lives for name in pair) and lives[pair[1]].last == lives[pair[0]].first:
            ahead = last - (source.elements - 1)
            found[pair] = ahead * (target.size_bytes // target.elements)
    return found


def layer_distances(
    layers: Iterable[Layer], buffers: Iterable[Buffer]
) -> dict[tuple[str, str], int]:
    """The same for a network that is from no file; only the first of several inputs."""
    return dict(_pairs(layers, {buffer.name: buffer for buffer in buffers}))


def _pairs(
    layers: Iterable[Layer], lives: Mapping[str, Buffer]
) -> Iterator[tuple[tuple[str, str], int]]:
    for layer in layers:
        if not layer.inputs:
            continue
        source, target = lives.get(layer.inputs[0].name), lives.get(layer.output.name)
        if source is None or target is None or source.last != target.first:
            continue
        if layer.may_overwrite(layer.inputs[0]):
            yield (target.name, source.name), _offset_bytes(layer)


def _offset_bytes(layer: Layer) -> int:
    """In values where both have the same type, else apart."""
    unit = layer.output.bytes_per_value
    if layer.inputs[0].bytes_per_value != unit:
        return layer.output.size_bytes
    return overlap(layer, unit).offset * unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What has places of ours, what the runtime places itself, and what may overlap.

    Addresses are multiples of ``alignment``, the size of the widest value.
    """

    tensors: tuple[Buffer, ...]
    online: tuple[Buffer, ...]
    apart: Distances
    alignment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """``head_bytes`` is what the runtime will report."""

    tensors: tuple[Placement, ...]
    online: tuple[Placement, ...]
    head_bytes: int


def overlay(task: Task) -> Overlay:
    """Tensors by first fit with overlaps, the best of many orders; the rest where the runtime puts
    it. The same input gives the same plan."""
    rng = np.random.default_rng(SEED)
    order = tflm_order(task.tensors)
    best = _planned(order, task)
    for _ in range(EXCHANGES if len(order) > 1 else 0):
        i, j = (int(x) for x in rng.integers(len(order), size=2))
        order[i], order[j] = order[j], order[i]
        tried = _planned(order, task)
        if tried.head_bytes <= best.head_bytes:
            best = tried
        else:
            order[i], order[j] = order[j], order[i]
    return best


def _planned(order: Sequence[Buffer], task: Task) -> Overlay:
    placed: list[Placement] = []
    for buffer in order:
        placed.append(Placement(buffer=buffer, offset_bytes=_lowest(buffer, placed, task)))
    everything = first_fit(tflm_order(task.online), fixed=placed, alignment=TFLM_ALIGNMENT)
    return Overlay(
        tensors=tuple(placed),
        online=tuple(everything[len(placed) :]),
        head_bytes=extent_bytes(everything, TFLM_ALIGNMENT),
    )


def _lowest(buffer: Buffer, placed: Sequence[Placement], task: Task) -> int:
    """The lowest address at which all distances to what is placed are kept."""
    offset = 0
    for low, high in sorted(_taken(buffer, placed, task)):
        if low < offset < high:
            offset = high
    return offset


def _taken(buffer: Buffer, placed: Sequence[Placement], task: Task) -> Iterator[tuple[int, int]]:
    """Open intervals in which the buffer must not start."""
    for other in placed:
        if other.buffer.meets(buffer):
            before = task.apart.get((buffer.name, other.buffer.name), buffer.size_bytes)
            behind = task.apart.get((other.buffer.name, buffer.name), other.buffer.size_bytes)
            yield (
                other.offset_bytes - aligned(before, task.alignment),
                other.offset_bytes + aligned(behind, task.alignment),
            )


def offline_offsets(model: FileModel, placements: Iterable[Placement]) -> tuple[int, ...]:
    """An offset for each tensor of all graphs; what has no place of ours is left to the runtime."""
    places = {p.buffer.name: p.offset_bytes for p in placements}
    first, *others = model.graphs
    return (
        *(places.get(name, ONLINE) for name in first.tensor_names()),
        *(ONLINE for graph in others for _ in graph.tensors),
    )


def live_overlaid_bytes(task: Task) -> int:
    """No plan with these overlaps has less: at each step what lives together, less what any result
    may share with an input."""
    buffers = (*task.tensors, *task.online)
    steps = {buffer.first for buffer in buffers}
    return max(_live(buffers, task.apart, step) for step in steps)


def _live(buffers: Iterable[Buffer], apart: Distances, step: int) -> int:
    live = {b.name: b.size_bytes for b in buffers if b.first <= step <= b.last}
    total = sum(live.values())
    for (target, source), distance in apart.items():
        if target in live and source in live:
            spanned = max(distance + live[source], live[target])
            total -= max(0, live[source] + live[target] - spanned)
    return total

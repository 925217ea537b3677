"""A workload as a microcontroller sees it: layers over maps of height x width x channels.

Activations are dense and channels-last, as TensorFlow Lite, CMSIS-NN, TinyEngine and vMCU keep
them; batch is one. What a layer reads and writes is found from its index expressions, so it
does not matter which importer the workload came from.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from arch.datatypes import bits_of
from arch.errors import InputError, Problem
from mapper.memory_plan.affine import Nest, nest_of
from mapper.workload.graph import Workload
from mapper.workload.operators import Access, AffineIndex, Operator, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureMap:
    """An activation. ``bytes_per_value`` is exact for whole bytes, else rounded per value.

    ``is_result``: the network returns it, so that it stays to the end whoever reads it.
    """

    name: str
    height: int
    width: int
    channels: int
    bytes_per_value: int = 1
    is_result: bool = False

    @property
    def pixel_bytes(self) -> int:
        return self.channels * self.bytes_per_value

    @property
    def row_bytes(self) -> int:
        return self.width * self.pixel_bytes

    @property
    def size_bytes(self) -> int:
        return self.height * self.row_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What one output pixel reads along one axis: ``size`` pixels from ``p * stride - pad``."""

    size: int = 1
    stride: int = 1
    dilation: int = 1
    pad: int = 0

    @property
    def reach(self) -> int:
        """Pixels from the first to the last that are read, both included."""
        return (self.size - 1) * self.dilation + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One operator. ``inputs`` are activations in order; weights are not among them.

    ``kind`` is ``conv2d`` (all channels of a window for each output), ``depthwise`` and ``pool``
    (a window of the same channel), ``elementwise`` (the same position of every input), ``dense``
    (everything for each output) or ``other``, which may read anything at any time unless
    ``nests`` (by input) has its loops; so have convolutions in groups. ``rows`` and ``columns``
    describe the window. ``is_part``: other layers write other parts of the same output.
    """

    name: str
    kind: str
    inputs: tuple[FeatureMap, ...]
    output: FeatureMap
    rows: Window
    columns: Window
    macs: int
    operations: int
    weight_bytes: int
    nests: Mapping[str, Nest] = field(default_factory=dict, hash=False)
    is_part: bool = False

    @property
    def is_pointwise(self) -> bool:
        return self.kind == "conv2d" and self.rows.reach == self.columns.reach == 1

    @property
    def slides(self) -> bool:
        """Whether output row ``p`` depends only on the rows of a window around ``p``."""
        return self.kind in ("conv2d", "depthwise", "pool", "elementwise")

    def may_overwrite(self, source: FeatureMap) -> bool:
        """Whether the output may lie over an input that nobody else reads later."""
        read = sum(other.name == source.name for other in self.inputs)
        return read == 1 and not source.is_result


def layers_of(workload: Workload) -> tuple[Layer, ...]:
    """The operators in order. Raises ``InputError`` for more than one image."""
    writers = Counter(operator.output.tensor for operator in workload.operators)
    return tuple(
        _layer(workload, operator, is_part=writers[operator.output.tensor] > 1)
        for operator in workload.operators
    )


def _layer(workload: Workload, operator: Operator, *, is_part: bool) -> Layer:
    inputs = tuple(a for a in operator.inputs if workload.tensor(a.tensor).kind != "weight")
    weights = [a for a in operator.inputs if workload.tensor(a.tensor).kind == "weight"]
    windows = _windows(operator, inputs[0]) if inputs else (Window(), Window())
    kind = _kind(workload, operator, inputs)
    needs_nests = kind == "other" or (kind == "conv2d" and _is_grouped(operator, inputs[0]))
    return Layer(
        name=operator.name,
        kind=kind,
        inputs=tuple(feature_map(workload, workload.tensor(a.tensor)) for a in inputs),
        output=feature_map(workload, workload.tensor(operator.output.tensor)),
        rows=windows[0],
        columns=windows[1],
        macs=operator.macs,
        operations=operator.operations,
        weight_bytes=sum(_bytes(workload.tensor(a.tensor)) for a in weights),
        nests=_nests(workload, operator, inputs) if needs_nests else {},
        is_part=is_part,
    )


def _nests(workload: Workload, operator: Operator, inputs: tuple[Access, ...]) -> dict[str, Nest]:
    """Loops by input, where they say all: one value at a time, each input read in one way."""
    names = [access.tensor for access in inputs]
    if operator.whole_dims or operator.side or len(set(names)) < len(names):
        return {}
    return {access.tensor: nest_of(workload, operator, access) for access in inputs}


def feature_map(workload: Workload, tensor: Tensor) -> FeatureMap:
    """``(N, C, H, W)`` and rows of values ``(N, C)``; any other shape is one row."""
    sizes = tensor.shape
    if len(sizes) == 4 and sizes[0] != 1:
        message = f"tensor {tensor.name} has {sizes[0]} images; a microcontroller runs one"
        raise InputError(Problem(message, where=f"workload {workload.name}"))
    height, width, channels = _map_shape(sizes)
    return FeatureMap(
        name=tensor.name,
        height=height,
        width=width,
        channels=channels,
        bytes_per_value=math.ceil(bits_of(tensor.dtype) / 8),
        is_result=tensor.kind == "output",
    )


def _map_shape(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    match sizes:
        case (_, channels, height, width):
            return height, width, channels
        case (rows, channels):
            return rows, 1, channels
        case _:
            return 1, 1, math.prod(sizes)


def _bytes(tensor: Tensor) -> int:
    return math.ceil(tensor.elements * bits_of(tensor.dtype) / 8)


def _kind(workload: Workload, operator: Operator, inputs: tuple[Access, ...]) -> str:
    shapes = {workload.tensor(a.tensor).shape for a in inputs}
    reduced = operator.reduction_dims()
    target = workload.tensor(operator.output.tensor)
    written = math.prod(e for d, e in operator.extents.items() if d not in reduced)
    if written != target.elements:
        return "other"
    spatial = len(operator.output.index) == 4
    if not reduced and shapes == {target.shape}:
        return "elementwise"
    if operator.operation != "mac":
        return "pool" if spatial and len(inputs) == 1 else "other"
    if len(inputs) != 1:
        return "other"
    if not spatial:
        return _matrix_kind(workload, operator, inputs[0])
    return "depthwise" if _is_depthwise(operator, inputs[0]) else "conv2d"


def _matrix_kind(workload: Workload, operator: Operator, access: Access) -> str:
    """A product with one row is dense; with several, each row is a pixel of its own."""
    sizes = workload.tensor(access.tensor).shape
    if len(sizes) != 2 or sizes[0] == 1:
        return "dense"
    return "conv2d" if access.index[0] == operator.output.index[0] else "other"


def _is_grouped(operator: Operator, access: Access) -> bool:
    """Whether which channels are read depends on those written."""
    if len(access.index) != 4:
        return False
    read = {dim for dim in access.index[1].dims if operator.extents[dim] > 1}
    return bool(read & set(operator.output.index[1].dims))


def _is_depthwise(operator: Operator, access: Access) -> bool:
    """Whether the channel read is the channel written: the loop over channels is in both."""
    read = {dim for dim in access.index[1].dims if operator.extents[dim] > 1}
    return bool(read) and read <= set(operator.output.index[1].dims)


def _windows(operator: Operator, access: Access) -> tuple[Window, Window]:
    if len(access.index) != 4:
        return Window(), Window()
    return _window(operator, access.index[2]), _window(operator, access.index[3])


def _window(operator: Operator, index: AffineIndex) -> Window:
    """The terms of an axis: those of output loops are the stride, the others the kernel."""
    outer = [(d, c) for d, c in index.terms if d in operator.output.dims]
    inner = [(d, c) for d, c in index.terms if d not in operator.output.dims]
    return Window(
        size=math.prod(operator.extents[d] for d, _ in inner),
        stride=outer[0][1] if outer else 1,
        dilation=inner[0][1] if inner else 1,
        pad=-index.offset,
    )

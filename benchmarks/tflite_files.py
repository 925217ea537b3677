"""Writing ``.tflite`` files: small networks of our own, for tests and for comparisons.

Weights are random or none; what matters are shapes, types and the order of tensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite
from numpy.typing import NDArray

#: How much room a builder starts with.
START_BYTES = 4096
#: Everything is quantized alike, so that any operator may follow any other.
SCALE, ZERO_POINT = 0.5, 0

_TYPES = {
    "int8": (tflite.TensorType.INT8, np.int8),
    "int16": (tflite.TensorType.INT16, np.int16),
    "int32": (tflite.TensorType.INT32, np.int32),
    "float32": (tflite.TensorType.FLOAT32, np.float32),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """``channels_axis``: one scale per position of this axis (weights of convolutions)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    values: NDArray[Any] | None = None
    variable: bool = False
    scale: float = SCALE
    zero_point: int = ZERO_POINT
    channels_axis: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """``table`` and ``options`` as the schema names them (``Conv2DOptions``, ``StrideH``)."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: str = ""
    options: Mapping[str, int | float | bool] = field(default_factory=dict)


@dataclass(slots=True)
class Network:
    """A graph that grows; tensors are numbered in the order in which they are added."""

    tensors: list[Tensor] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)

    def tensor(self, shape: Sequence[int], dtype: str = "int8", **more: Any) -> int:
        name = f"t{len(self.tensors)}"
        self.tensors.append(Tensor(name=name, shape=tuple(shape), dtype=dtype, **more))
        return len(self.tensors) - 1

    def constant(self, values: NDArray[Any], **more: Any) -> int:
        dtype = next(name for name, (_, kind) in _TYPES.items() if kind == values.dtype)
        return self.tensor(values.shape, dtype, values=values, **more)

    def add(
        self,
        kind: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        table: str = "",
        **options: Any,
    ) -> None:
        self.operators.append(
            Operator(
                kind=kind,
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                table=table,
                options=options,
            )
        )

    def shape(self, number: int) -> tuple[int, ...]:
        return self.tensors[number].shape

    def file(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The network as the bytes of a ``.tflite`` file."""
        return _Writer(self).written(inputs, outputs)


class _Writer:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.builder = flatbuffers.Builder(START_BYTES)
        self.kinds = list(dict.fromkeys(o.kind for o in network.operators))

    def written(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        builder = self.builder
        buffers = [self._buffer(b"")]
        numbers = []
        for tensor in self.network.tensors:
            numbers.append(0 if tensor.values is None else len(buffers))
            if tensor.values is not None:
                buffers.append(self._buffer(tensor.values.tobytes()))
        tensors = [self._tensor(t, n) for t, n in zip(self.network.tensors, numbers, strict=True)]
        operators = [self._operator(o) for o in self.network.operators]
        graph = self._graph(tensors, operators, (inputs, outputs))
        codes = [self._code(kind) for kind in self.kinds]
        parts = [self._offsets(x) for x in (codes, [graph], buffers)]
        text = builder.CreateString("tilewright")
        tflite.ModelStart(builder)
        tflite.ModelAddVersion(builder, 3)
        tflite.ModelAddOperatorCodes(builder, parts[0])
        tflite.ModelAddSubgraphs(builder, parts[1])
        tflite.ModelAddDescription(builder, text)
        tflite.ModelAddBuffers(builder, parts[2])
        builder.Finish(tflite.ModelEnd(builder), b"TFL3")
        return bytes(builder.Output())

    def _offsets(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def _buffer(self, data: bytes) -> int:
        vector = None
        if data:
            # Aligned to 16 bytes, as the schema forces it.
            self.builder.StartVector(1, len(data), 16)
            self.builder.head -= len(data)
            self.builder.Bytes[self.builder.head : self.builder.head + len(data)] = data
            vector = self.builder.EndVector()
        tflite.BufferStart(self.builder)
        if vector is not None:
            tflite.BufferAddData(self.builder, vector)
        return int(tflite.BufferEnd(self.builder))

    def _ints(self, values: Sequence[int]) -> int:
        return int(self.builder.CreateNumpyVector(np.array(values, np.int32)))

    def _tensor(self, tensor: Tensor, buffer: int) -> int:
        builder = self.builder
        name, shape = builder.CreateString(tensor.name), self._ints(tensor.shape)
        quantized = self._quantization(tensor) if tensor.dtype != "float32" else None
        tflite.TensorStart(builder)
        tflite.TensorAddShape(builder, shape)
        tflite.TensorAddType(builder, _TYPES[tensor.dtype][0])
        tflite.TensorAddBuffer(builder, buffer)
        tflite.TensorAddName(builder, name)
        tflite.TensorAddIsVariable(builder, tensor.variable)
        if quantized is not None:
            tflite.TensorAddQuantization(builder, quantized)
        return int(tflite.TensorEnd(builder))

    def _quantization(self, tensor: Tensor) -> int:
        axis = tensor.channels_axis
        count = 1 if axis is None else tensor.shape[axis]
        scales = self.builder.CreateNumpyVector(np.full(count, tensor.scale, np.float32))
        zeros = self.builder.CreateNumpyVector(np.full(count, tensor.zero_point, np.int64))
        tflite.QuantizationParametersStart(self.builder)
        tflite.QuantizationParametersAddScale(self.builder, scales)
        tflite.QuantizationParametersAddZeroPoint(self.builder, zeros)
        tflite.QuantizationParametersAddQuantizedDimension(self.builder, axis or 0)
        return int(tflite.QuantizationParametersEnd(self.builder))

    def _operator(self, operator: Operator) -> int:
        builder = self.builder
        inputs, outputs = self._ints(operator.inputs), self._ints(operator.outputs)
        options = self._options(operator) if operator.table else None
        tflite.OperatorStart(builder)
        tflite.OperatorAddOpcodeIndex(builder, self.kinds.index(operator.kind))
        tflite.OperatorAddInputs(builder, inputs)
        tflite.OperatorAddOutputs(builder, outputs)
        if options is not None:
            tflite.OperatorAddBuiltinOptionsType(
                builder, getattr(tflite.BuiltinOptions, operator.table)
            )
            tflite.OperatorAddBuiltinOptions(builder, options)
        return int(tflite.OperatorEnd(builder))

    def _options(self, operator: Operator) -> int:
        getattr(tflite, f"{operator.table}Start")(self.builder)
        for name, value in operator.options.items():
            getattr(tflite, f"{operator.table}Add{name}")(self.builder, value)
        return int(getattr(tflite, f"{operator.table}End")(self.builder))

    def _graph(
        self, tensors: Sequence[int], operators: Sequence[int], ends: tuple[Sequence[int], ...]
    ) -> int:
        lists = [self._offsets(tensors), *map(self._ints, ends), self._offsets(operators)]
        tflite.SubGraphStart(self.builder)
        tflite.SubGraphAddTensors(self.builder, lists[0])
        tflite.SubGraphAddInputs(self.builder, lists[1])
        tflite.SubGraphAddOutputs(self.builder, lists[2])
        tflite.SubGraphAddOperators(self.builder, lists[3])
        return int(tflite.SubGraphEnd(self.builder))

    def _code(self, kind: str) -> int:
        number = getattr(tflite.BuiltinOperator, kind)
        tflite.OperatorCodeStart(self.builder)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self.builder, min(number, 127))
        tflite.OperatorCodeAddVersion(self.builder, 1)
        tflite.OperatorCodeAddBuiltinCode(self.builder, number)
        return int(tflite.OperatorCodeEnd(self.builder))


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """``padding``: 0 keeps the size, 1 takes what is there, as in the schema."""

    channels: int
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: int = 0
    depthwise: bool = False


def out_size(size: int, kernel: int, stride: int, padding: int) -> int:
    return -(-size // stride) if padding == 0 else (size - kernel) // stride + 1


def convolution(network: Network, source: int, what: Convolution, rng: np.random.Generator) -> int:
    """Adds a convolution with random int8 weights; returns its result."""
    _, height, width, channels = network.shape(source)
    target = channels if what.depthwise else what.channels
    filters = (1, *what.kernel, target) if what.depthwise else (target, *what.kernel, channels)
    reduced = math.prod(what.kernel) * (1 if what.depthwise else channels)
    # Sums of random products spread over the whole range of int8.
    scale = 1.0 / (40.0 * math.sqrt(reduced))
    axis = 3 if what.depthwise else 0
    weight = network.constant(
        rng.integers(-127, 128, filters, dtype=np.int8), scale=scale, channels_axis=axis
    )
    bias = network.constant(
        rng.integers(-99, 99, target, dtype=np.int32), scale=scale * SCALE, channels_axis=0
    )
    rows, columns = (
        out_size(size, k, s, what.padding)
        for size, k, s in zip((height, width), what.kernel, what.stride, strict=True)
    )
    result = network.tensor((1, rows, columns, target))
    kind = "DEPTHWISE_CONV_2D" if what.depthwise else "CONV_2D"
    options: dict[str, int] = {
        "Padding": what.padding,
        "StrideH": what.stride[0],
        "StrideW": what.stride[1],
        "DilationHFactor": 1,
        "DilationWFactor": 1,
    }
    if what.depthwise:
        options["DepthMultiplier"] = 1
    table = "DepthwiseConv2DOptions" if what.depthwise else "Conv2DOptions"
    network.add(kind, (source, weight, bias), (result,), table, **options)
    return result


def dense(network: Network, source: int, units: int, rng: np.random.Generator) -> int:
    """Adds a dense layer over all of ``source`` with random int8 weights."""
    length = math.prod(network.shape(source))
    scale = 1.0 / (40.0 * math.sqrt(length))
    weight = network.constant(rng.integers(-127, 128, (units, length), dtype=np.int8), scale=scale)
    bias = network.constant(rng.integers(-99, 99, units, dtype=np.int32), scale=scale * SCALE)
    result = network.tensor((1, units))
    network.add("FULLY_CONNECTED", (source, weight, bias), (result,), "FullyConnectedOptions")
    return result

"""Reading ``.tflite`` files: a flat buffer by the schema's package, checked as it is read."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from arch.errors import InputError, Problem
from mapper.workload.tflite_import.embed import NAME as OFFLINE_PLAN
from mapper.workload.tflite_import.model import (
    TYPES,
    FileGraph,
    FileModel,
    FileOperator,
    FileTensor,
)

_SPEC = re.compile(r"(?P<file>.+\.tflite)(?::(?P<parameters>.*))?", re.IGNORECASE)

#: The file identifier of the schema, behind the first offset.
IDENTIFIER = b"TFL3"

#: Integer constants longer than this are weights, not shapes or axes.
MOST_VALUES = 64

_INTEGERS = {"INT32": "i", "INT64": "q", "INT16": "h", "INT8": "b", "UINT8": "B"}

_WINDOW = ("Padding", "StrideH", "StrideW")
_CONVOLUTION = (*_WINDOW, "DilationHFactor", "DilationWFactor")
_POOL = ("Pool2DOptions", (*_WINDOW, "FilterHeight", "FilterWidth"))

#: Options that an import or a plan needs: the schema's table, and its fields.
_OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CONV_2D": ("Conv2DOptions", _CONVOLUTION),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", _CONVOLUTION),
    "TRANSPOSE_CONV": ("TransposeConvOptions", _WINDOW),
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "L2_POOL_2D": _POOL,
    "CONCATENATION": ("ConcatenationOptions", ("Axis",)),
    "PACK": ("PackOptions", ("Axis",)),
    "UNPACK": ("UnpackOptions", ("Axis",)),
    "GATHER": ("GatherOptions", ("Axis", "BatchDims")),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask"),
    ),
    "BATCH_MATMUL": ("BatchMatMulOptions", ("AdjX", "AdjY")),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", ("BlockSize",)),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", ("BlockSize",)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ("UnidirectionalSequenceLSTMOptions", ("TimeMajor",)),
    "CALL_ONCE": ("CallOnceOptions", ("InitSubgraphIndex",)),
    "IF": ("IfOptions", ("ThenSubgraphIndex", "ElseSubgraphIndex")),
    "WHILE": ("WhileOptions", ("CondSubgraphIndex", "BodySubgraphIndex")),
}

#: What the flat buffer's accessors raise when offsets point outside the file.
_DAMAGE = (
    struct.error,
    IndexError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteFile:
    """A file that has been read."""

    file: Path
    model: FileModel


def find_tflite(spec: str) -> TfliteFile | None:
    """The file that ``spec`` names, if it has the form ``file.tflite``."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        return None
    file = Path(match["file"])
    if match["parameters"] is not None:
        message = f"takes no parameters, got {match['parameters']!r}: sizes and types are its own"
        raise InputError(Problem(message, file=file))
    return TfliteFile(file=file, model=read_model(file))


def read_model(file: Path) -> FileModel:
    """The file's graphs; ``InputError`` if it is missing, empty, damaged or something else."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(Problem(f"cannot be read: {error.strerror}", file=file)) from error
    if data[4:8] != IDENTIFIER:
        what = "is empty" if not data else "is not a TensorFlow Lite file (no TFL3 in its header)"
        raise InputError(Problem(what, file=file))
    schema = _schema(file)
    try:
        model = _Reader(schema, data).model()
    except _DAMAGE as error:
        message = f"is damaged or cut off: its {len(data):,} bytes cannot be read to the end"
        raise InputError(Problem(message, file=file)) from error
    _check_graphs(model, file)
    return model


def _schema(file: Path) -> Any:
    try:
        import tflite
    except ImportError as error:
        message = "reading .tflite files needs the package tflite: pip install 'tilewright[tflite]'"
        raise InputError(Problem(message, file=file)) from error
    return tflite


def _check_graphs(model: FileModel, file: Path) -> None:
    if not model.graphs or not model.graphs[0].operators:
        raise InputError(Problem("has no operators", file=file))
    for graph in model.graphs:
        used = {i for o in graph.operators for i in (*o.inputs, *o.outputs)}
        used |= {*graph.inputs, *graph.outputs}
        wrong = sorted(i for i in used if not -1 <= i < len(graph.tensors))
        if wrong:
            message = f"is damaged: it has {len(graph.tensors)} tensors and uses number {wrong[0]}"
            raise InputError(Problem(message, file=file))
        open_sizes = [t.name for t in graph.tensors if any(size < 0 for size in t.shape)]
        if open_sizes:
            message = f"tensor {open_sizes[0]} has a size of -1; convert it with fixed sizes"
            raise InputError(Problem(message, file=file))


def _names(table: Any) -> dict[int, str]:
    """Number -> name of one of the schema's enumerations."""
    return {v: k for k, v in vars(table).items() if isinstance(v, int) and not k.startswith("_")}


class _Reader:
    """Walks the flat buffer; every list is at most as long as the file."""

    def __init__(self, schema: Any, data: bytes) -> None:
        self.schema = schema
        self.data = data
        self.root = schema.Model.GetRootAs(data, 0)
        self.kinds = _names(schema.BuiltinOperator)
        self.types = _names(schema.TensorType)

    def model(self) -> FileModel:
        codes = list(self._each(self.root.OperatorCodesLength(), self.root.OperatorCodes))
        kinds = [self._kind(code) for code in codes]
        graphs = self._each(self.root.SubgraphsLength(), self.root.Subgraphs)
        return FileModel(
            graphs=tuple(self._graph(graph, kinds) for graph in graphs), offline=self._offline()
        )

    def _offline(self) -> tuple[int, ...]:
        """Offsets behind version, graph and count, as ``embed`` writes them."""
        for entry in self._each(self.root.MetadataLength(), self.root.Metadata):
            if entry.Name() == OFFLINE_PLAN:
                buffer = self.root.Buffers(entry.Buffer())
                stored = bytes(buffer.DataAsNumpy()) if buffer.DataLength() else b""
                (count,) = struct.unpack_from("<i", stored, 8)
                return struct.unpack_from(f"<{count}i", stored, 12)
        return ()

    def _each(self, count: int, get: Callable[[int], _T]) -> Iterator[_T]:
        if not 0 <= count <= len(self.data):
            raise IndexError(f"a list of {count}")
        return (get(i) for i in range(count))

    def _kind(self, code: Any) -> str:
        # Old files have the number in a byte, whose last value says that it is elsewhere.
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        kind = self.kinds[number]
        return code.CustomCode().decode() if kind == "CUSTOM" else kind

    def _graph(self, graph: Any, kinds: list[str]) -> FileGraph:
        tensors = self._each(graph.TensorsLength(), graph.Tensors)
        operators = self._each(graph.OperatorsLength(), graph.Operators)
        return FileGraph(
            tensors=tuple(self._tensor(tensor) for tensor in tensors),
            operators=tuple(self._operator(op, kinds[op.OpcodeIndex()]) for op in operators),
            inputs=tuple(self._each(graph.InputsLength(), graph.Inputs)),
            outputs=tuple(self._each(graph.OutputsLength(), graph.Outputs)),
        )

    def _tensor(self, tensor: Any) -> FileTensor:
        buffer = self.root.Buffers(tensor.Buffer())
        stored = buffer.DataLength()
        if stored > len(self.data):
            raise IndexError(f"a buffer of {stored} bytes")
        kind = self.types[tensor.Type()]
        shape = tuple(int(x) for x in self._each(tensor.ShapeLength(), tensor.Shape))
        scale = tensor.Quantization()
        zero = scale.ZeroPoint(0) if scale is not None and scale.ZeroPointLength() else 0
        if kind not in TYPES:
            raise InputError(Problem(f"tensors of type {kind} are not known", where="workload"))
        return FileTensor(
            name=(tensor.Name() or b"").decode(errors="replace"),
            shape=shape,
            type=kind,
            constant=stored > 0,
            variable=bool(tensor.IsVariable()),
            zero_point=int(zero),
            values=_values(bytes(buffer.DataAsNumpy()) if stored else b"", kind),
        )

    def _operator(self, operator: Any, kind: str) -> FileOperator:
        return FileOperator(
            kind=kind,
            inputs=tuple(self._each(operator.InputsLength(), operator.Inputs)),
            outputs=tuple(self._each(operator.OutputsLength(), operator.Outputs)),
            options=self._options(operator, kind),
        )

    def _options(self, operator: Any, kind: str) -> Mapping[str, int]:
        if kind not in _OPTIONS:
            raw = operator.CustomOptionsAsNumpy() if operator.CustomOptionsLength() else b""
            return _custom_integers(bytes(raw))
        name, fields = _OPTIONS[kind]
        table = getattr(self.schema, name)()
        found = operator.BuiltinOptions()
        if found is None:
            return {}
        table.Init(found.Bytes, found.Pos)
        return {field: int(getattr(table, field)()) for field in fields}


def _values(stored: bytes, kind: str) -> tuple[int, ...]:
    """Short integer constants: shapes, axes, paddings."""
    code = _INTEGERS.get(kind)
    if code is None or not 0 < len(stored) <= MOST_VALUES * struct.calcsize(code):
        return ()
    count = len(stored) // struct.calcsize(code)
    return struct.unpack_from(f"<{count}{code}", stored)


def _custom_integers(raw: bytes) -> dict[str, int]:
    """Whole numbers by name, where the options of a custom operator are such a map."""
    if not raw:
        return {}
    from flatbuffers import flexbuffers

    try:
        found = flexbuffers.GetRoot(bytearray(raw))
        if not found.IsMap:
            return {}
        items = zip(found.AsMap.Keys, found.AsMap.Values, strict=True)
        return {key.AsKey: value.AsInt for key, value in items if value.IsInt}
    except _DAMAGE:
        return {}  # another format, which only its own kernel reads

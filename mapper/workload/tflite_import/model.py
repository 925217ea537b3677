"""A ``.tflite`` file as plain records: graphs of tensors and operators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Types of tensors: our name for each, and bytes of an element.
TYPES = {
    "FLOAT64": ("fp64", 8),
    "FLOAT32": ("fp32", 4),
    "FLOAT16": ("fp16", 2),
    "BFLOAT16": ("bf16", 2),
    "INT64": ("int64", 8),
    "INT32": ("int32", 4),
    "INT16": ("int16", 2),
    "INT8": ("int8", 1),
    "INT4": ("int4", 1),  # TensorFlow Lite Micro counts a whole byte
    "UINT64": ("uint64", 8),
    "UINT32": ("uint32", 4),
    "UINT16": ("uint16", 2),
    "UINT8": ("uint8", 1),
    "BOOL": ("int8", 1),
    "RESOURCE": ("int32", 4),  # a handle
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTensor:
    """``constant``: its values are in the file. ``values`` are those of short integer lists.

    ``variable``: keeps its values between runs. ``zero_point`` stands for zero.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    constant: bool
    variable: bool
    zero_point: int
    values: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> str:
        return TYPES[self.type][0]

    @property
    def size_bytes(self) -> int:
        return self.elements * TYPES[self.type][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOperator:
    """``kind`` as the schema names it (``CONV_2D``), or a custom operator's own name.

    Tensors are numbers, -1 where one is left out.
    """

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, int] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGraph:
    """Operators in order; ``inputs`` and ``outputs`` are numbers of tensors."""

    tensors: tuple[FileTensor, ...]
    operators: tuple[FileOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def call_name(self, number: int) -> str:
        """What an operator is called here: its kind and its number."""
        return f"{self.operators[number].kind.lower()}_{number}"

    def tensor_names(self) -> list[str]:
        """One name per tensor: that of the operator that makes it, else that of the file."""
        names = [tensor.name or f"tensor_{i}" for i, tensor in enumerate(self.tensors)]
        for number, operator in enumerate(self.operators):
            for position, output in enumerate(operator.outputs):
                names[output] = f"{self.call_name(number)}.out{position or ''}"
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class FileModel:
    """The first graph is the network, the others are called by control flow.

    ``offline`` are the places in the arena that the file gives to tensors of all graphs, by number,
    -1 where it gives none; empty if it has no plan.
    """

    graphs: tuple[FileGraph, ...]
    offline: tuple[int, ...] = ()

    def places(self) -> dict[str, int]:
        """Tensor of the first graph -> its place, where the file gives one."""
        names = self.graphs[0].tensor_names()
        return {name: at for name, at in zip(names, self.offline, strict=False) if at >= 0}

"""An ONNX file before anything is run: what it reads, and which of its sizes are open.

torch is not needed here, so names and parameters can be checked at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arch.datatypes import BITS
from arch.errors import InputError, Problem
from mapper.workload.parameters import Parameter, Value, parse_parameters, split_pairs

_SPEC = re.compile(r"(?P<file>.+\.onnx)(?::(?P<parameters>.*))?", re.IGNORECASE)

_DTYPE = Parameter(
    name="dtype",
    help="format of activations and weights",
    default_text="as in the file",
    choices=tuple(BITS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxFile:
    """A file that has been read; ``sizes`` has a value for each open size of its inputs."""

    file: Path
    model: Any
    sizes: Mapping[str, Value]


def find_onnx(spec: str) -> OnnxFile | None:
    """The file that ``spec`` names, if it has the form ``file.onnx`` or ``file.onnx:batch=1``."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        return None
    file = Path(match["file"])
    model = read_model(file)
    given = split_pairs(spec, match["parameters"] or "")
    parameters = (*_size_parameters(model), _DTYPE)
    return OnnxFile(file=file, model=model, sizes=parse_parameters(file.name, parameters, given))


def read_model(file: Path) -> Any:
    """The parsed file, without weights that lie in files of their own."""
    try:
        import onnx
    except ImportError as error:
        message = "reading ONNX files needs the package onnx: pip install 'tilewright[onnx]'"
        raise InputError(Problem(message, file=file)) from error
    try:
        model = onnx.load(str(file), load_external_data=False)
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise InputError(Problem(message, file=file)) from error
    except Exception as error:
        # protobuf raises an exception of its own implementation for anything that is not ONNX.
        raise InputError(Problem(f"is not an ONNX file: {error}", file=file)) from error
    if not model.graph.node:
        what = "is empty" if file.stat().st_size == 0 else "has no operators"
        raise InputError(Problem(f"{what}: there is nothing to run", file=file))
    return model


def network_inputs(model: Any) -> list[Any]:
    """Inputs of the graph that are not weights (old files list those too)."""
    weights = {weight.name for weight in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def size_name(value: Any, axis: int, dim: Any) -> str:
    """The name of an open size: the file's own, or the input's with the axis."""
    return str(dim.dim_param) or f"{value.name}.{axis}"


def _size_parameters(model: Any) -> tuple[Parameter, ...]:
    """One required parameter per open size."""
    found: dict[str, Parameter] = {}
    for value in network_inputs(model):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                continue
            name = size_name(value, axis, dim)
            help_text = f"axis {axis} of input {value.name}"
            # Before the first token a cache is empty; exporters call its length so.
            low = 0 if "past" in name else 1
            found.setdefault(name, Parameter(name=name, help=help_text, low=low))
    return tuple(found.values())

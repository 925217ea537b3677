"""Programs that ``torch.export`` has saved: ``net.pt2``, ``net.pt2:tokens.1=512``.

A program may have been exported with open sizes. They are given by the input and the axis where
they first appear; every shape of the program follows from them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arch.datatypes import BITS
from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.parameters import Parameter, parse_parameters, split_pairs

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_SPEC = re.compile(r"(?P<file>.+\.pt2)(?::(?P<parameters>.*))?", re.IGNORECASE)

_DTYPE = Parameter(
    name="dtype",
    help="format of activations and weights",
    default_text="as in the file",
    choices=tuple(BITS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """A file that exists, and what was written after its name."""

    file: Path
    given: Mapping[str, str]


def find_exported(spec: str) -> ExportedFile | None:
    """The file that ``spec`` names, if it ends with ``.pt2``."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        return None
    file = Path(match["file"])
    if not file.is_file():
        raise InputError(Problem("cannot be read: there is no such file", file=file))
    return ExportedFile(file=file, given=split_pairs(spec, match["parameters"] or ""))


def exported_workload(found: ExportedFile) -> Workload:
    """Import the program of the file."""
    program = _load(found.file)
    sizes = open_sizes(program)
    parameters = (*(size.parameter for size in sizes), _DTYPE)
    values = parse_parameters(found.file.name, parameters, found.given)
    # By name, so that looking at names does not load the importer.
    export = importlib.import_module("mapper.workload.torch_import.export")
    program = export.written_out(program)
    close_sizes(program, {s.symbol: s.solved(found, values[s.parameter.name]) for s in sizes})
    dtype = values.get("dtype")
    workload: Workload = export.lower_program(
        program, name=found.file.name, dtype=None if dtype is None else str(dtype)
    )
    return workload


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSize:
    """A size that the program leaves open: torch's symbol and how it is named here.

    What is given is the size of an axis, which may be a formula of the symbol (twice as much).
    """

    symbol: Any
    expression: Any
    parameter: Parameter

    def solved(self, found: ExportedFile, value: Any) -> int:
        """The symbol's number, where the axis is ``value`` long."""
        if self.expression == self.symbol:
            return int(value)
        solve = importlib.import_module("sympy").solve
        solutions = solve(self.expression - int(value), self.symbol)
        whole = [s for s in solutions if s.is_Integer and s > 0]
        if not whole:
            message = f"{self.parameter.name} is {value}; allowed: {self.expression}, whole numbers"
            raise InputError(Problem(message, where=f"workload {found.file.name}"))
        return int(whole[0])


def open_sizes(program: ExportedProgram) -> list[OpenSize]:
    """Every symbol once, by the input and axis where it stands alone, else where a formula has it
    alone."""
    found: dict[Any, OpenSize] = {}
    for alone in (True, False):
        for name, axis, size in _input_sizes(program):
            expression = _expression(size)
            if expression is None:
                continue
            symbols = expression.free_symbols - found.keys()
            if len(symbols) == 1 and (expression.is_Symbol or not alone):
                (symbol,) = symbols
                found[symbol] = _open_size(program, f"{name}.{axis}", symbol, expression)
    return list(found.values())


def _open_size(program: ExportedProgram, name: str, symbol: Any, expression: Any) -> OpenSize:
    limits = program.range_constraints.get(expression)
    low = 1 if limits is None else max(1, int(limits.lower))
    axis, _, number = name.rpartition(".")
    help_text = f"axis {number} of input {axis}"
    parameter = Parameter(name=name, help=help_text, low=low, high=_high(limits))
    return OpenSize(symbol=symbol, expression=expression, parameter=parameter)


def close_sizes(program: ExportedProgram, values: Mapping[Any, Any]) -> None:
    """Numbers in place of all sizes that are open or follow from open ones."""
    for node in program.graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = _closed(node.meta["val"], values)


def _load(file: Path) -> ExportedProgram:
    import torch

    try:
        program: ExportedProgram = torch.export.load(file)
    except Exception as error:
        # What torch raises depends on what is wrong with the archive.
        text = " ".join(str(error).split())
        message = f"is not a program saved by torch.export: {type(error).__name__}: {text}"
        raise InputError(Problem(message, file=file)) from error
    return program


def _input_sizes(program: ExportedProgram) -> Iterator[tuple[str, int, Any]]:
    own = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in own:
            for axis, size in enumerate(getattr(node.meta["val"], "shape", ())):
                yield node.name, axis, size


def _high(limits: Any) -> int:
    """The largest size allowed; torch's bound may be its own kind of infinity."""
    largest = Parameter(name="size", help="a size").high
    return int(limits.upper) if limits is not None and limits.upper < largest else largest


def _expression(size: Any) -> Any | None:
    """The formula of an open size; none for a plain number."""
    node = getattr(size, "node", None)
    return None if node is None else node.expr


def _closed(value: Any, values: Mapping[Any, Any]) -> Any:
    import torch

    if isinstance(value, (tuple, list)):
        return type(value)(_closed(item, values) for item in value)
    if isinstance(value, torch.Tensor):
        shape = [_number(size, values) for size in value.shape]
        return torch.empty(shape, dtype=value.dtype, device="meta")
    return _number(value, values)


def _number(value: Any, values: Mapping[Any, Any]) -> Any:
    expression = _expression(value)
    return value if expression is None else int(expression.subs(values))

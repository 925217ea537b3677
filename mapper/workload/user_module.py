"""Networks from a user's file: ``net.py:make`` returns a module and its example inputs.

What goes wrong in the user's code is reported with its file and line, not as a traceback.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import itertools
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arch.datatypes import BITS
from arch.errors import InputError, Problem, unknown
from mapper.workload.graph import Workload
from mapper.workload.parameters import Parameter, Value, parse_parameters, split_pairs

_SPEC = re.compile(r"(?P<file>.+\.py):(?P<function>\w+)(?::(?P<parameters>.*))?")

_DTYPE = Parameter(
    name="dtype",
    help="format of activations and weights",
    default_text="as in the module",
    choices=tuple(BITS),
)

#: Weights on the meta device take no memory. Code that looks at values (a schedule computed
#: with tensors) fails there and is run again with real ones.
_DEVICES = ("meta", "cpu")

_NOT_TRACED = (
    "the module cannot be traced by torch.export (its control flow and shapes must not depend on "
    "the values of its inputs)"
)

_EXPECTED = (
    "expected a torch.nn.Module and its example inputs: a tensor, a tuple of arguments or a "
    "dictionary of keyword arguments"
)


class UserCodeError(InputError):
    """The user's own code failed; it may work with real tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserNetwork:
    """A function of a file, found but not yet run."""

    file: Path
    function: str
    parameters: Mapping[str, Value]

    @property
    def title(self) -> str:
        chosen = ",".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"{self.file.name}:{self.function}{f':{chosen}' if chosen else ''}"

    @property
    def arguments(self) -> dict[str, Value]:
        """What the function is called with."""
        return {name: v for name, v in self.parameters.items() if name != _DTYPE.name}


def find_user_network(spec: str) -> UserNetwork | None:
    """The network that ``spec`` names, if it has the form ``file.py:function``."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        _check_function_is_named(spec)
        return None
    file, function = Path(match["file"]), match["function"]
    functions = _functions(file)
    if function not in functions:
        raise InputError(
            Problem(unknown("function", function, list(functions) or ["none"]), file=file)
        )
    given = split_pairs(spec, match["parameters"] or "")
    allowed = (*_arguments(functions[function], file), _DTYPE)
    parameters = parse_parameters(f"{file.name}:{function}", allowed, given)
    return UserNetwork(file=file, function=function, parameters=parameters)


def _check_function_is_named(spec: str) -> None:
    if spec.endswith(".py"):
        functions = ", ".join(_functions(Path(spec))) or "none"
        message = f"a function of the file must be named, as in {spec}:make; it has {functions}"
        raise InputError(Problem(message, where="workload"))


def user_workload(network: UserNetwork) -> Workload:
    """Run the function and import what it returns."""
    failure: UserCodeError | None = None
    for device in _DEVICES:
        try:
            return _imported_on(device, network)
        except UserCodeError as error:
            failure = error
    assert failure is not None
    raise failure


def _functions(file: Path) -> dict[str, ast.FunctionDef]:
    """The file's own functions by their names, found without running it."""
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise InputError(Problem(message, file=file)) from error
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(Problem(f"is not valid Python: {error}", file=file, line=line)) from error
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _arguments(function: ast.FunctionDef, file: Path) -> tuple[Parameter, ...]:
    """What may be chosen about a function's network: its arguments that are whole numbers."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    given: Sequence[ast.expr | None] = function.args.defaults
    defaults = (*itertools.repeat(None, len(arguments) - len(given)), *given)
    pairs = [
        *zip(arguments, defaults, strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    found = []
    for argument, default in pairs:
        value = default.value if isinstance(default, ast.Constant) else None
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole or default is None:
            help_text = f"argument of {function.name}"
            chosen = value if isinstance(value, int) else None
            found.append(Parameter(name=argument.arg, help=help_text, default=chosen, low=0))
    if any(parameter.name == _DTYPE.name for parameter in found):
        message = f"{function.name}() must not have an argument named dtype: that is the format"
        raise InputError(Problem(message, file=file, line=function.lineno))
    return tuple(found)


def _imported_on(device: str, network: UserNetwork) -> Workload:
    import torch

    # By name, so that looking at a file's functions does not load the importer.
    export = importlib.import_module("mapper.workload.torch_import.export")
    importing = importlib.import_module("mapper.workload.torch_import.importing")
    with _users_code(network, "cannot be imported"):
        function = _load(network)
    with torch.device(device):
        with _users_code(network, f"{network.function}() fails"):
            result = function(**network.arguments)
        module, arguments, keywords = _checked(network, result)

        def traced() -> Any:
            with _users_code(network, _NOT_TRACED):
                return export.trace(module, arguments, keywords)

        dtype = network.parameters.get("dtype")
        workload: Workload = importing.import_module(
            module, traced, name=network.title, dtype=None if dtype is None else str(dtype)
        )
        return workload


def _load(network: UserNetwork) -> Callable[..., Any]:
    name = f"user_network_{network.file.stem}"
    spec = importlib.util.spec_from_file_location(name, network.file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up the module that they are defined in
    spec.loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, network.function)
    return function


def _checked(network: UserNetwork, result: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The module, its arguments and its keyword arguments."""
    import torch

    match result:
        case (torch.nn.Module() as module, torch.Tensor() as tensor):
            return module, (tensor,), {}
        case (torch.nn.Module() as module, tuple() | list() as arguments):
            return module, tuple(arguments), {}
        case (torch.nn.Module() as module, dict() as keywords):
            return module, (), keywords
    message = f"{network.function}() returned {_described(result)}; {_EXPECTED}"
    raise InputError(Problem(message, file=network.file))


def _described(result: Any) -> str:
    if isinstance(result, (tuple, list)):
        return f"{type(result).__name__} of {', '.join(type(r).__name__ for r in result) or 'none'}"
    return type(result).__name__


@contextlib.contextmanager
def _users_code(network: UserNetwork, failing: str) -> Iterator[None]:
    """Runs foreign code: siblings can be imported, prints go to the error stream, and any
    exception becomes an ``InputError`` at the line of the user's file that led to it.
    """
    folder = str(network.file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        line = _line_in(network.file, error)
        text = " ".join(str(error).split("\n\n")[0].split()) or "no message"
        message = f"{failing}: {type(error).__name__}: {text}"
        raise UserCodeError(Problem(message, file=network.file, line=line)) from error
    finally:
        sys.path.remove(folder)


def _line_in(file: Path, error: BaseException) -> int | None:
    """The innermost line of the file on the way to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).resolve() == file.resolve()]
    return lines[-1] if lines else None

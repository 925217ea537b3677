"""From a torch module to a workload: trace without weights, then lower node by node."""

from __future__ import annotations

import io
import logging
import operator
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.torch_import import aten
from mapper.workload.torch_import.aten.contraction import is_plain_product
from mapper.workload.torch_import.draft import Draft, DraftOperator
from mapper.workload.torch_import.naming import Naming, call_name, source_line
from mapper.workload.torch_import.nodes import (
    aten_name,
    check_shape,
    depends_on_data,
    drop_assertions,
    first_of,
    is_constant,
    is_empty,
    is_number,
)
from mapper.workload.torch_import.registry import LOWERINGS, VIEWS, Call, Value
from mapper.workload.torch_import.storage import Storage, View, fresh

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from torch.fx import Node

aten.load_all()

#: torch's names of number formats. Indices are 32-bit and masks a byte on the modelled hardware.
_DTYPES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "int64": "int32",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint8": "int8",
    "bool": "int8",
    # Real and imaginary part, along an axis of their own.
    "complex64": "fp32",
    "complex128": "fp64",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A traced module and what its parts are called."""

    program: ExportedProgram
    naming: Naming


def trace(
    module: torch.nn.Module,
    inputs: Sequence[Any],
    keywords: Mapping[str, Any] | None = None,
    naming: Naming | None = None,
) -> Traced:
    """The inference graph of ``module`` called with example ``inputs``.

    Only shapes and types matter: module and inputs may live on the meta device.
    """
    import torch

    with quiet(), torch.no_grad():
        program = torch.export.export(
            module.eval(), tuple(inputs), dict(keywords or {}), strict=False
        )
        program = written_out(program)
    return Traced(program=program, naming=naming or Naming(parameters=_canonical_names(module)))


def lower_traced(traced: Traced, *, name: str, dtype: str | None) -> Workload:
    """The workload of a traced module.

    ``dtype`` replaces every floating-point format (the network taken as quantized).
    """
    drop_assertions(traced.program)
    return _Lowering(traced.program, dtype, traced.naming).run(name)


def written_out(program: ExportedProgram) -> ExportedProgram:
    """Without changes in place, and without operators that are known only by their parts."""
    import torch

    with quiet(), torch.no_grad():
        if any(_changes_shared_value(node) for node in program.graph.nodes):
            program = program.run_decompositions({})
        return decomposed(program)


def lower_program(program: ExportedProgram, *, name: str, dtype: str | None) -> Workload:
    """The workload of a program that torch has saved, its open sizes closed."""
    return lower_traced(Traced(program=program, naming=Naming()), name=name, dtype=dtype)


def decomposed(program: ExportedProgram) -> ExportedProgram:
    """With operators that nothing lowers written out as torch does, where all that they become is
    known; recurrent layers become their steps."""
    drop_assertions(program)
    targets = _unknown_targets(program)
    if not targets:
        return program
    written_out, left = _written_out(program, targets)
    if left:
        # An operator is named as the user wrote it, not by the part of it that is unknown.
        able = {target for target in targets if not _written_out(program, {target})[1] - targets}
        written_out, _ = _written_out(program, able) if able else (program, set())
    return written_out


#: What torch raises where a decomposition of its own does not work without values.
_TORCH_FAILS = (AssertionError, NotImplementedError, RuntimeError, TypeError, ValueError)

#: torch writes an operator out in terms of others, these again, and so on; no deeper than this.
_DEEPEST = 6


def _written_out(program: ExportedProgram, targets: set[Any]) -> tuple[ExportedProgram, set[Any]]:
    """The program without these operators, and what is left that nothing lowers."""
    from torch._decomp import decomposition_table
    from torch.export import default_decompositions

    for _ in range(_DEEPEST):
        known = decomposition_table.keys() & targets
        table = {target: decomposition_table[target] for target in known}
        if not table:
            others = default_decompositions()
            table = {target: others[target] for target in targets if target in others}
        if not table:
            break
        try:
            program = program.run_decompositions(table)
        except _TORCH_FAILS:
            break
        targets = _unknown_targets(program)
        if not targets:
            break
    return program, targets


def _unknown_targets(program: ExportedProgram) -> set[Any]:
    found = _Lowering(program, None, Naming()).unknown_nodes()
    einsums = (n for n in program.graph.nodes if n.op == "call_function" and _is_involved(n))
    return {node.target for nodes in found.values() for node in nodes} | {
        node.target for node in einsums
    }


def _is_involved(node: Node) -> bool:
    """An einsum that is more than one product as it stands."""
    return aten_name(node) == "aten.einsum" and not is_plain_product(str(node.args[0]))


@contextmanager
def quiet() -> Iterator[None]:
    """torch warns about its own internals while tracing; logs and prints what it then raises."""
    sink = io.StringIO()
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(sink), redirect_stderr(sink):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _changes_shared_value(node: Node) -> bool:
    """Whether an in-place operator changes a value that something else may read too."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return False
    source = node.all_input_nodes[0]
    own = source.op == "call_function" and aten_name(source) not in VIEWS
    return not own or len(source.users) > 1


def _canonical_names(module: torch.nn.Module) -> dict[str, str]:
    """Every parameter's name to the first name of the same parameter (tied weights)."""
    first: dict[int, str] = {}
    return {
        name: first.setdefault(id(parameter), name)
        for name, parameter in module.named_parameters(remove_duplicate=False)
    }


class _Lowering:
    """Walks the graph once, keeping what each node's value became."""

    def __init__(self, program: ExportedProgram, dtype: str | None, naming: Naming) -> None:
        self._program = program
        self._dtype = dtype
        self._naming = naming
        self._draft = Draft()
        self._values: dict[Node, Any] = {}
        self._producers: dict[Node, DraftOperator] = {}
        self._parameters: dict[str, Storage] = {}
        self._known: dict[Node, bool] = {}
        # Properties of the signature are rebuilt at each access.
        signature = program.graph_signature
        self._parameter_names = signature.inputs_to_parameters
        self._buffer_names = signature.inputs_to_buffers
        self._user_inputs = set(signature.user_inputs)

    def run(self, name: str) -> Workload:
        self._check_operators()
        for node in self._program.graph.nodes:
            match node.op:
                case "placeholder":
                    self._values[node] = self._placeholder(node)
                case "call_function":
                    self._values[node] = self._call(node)
                case "output":
                    self._mark_outputs(node)
        return self._draft.finish(name)

    def _placeholder(self, node: Node) -> View | None:
        value = node.meta["val"]
        if not hasattr(value, "shape"):
            return None
        parameter = self._parameter_names.get(node.name)
        if parameter is not None:
            return self._parameter(self._naming.parameters.get(parameter, parameter), value)
        name = self._buffer_names.get(node.name, node.name)
        storage = self._draft.store(name, value.shape, self._name_of(value.dtype), "input")
        storage.constant = node.name not in self._user_inputs
        return fresh(storage)

    def _parameter(self, name: str, value: torch.Tensor) -> View:
        if name not in self._parameters:
            dtype = self._naming.formats.get(name) or self._name_of(value.dtype)
            self._parameters[name] = self._draft.store(name, value.shape, dtype, "weight")
        return fresh(self._parameters[name])

    def _call(self, node: Node) -> Value:
        if node.target is operator.getitem:
            return self._item(*node.args)
        if is_number(node):
            return node.meta["val"]  # type: ignore[no-any-return]
        operation = aten_name(node)
        if operation in _FILLED or is_empty(node):
            return self._constant(node)
        sources = [self._values[source] for source in node.all_input_nodes]
        if operation not in VIEWS and all(is_constant(value) for value in sources):
            return self._constant(node)
        before = len(self._draft.operators)
        value: Value = LOWERINGS[operation](self._bind(operation, node))
        check_shape(node, value)
        if len(self._draft.operators) > before:
            self._producers[node] = self._draft.operators[-1]
        elif operation in VIEWS:
            self._draft.folded.append(f"{self._name(node)}: moves no data")
        return value

    def _item(self, source: Any, position: Any) -> Value:
        """One result of an operator with several; of a lowering with one, that one."""
        values = self._values[source]
        value: Value = values[position] if isinstance(values, tuple) else values
        return value

    def _bind(self, operation: str, node: Node) -> Call:
        nodes: dict[str, Any] = {}
        for position, argument in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
            given = node.args[position] if position < len(node.args) else None
            default = argument.default_value if argument.has_default_value() else None
            nodes[argument.name] = (
                given if position < len(node.args) else node.kwargs.get(argument.name, default)
            )
        return Call(
            operation=operation,
            node=node,
            nodes=nodes,
            arguments={name: self._resolve(value) for name, value in nodes.items()},
            name=self._name(node),
            draft=self._draft,
            dtype=self._name_of(first_of(node.meta["val"]).dtype),
            producers=self._producers,
        )

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._resolve(item) for item in value]
        return self._values.get(value, value) if hasattr(value, "op") else value

    def _check_operators(self) -> None:
        """All operators that nothing lowers, each named once."""
        unbound = [node for node in self._program.graph.nodes if depends_on_data(node)]
        if unbound:
            first = unbound[0]
            message = (
                f"the size of what {self._name(first)}{source_line(first)} gives depends on data, "
                "so that its work cannot be counted; allowed: sizes known from the inputs' sizes"
            )
            raise InputError(Problem(message, where="workload"))
        unknown = self.unknown_nodes()
        if unknown:
            raise InputError([self._unknown(name, nodes) for name, nodes in unknown.items()])

    def unknown_nodes(self) -> dict[str, list[Node]]:
        """Nodes that nothing lowers, by operator."""
        unknown: dict[str, list[Node]] = {}
        for node in self._program.graph.nodes:
            if node.op != "call_function" or is_number(node):
                continue
            if node.target is operator.getitem:
                continue
            operation = aten_name(node)
            if operation not in LOWERINGS | _FILLED and not self._is_known_beforehand(node):
                unknown.setdefault(operation, []).append(node)
        return unknown

    def _is_known_beforehand(self, node: Node) -> bool:
        """Whether it is computed from no parameter and from no input but their sizes."""
        if is_number(node):
            return True
        if node.op == "placeholder":
            return node.name not in self._parameter_names and node.name not in self._user_inputs
        if node not in self._known:
            self._known[node] = all(map(self._is_known_beforehand, node.all_input_nodes))
        return self._known[node]

    def _unknown(self, operation: str, nodes: list[Node]) -> Problem:
        first = nodes[0]
        more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        return Problem(
            f"torch operator {operation} (node {first.name}, {self._name(first)}"
            f"{source_line(first)}{more}) cannot be imported; add a function with "
            f'@lowers("{operation}") to a module of mapper/workload/torch_import/aten',
            where="workload",
        )

    def _constant(self, node: Node) -> Value:
        """A value that depends on no input: computed once, before the network runs."""
        results = node.meta["val"]
        several = isinstance(results, (tuple, list))
        views = []
        for result in results if several else (results,):
            name = self._draft.unique(f"{self._name(node)}.constant")
            shape = (*result.shape, 2) if result.dtype.is_complex else result.shape
            storage = self._draft.store(name, shape, self._name_of(result.dtype), "input")
            storage.constant = True
            self._draft.folded.append(f"{name}: computed beforehand")
            views.append(fresh(storage))
        return tuple(views) if several else views[0]

    def _mark_outputs(self, node: Node) -> None:
        for source in node.all_input_nodes:
            value = self._values[source]
            for view in value if isinstance(value, tuple) else (value,):
                if isinstance(view, View) and view.storage.kind == "activation":
                    view.storage.kind = "output"

    def _name(self, node: Node) -> str:
        return call_name(node, self._naming.modules)

    def _name_of(self, dtype: torch.dtype) -> str:
        name = str(dtype).removeprefix("torch.")
        if name not in _DTYPES:
            message = f"tensors of type {name} cannot be imported; allowed {', '.join(_DTYPES)}"
            raise InputError(Problem(message, where="workload"))
        return self._dtype if self._dtype and dtype.is_floating_point else _DTYPES[name]


#: What takes no more than a shape from its input.
_FILLED = dict.fromkeys(
    f"aten.{name}"
    for name in ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
)

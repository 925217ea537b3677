"""An ONNX graph as a torch module, so that it is imported by the lowerings of torch's operators.

Shapes are inferred by torch while it traces. Computations on shapes (the sizes of an input, cut
and joined to the shape of a reshape) are done beforehand, by ONNX's reference implementation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.onnx_import import operators
from mapper.workload.onnx_import.control import written_out
from mapper.workload.onnx_import.file import OnnxFile, network_inputs, size_name
from mapper.workload.onnx_import.packed import packed_weights
from mapper.workload.onnx_import.tensors import torch_dtype, weight
from mapper.workload.onnx_import.values import (
    HANDLERS,
    Known,
    NodeCall,
    Value,
    Weight,
    as_tensor,
    numbers_of,
)
from mapper.workload.torch_import.export import lower_traced, trace
from mapper.workload.torch_import.naming import Naming

operators.load_all()

#: Operators whose results are numbers before the network runs.
_ALWAYS_KNOWN = ("Constant", "Shape", "Size")

_STANDARD_DOMAINS = ("", "ai.onnx")


def import_model(found: OnnxFile) -> Workload:
    """The workload of a parsed file, its open sizes given."""
    import onnx.inliner

    model = found.model
    inlined = onnx.inliner.inline_local_functions(model) if model.functions else model
    inlined = written_out(inlined)
    check_operators(inlined)
    network = OnnxNetwork(inlined)
    sizes = {name: size for name, size in found.sizes.items() if isinstance(size, int)}
    with torch.device("meta"):
        inputs = example_inputs(inlined, sizes)
        traced = trace(network, (), inputs, naming=network.naming())
    dtype = found.sizes.get("dtype")
    workload = lower_traced(
        traced, name=found.file.name, dtype=None if dtype is None else str(dtype)
    )
    computed = tuple(f"{node}: computed beforehand" for node in network.notes.computed)
    return replace(workload, folded=(*workload.folded, *computed, *network.notes.packed))


def check_operators(model: Any) -> None:
    """All operators that nothing runs, at once; what is known beforehand needs nothing."""
    known = {proto.name for proto in model.graph.initializer} | {""}
    missing: dict[tuple[str, str], list[str]] = {}
    for number, node in enumerate(model.graph.node):
        key = (_domain(node), node.op_type)
        computed = key[0] == "" and known.issuperset(node.input)
        if node.op_type in _ALWAYS_KNOWN or computed:
            known.update(node.output)
        elif key not in HANDLERS:
            missing.setdefault(key, []).append(node_name(node, number))
    if missing:
        raise InputError([_unknown(*key, nodes) for key, nodes in missing.items()])


def _unknown(domain: str, operator: str, nodes: list[str]) -> Problem:
    more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    argument = f', domain="{domain}"' if domain else ""
    return Problem(
        f"{_described(domain, operator)} (node {nodes[0]}{more}) cannot be imported; add a "
        f'function with @onnx_operator("{operator}"{argument}) to a module of '
        "mapper/workload/onnx_import/operators",
        where="workload",
    )


def _described(domain: str, operator: str) -> str:
    return f"ONNX operator {operator}{f' of domain {domain}' if domain else ''}"


def _domain(node: Any) -> str:
    return "" if node.domain in _STANDARD_DOMAINS else str(node.domain)


def node_name(node: Any, number: int) -> str:
    """The node's own name, or its operator and place."""
    return str(node.name).strip("/") or f"{node.op_type}_{number}"


def example_inputs(model: Any, sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Tensors of the stated shapes, by the inputs' names."""
    inputs = {}
    for value in network_inputs(model):
        kind = value.type.tensor_type
        shape = [
            dim.dim_value if dim.HasField("dim_value") else sizes[size_name(value, axis, dim)]
            for axis, dim in enumerate(kind.shape.dim)
        ]
        dtype = torch_dtype(kind.elem_type, f"input {value.name}")
        inputs[_identifier(value.name)] = torch.zeros(shape, dtype=dtype)
    return inputs


@dataclass(eq=False, slots=True)
class Notes:
    """Nodes that are done before the network runs.

    A record of its own, since torch restores lists that a module changes while it is traced.
    """

    computed: dict[str, None] = field(default_factory=dict)
    packed: tuple[str, ...] = ()


class OnnxNetwork(nn.Module):
    """Runs the nodes in order."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        graph = model.graph
        self._opset = {o.domain: o.version for o in model.opset_import}.get("", 1)
        self._packed = packed_weights(graph)
        self._shown: dict[str, str] = {}
        self._beside: dict[str, torch.Tensor] = {}
        self._numbers: dict[str, Known | None] = {}
        included = {name for packed in self._packed.values() for name in packed.companions}
        for proto in graph.initializer:
            if proto.name in included:
                self._beside[proto.name] = weight(proto)[0].data
                continue
            attribute = self._unique(proto.name)
            self._shown[attribute] = proto.name
            parameter, self._numbers[attribute] = self._weight(proto)
            self.register_parameter(attribute, parameter)
        self.nodes = nn.ModuleList()
        self._calls: list[tuple[Any, OnnxNode]] = []
        for number, node in enumerate(graph.node):
            module = OnnxNode(node, node_name(node, number), self._opset)
            self.nodes.append(module)
            self._calls.append((node, module))
        self._inputs = [value.name for value in network_inputs(model)]
        self._outputs = [value.name for value in graph.output]
        self.notes = Notes(
            packed=tuple(
                f"{name}: read as {packed.dtype}, which includes {', '.join(packed.companions)}"
                for name, packed in self._packed.items()
                if packed.companions
            )
        )

    def _weight(self, proto: Any) -> tuple[nn.Parameter, Known | None]:
        packed = self._packed.get(proto.name)
        if packed is None:
            return weight(proto)
        elements = torch.empty(packed.shape, dtype=torch.int8, device="meta")
        return nn.Parameter(elements, requires_grad=False), None

    def naming(self) -> Naming:
        """The file's names of weights and nodes."""
        return Naming(
            parameters=self._shown,
            formats={name: packed.dtype for name, packed in self._packed.items()},
            modules={
                f"nodes.{number}": module.shown for number, (_, module) in enumerate(self._calls)
            },
        )

    def forward(self, **inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        # Parameters are looked up here, since torch exchanges them while it traces.
        values: dict[str, Value | None] = {
            name: Weight(self.get_parameter(attribute), self._numbers[attribute])
            for attribute, name in self._shown.items()
        }
        values |= self._beside
        for name in self._inputs:
            values[name] = inputs[_identifier(name)]
        for node, module in self._calls:
            given = tuple(values[name] if name else None for name in node.input)
            results = self._known(node, given)
            if results is None:
                results = module(*given)
            else:
                self.notes.computed[module.shown] = None
            values |= dict(zip(node.output, results, strict=False))
        found = [values[name] for name in self._outputs]
        return tuple(value for value in found if isinstance(value, torch.Tensor))

    def _known(
        self, node: Any, inputs: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...] | None:
        """The results, if all inputs are numbers (weights only where they are short)."""
        if node.op_type == "Constant":
            return (_constant(node),)
        numbers = [None if value is None else numbers_of(value) for value in inputs]
        given = [n for n, value in zip(numbers, inputs, strict=True) if value is not None]
        if not given or any(n is None for n in given) or _domain(node):
            return None
        feeds = {name: n for name, n in zip(node.input, numbers, strict=True) if name}
        return _reference(node, feeds, self._opset)

    def _unique(self, name: str) -> str:
        plain = f"weight_{_identifier(name)}"
        taken = Counter(shown.rsplit("__", 1)[0] for shown in self._shown)
        return f"{plain}__{taken[plain]}" if plain in self._shown else plain


class OnnxNode(nn.Module):
    """One node; a module of its own so that torch notes which node an operator comes from."""

    def __init__(self, node: Any, shown: str, opset: int) -> None:
        super().__init__()
        self.shown = shown
        self._node = node
        self._opset = opset

    def forward(self, *inputs: Value | None) -> tuple[Value | None, ...]:
        call = NodeCall(
            name=self.shown,
            operator=self._node.op_type,
            attributes={a.name: _attribute(a) for a in self._node.attribute},
            inputs=inputs,
            outputs=len(self._node.output),
            opset=self._opset,
        )
        try:
            result = HANDLERS[_domain(self._node), self._node.op_type](call)
        except InputError:
            raise
        except Exception as error:
            # The graph comes from a file: whatever torch refuses is a mistake in it.
            shapes = ", ".join(_shape_text(value) for value in inputs)
            message = f"cannot be run on inputs {shapes}: {type(error).__name__}: {error}"
            raise call.error(message) from error
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _shape_text(value: Value | None) -> str:
    if value is None:
        return "-"
    numbers = numbers_of(value)
    return str(list(as_tensor(value).shape if numbers is None else numbers.shape))


def _constant(node: Any) -> Known:
    (attribute,) = node.attribute
    value = _attribute(attribute)
    if attribute.name != "value":
        return np.asarray(value)
    import onnx

    return np.asarray(onnx.numpy_helper.to_array(value))


def _reference(node: Any, feeds: Mapping[str, Known | None], opset: int) -> tuple[Known, ...]:
    """The results by ONNX's own definition of the operator."""
    import onnx.reference

    evaluator = onnx.reference.ReferenceEvaluator(node, opsets={"": opset})
    return tuple(np.asarray(result) for result in evaluator.run(None, dict(feeds)))


def _attribute(attribute: Any) -> Any:
    import onnx

    return onnx.helper.get_attribute_value(attribute)


def _identifier(name: str) -> str:
    """A name that Python and torch accept."""
    plain = re.sub(r"\W", "_", name)
    return plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"

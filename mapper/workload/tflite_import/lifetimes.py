"""When TensorFlow Lite Micro needs which buffer, counted as its own planner counts.

Every operator is a scope of its own, numbered from 1; graphs that an operator calls are scopes
within it (``AllocationInfoBuilder`` of tensorflow/tflite-micro). Constants and variables have no
place in the plan. Tensors of all graphs come in order, then the scratch of kernels in the order of
their preparation, graph by graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mapper.workload.runtime import RuntimeBuffer, RuntimeCall, RuntimeGraph
from mapper.workload.tflite_import.model import FileGraph, FileModel, FileOperator
from mapper.workload.tflite_import.scratch import scratch_bytes

#: Operators that call other graphs, in order.
_CALLED = {
    "CALL_ONCE": ("InitSubgraphIndex",),
    "IF": ("ThenSubgraphIndex", "ElseSubgraphIndex"),
    "WHILE": ("CondSubgraphIndex", "BodySubgraphIndex"),
}

#: A tensor that no operator uses has a place nevertheless, before all others.
NEVER = -1

#: A tensor (graph, number) or a kernel's scratch (graph, operator, which).
Key = tuple[int, int] | tuple[int, int, int]


@dataclass(slots=True)
class _Scopes:
    """First and last scope of everything, while the calls are followed."""

    model: FileModel
    first: dict[Key, int] = field(default_factory=dict)
    last: dict[Key, int] = field(default_factory=dict)
    names: list[tuple[int, int] | None] = field(default_factory=lambda: [None])

    @property
    def now(self) -> int:
        return len(self.names) - 1

    def follow(self, number: int) -> None:
        """All of a graph's operators, in order."""
        graph = self.model.graphs[number]
        for tensor in graph.inputs:
            self._create((number, tensor))
            self._use((number, tensor))
        for position, operator in enumerate(graph.operators):
            self.names.append((number, position))
            started = self.now
            for tensor in operator.outputs:
                self._create((number, tensor))
            for called in _called(operator):
                self.names.append(None)
                self.follow(called)
            for tensor in (*operator.inputs, *operator.outputs):
                self._use((number, tensor))
            for which in range(len(scratch_bytes(operator, graph.tensors))):
                key = (number, position, which)
                self.first.setdefault(key, started)
                self._use(key)
        for tensor in graph.outputs:
            self._create((number, tensor))
            self._use((number, tensor))

    def _create(self, key: Key) -> None:
        self.first.setdefault(key, self.now)

    def _use(self, key: Key) -> None:
        self.last[key] = self.now


def _called(operator: FileOperator) -> Iterator[int]:
    return (operator.options[name] for name in _CALLED.get(operator.kind, ()))


def runtime_graph(model: FileModel, covered: Mapping[int, tuple[str, ...]]) -> RuntimeGraph:
    """Calls and buffers; ``covered`` are the workload's operators for each of the first graph's."""
    scopes = _Scopes(model)
    scopes.follow(0)
    buffers: list[RuntimeBuffer] = []
    for number, graph in enumerate(model.graphs):
        buffers += _tensors(scopes, number, graph)
    for number, graph in enumerate(model.graphs):
        buffers += _scratch(scopes, number, graph)
    return RuntimeGraph(
        calls=tuple(_call(model, name, covered) for name in scopes.names),
        buffers=tuple(buffers),
        persistent_bytes=_persistent_bytes(model),
        source=model,
    )


def _persistent_bytes(model: FileModel) -> int:
    """Variable tensors of all graphs, and what the network's handles stand for, as it is read."""
    variables = [t for graph in model.graphs for t in graph.tensors if t.variable]
    network = model.graphs[0]
    read = {
        o.inputs[0]: network.tensors[o.outputs[0]].size_bytes
        for o in network.operators
        if o.kind == "READ_VARIABLE"
    }
    return sum(t.size_bytes for t in variables) + sum(read.values())


def _tensors(scopes: _Scopes, number: int, graph: FileGraph) -> Iterator[RuntimeBuffer]:
    names = graph.tensor_names()
    for i, tensor in enumerate(graph.tensors):
        key = (number, i)
        # A handle of a variable points into what its kernel keeps.
        elsewhere = tensor.constant or tensor.variable or tensor.type == "RESOURCE"
        planned = not elsewhere and tensor.size_bytes > 0
        if planned:
            yield _buffer(scopes, key, _named(number, names[i]), tensor.size_bytes)


def _scratch(scopes: _Scopes, number: int, graph: FileGraph) -> Iterator[RuntimeBuffer]:
    for position, operator in enumerate(graph.operators):
        for which, size in enumerate(scratch_bytes(operator, graph.tensors)):
            key = (number, position, which)
            name = _named(number, f"{graph.call_name(position)}.scratch{which}")
            yield _buffer(scopes, key, name, size)


def _buffer(scopes: _Scopes, key: Key, name: str, size_bytes: int) -> RuntimeBuffer:
    return RuntimeBuffer(
        name=name,
        size_bytes=size_bytes,
        first=scopes.first.get(key, NEVER),
        last=scopes.last.get(key, NEVER),
        fixed=len(key) == 2 and key[0] == 0,
    )


def _named(graph: int, name: str) -> str:
    return f"graph{graph}.{name}" if graph else name


def _call(
    model: FileModel, name: tuple[int, int] | None, covered: Mapping[int, tuple[str, ...]]
) -> RuntimeCall:
    if name is None:
        return RuntimeCall(name="inputs")
    graph, position = name
    operators = covered.get(position, ()) if graph == 0 else ()
    call = _named(graph, model.graphs[graph].call_name(position))
    return RuntimeCall(name=call, operators=operators)

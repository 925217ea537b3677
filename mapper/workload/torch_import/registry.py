"""The table of lowerings: aten operator name to the function that adds it to a draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mapper.workload.torch_import.draft import Draft, DraftOperator, Kernel, pointwise
from mapper.workload.torch_import.storage import View, broadcast

if TYPE_CHECKING:
    from torch.fx import Node

#: What a traced value is here: a view, or several for an operator with many results.
Value = View | tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One node of the traced graph, its arguments by their name in the aten schema.

    ``operation`` is the aten operator without overload (``aten.add``); ``nodes`` has the same
    arguments as they stand in the graph.
    """

    operation: str
    node: Node
    arguments: Mapping[str, Any]
    nodes: Mapping[str, Any]
    name: str
    draft: Draft
    dtype: str
    producers: Mapping[Node, DraftOperator]

    def __getitem__(self, argument: str) -> Any:
        return self.arguments[argument]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the (first) result."""
        value = self.node.meta["val"]
        return tuple((value[0] if isinstance(value, (tuple, list)) else value).shape)

    def emit(self, kernel: Kernel, *inputs: View, name: str = "") -> View:
        """An operator whose result has the node's shape and type."""
        return self.draft.emit(name or self.name, kernel, inputs, self.shape, self.dtype)

    def emit_pointwise(self, kind: str, operation: str, ops: int, *inputs: View) -> View:
        """An element-by-element operator; its inputs are broadcast to the result."""
        kernel = pointwise(kind, operation, self.shape, ops, len(inputs))
        return self.emit(kernel, *(broadcast(view, self.shape) for view in inputs))

    def sole_producer(self, argument: str) -> DraftOperator | None:
        """The operator that made an argument, if nothing but this call reads its result."""
        node = self.nodes[argument]
        while len(node.users) == 1:
            if node in self.producers:
                return self.producers[node]
            if not node.all_input_nodes:
                return None
            node = node.all_input_nodes[0]
        return None


Lowering = Callable[[Call], Value]

LOWERINGS: dict[str, Lowering] = {}

#: Operators that only rearrange indices: applied to constants too, where others are precomputed.
VIEWS: set[str] = set()


def lowers(*names: str, view: bool = False) -> Callable[[Lowering], Lowering]:
    """Register a lowering for aten operators, all overloads and in-place forms of each name."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            if name in LOWERINGS:
                raise ValueError(f"{name} has two lowerings")
            LOWERINGS[name] = function
        if view:
            VIEWS.update(names)
        return function

    return register

"""What the nodes of a traced graph are, as far as it can be told without lowering them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mapper.workload.torch_import.folding import zeros_read_beyond_the_edge
from mapper.workload.torch_import.registry import Value
from mapper.workload.torch_import.storage import View

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import Node


def drop_assertions(program: ExportedProgram) -> None:
    """Take out what no result is computed from: it only asserts something about values."""
    for node in reversed(list(program.graph.nodes)):
        if node.op == "call_function" and not node.users:
            program.graph.erase_node(node)


def aten_name(node: Node) -> str:
    """``aten.relu`` for every overload and for the in-place form."""
    parts = str(node.target).split(".")
    return ".".join(parts[:2]).rstrip("_") if parts[0] == "aten" else str(node.target)


def is_empty(node: Node) -> bool:
    """Whether there is nothing in the result, as of a cache before the first token."""
    return 0 in getattr(node.meta.get("val"), "shape", ())


def check_shape(node: Node, value: Value) -> None:
    """A lowering that leaves out an axis would be counted wrong in silence."""
    expected, found = first_of(node.meta["val"]), first_of(value)
    if (
        zeros_read_beyond_the_edge(node) is None
        and isinstance(found, View)
        and hasattr(expected, "shape")
    ):
        shape = (*expected.shape, 2) if expected.dtype.is_complex else tuple(expected.shape)
        assert found.shape == shape, f"{node.target} gives {found.shape}, torch {shape}"


def depends_on_data(node: Node) -> bool:
    """Whether a result has a size that is no number."""
    shape = getattr(node.meta.get("val"), "shape", ())
    return any(not isinstance(size, int) for size in shape)


def is_number(node: Node) -> bool:
    """A size or another plain number, which the program computes from its sizes, open ones too."""
    import torch

    kinds = (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)
    return isinstance(node.meta.get("val"), kinds)


def is_constant(value: Any) -> bool:
    views = value if isinstance(value, (tuple, list)) else (value,)
    return all(not isinstance(view, View) or view.storage.constant for view in views)


def first_of(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value

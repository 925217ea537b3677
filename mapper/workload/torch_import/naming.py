"""Names a person recognizes for the nodes of a traced graph."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.fx import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Names that are to be shown in place of torch's.

    ``parameters``: from a parameter's path to the name of its tensor (tied weights share one).
    ``modules``: from a module's path to the name of the operators that it consists of.
    ``formats``: from the name of a tensor to its format, where torch has no type for it.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)


def call_name(node: Node, modules: Mapping[str, str]) -> str:
    """``layer1.0.conv1`` for a call of a torch module, ``layer1.0.add`` inside a user's module."""
    stack = node.meta.get("nn_module_stack") or {}
    path, kind = next(reversed(stack.values()), ("", ""))
    path = re.sub(r"^L\['self'\]\.?|@\d+$", "", path)
    if path in modules:
        return modules[path]
    operation = str(node.target).split(".")[1].rstrip("_") if "." in str(node.target) else node.name
    if path and str(kind).startswith("torch.nn.modules."):
        return path
    return f"{path}.{operation}" if path else operation


def source_line(node: Node) -> str:
    """``, called at file:line`` of the user's code, where torch recorded it.

    Lines of installed libraries are passed over: they say nothing to who wrote the network.
    """
    found = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    own = [(file, line) for file, line in found if "site-packages" not in Path(file).parts]
    return f", called at {own[-1][0]}:{own[-1][1]}" if own else ""

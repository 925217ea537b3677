"""Branches and loops of ONNX whose course is known: written out before the graph is run.

An ``If`` whose condition is in the file becomes the branch that is taken, a ``Loop`` with a
number of iterations in the file, which nothing ends earlier, that many copies of its body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from arch.errors import InputError, Problem

#: Iterations of a loop that are written out.
MOST_ITERATIONS = 4096


def written_out(model: Any) -> Any:
    """The model without branches and loops; ``InputError`` names those that depend on data."""
    if not any(node.op_type in _WRITERS for node in model.graph.node):
        return model
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    while any(node.op_type in _WRITERS for node in copy.graph.node):
        nodes = list(_nodes(copy.graph))
        del copy.graph.node[:]
        copy.graph.node.extend(nodes)
    return copy


def _nodes(graph: Any) -> Iterator[Any]:
    known = _known(graph)
    for number, node in enumerate(graph.node):
        if node.op_type in _WRITERS:
            prefix = node.name or f"{node.op_type}_{number}"
            yield from _WRITERS[node.op_type](graph, node, known, prefix)
        else:
            yield node


def _known(graph: Any) -> dict[str, Any]:
    """Numbers that stand in the file, by name."""
    import onnx

    found = {proto.name: onnx.numpy_helper.to_array(proto) for proto in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    return found


def _refused(node: Any, prefix: str, what: str) -> InputError:
    return InputError(Problem(f"ONNX operator {node.op_type}: {what}", where=f"node {prefix}"))


def _if(graph: Any, node: Any, known: Mapping[str, Any], prefix: str) -> Iterator[Any]:
    condition = known.get(node.input[0])
    if condition is None:
        message = "its condition depends on data; only one that stands in the file can be imported"
        raise _refused(node, prefix, message)
    wanted = "then_branch" if bool(np.asarray(condition).reshape(-1)[0]) else "else_branch"
    (branch,) = (a.g for a in node.attribute if a.name == wanted)
    yield from _copied(graph, branch, prefix, {})
    for inner, outer in zip(branch.output, node.output, strict=True):
        yield _same(f"{prefix}/{inner.name}", outer)


def _loop(graph: Any, node: Any, known: Mapping[str, Any], prefix: str) -> Iterator[Any]:
    """Its body once for each iteration; values that are collected are joined at the end."""
    import onnx

    body = next(a.g for a in node.attribute if a.name == "body")
    count = _iterations(node, body, known, prefix)
    carried = list(node.input[2:])
    collected: list[list[str]] = [[] for _ in node.output[len(carried) :]]
    for step in range(count):
        at = f"{prefix}/{step}"
        number = onnx.numpy_helper.from_array(np.array(step, dtype=np.int64), f"{at}/iteration")
        going = onnx.numpy_helper.from_array(np.array(True), f"{at}/condition")
        graph.initializer.extend([number, going])
        names = [number.name, going.name, *carried]
        inputs = {value.name: name for value, name in zip(body.input, names, strict=True)}
        yield from _copied(graph, body, at, inputs)
        results = [inputs.get(v.name, f"{at}/{v.name}") for v in body.output[1:]]
        carried = results[: len(carried)]
        for parts, result in zip(collected, results[len(carried) :], strict=True):
            parts.append(result)
    for inner, outer in zip(carried, node.output, strict=False):
        yield _same(inner, outer)
    for parts, outer in zip(collected, node.output[len(carried) :], strict=True):
        yield from _stacked(graph, parts, outer, prefix)


def _iterations(node: Any, body: Any, known: Mapping[str, Any], prefix: str) -> int:
    trips, condition = known.get(node.input[0]), known.get(node.input[1])
    if trips is None:
        message = "how often it runs depends on data; only a number in the file can be imported"
        raise _refused(node, prefix, message)
    count = int(np.asarray(trips).reshape(-1)[0])
    if node.input[1] and (condition is None or not bool(np.asarray(condition).reshape(-1)[0])):
        raise _refused(node, prefix, "only one whose condition is true in the file can be imported")
    if not _goes_on(body):
        raise _refused(node, prefix, "its body decides when it ends; that cannot be imported")
    if not 1 <= count <= MOST_ITERATIONS:
        message = f"runs {count} times; allowed 1 to {MOST_ITERATIONS}"
        raise _refused(node, prefix, message)
    return count


def _goes_on(body: Any) -> bool:
    """Whether the body's condition is the one that it was given, or true."""
    name = body.output[0].name
    known = _known(body)
    makers = {output: node for node in body.node for output in node.output}
    while name in makers and makers[name].op_type in ("Identity", "Cast"):
        name = makers[name].input[0]
    if name in known:
        return bool(np.asarray(known[name]).reshape(-1)[0])
    return bool(name == body.input[1].name)


def _copied(graph: Any, body: Any, prefix: str, inputs: Mapping[str, str]) -> Iterator[Any]:
    """The nodes of a body with its own names behind a prefix; others are those outside."""
    import onnx

    own = {output for node in body.node for output in node.output if output}
    own |= {proto.name for proto in body.initializer}
    names = {name: f"{prefix}/{name}" for name in own} | dict(inputs)
    for proto in body.initializer:
        weight = onnx.TensorProto()
        weight.CopyFrom(proto)
        weight.name = names[proto.name]
        graph.initializer.append(weight)
    for node in body.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = f"{prefix}/{node.name or node.op_type}"
        copy.input[:] = [names.get(name, name) for name in node.input]
        copy.output[:] = [names.get(name, name) for name in node.output]
        yield copy


def _same(inner: str, outer: str) -> Any:
    import onnx

    return onnx.helper.make_node("Identity", [inner], [outer], name=outer)


def _stacked(graph: Any, parts: list[str], outer: str, prefix: str) -> Iterator[Any]:
    """Values of all iterations along a new first axis."""
    import onnx

    axis = f"{prefix}/{outer}/axis"
    graph.initializer.append(onnx.numpy_helper.from_array(np.array([0], dtype=np.int64), axis))
    longer = [f"{part}/{outer}" for part in parts]
    for part, name in zip(parts, longer, strict=True):
        yield onnx.helper.make_node("Unsqueeze", [part, axis], [name], name=name)
    yield onnx.helper.make_node("Concat", longer, [outer], name=outer, axis=0)


_WRITERS: Mapping[str, Callable[[Any, Any, Mapping[str, Any], str], Iterator[Any]]] = {
    "If": _if,
    "Loop": _loop,
}

"""ONNX operators against ONNX's own reference implementation, and what they become."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from tests.mapper.workload.interpreter import run

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def node(operator: str, inputs: Sequence[str], **attributes: Any) -> Any:
    return onnx.helper.make_node(operator, inputs, ["z"], **attributes)


def model(
    nodes: Sequence[Any], given: dict[str, Array], known: dict[str, Array], opset: int
) -> Any:
    values = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in given.items()
    ]
    result = onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph(
        list(nodes),
        "net",
        values,
        [result],
        [onnx.numpy_helper.from_array(array, name) for name, array in known.items()],
    )
    opsets = [onnx.helper.make_opsetid("", opset)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


def imported(file: Path, made: Any) -> Workload:
    onnx.save(made, file)
    return load_workload(str(file))


X = {"x": normal(1, 3, 4, 6)}
INT = np.int64
#: What can be executed by definition: node, inputs, what stands in the file, opset.
COMPUTED = {
    "slice backwards": (
        node("Slice", ["x", "s", "e", "a", "t"]),
        X,
        {
            "s": np.array([-1], INT),
            "e": np.array([-100], INT),
            "a": np.array([3], INT),
            "t": np.array([-2], INT),
        },
        13,
    ),
    "slice backwards in the middle": (
        node("Slice", ["x", "s", "e", "a", "t"]),
        X,
        {
            "s": np.array([4], INT),
            "e": np.array([1], INT),
            "a": np.array([3], INT),
            "t": np.array([-1], INT),
        },
        13,
    ),
    "reflection": (
        node("Pad", ["x", "p"], mode="reflect"),
        X,
        {"p": np.array([0, 0, 1, 2, 0, 0, 2, 1], INT)},
        13,
    ),
    "edge": (
        node("Pad", ["x", "p"], mode="edge"),
        X,
        {"p": np.array([0, 0, 1, 2, 0, 0, 2, 0], INT)},
        13,
    ),
    "running sum": (node("CumSum", ["x", "a"]), X, {"a": np.array(2, INT)}, 14),
    "einsum": (
        node("Einsum", ["x", "y"], equation="...ij,...jk->...ik"),
        X | {"y": normal(1, 3, 6, 2)},
        {},
        13,
    ),
    "attention of heads": (
        node("Attention", ["q", "k", "v"], scale=1.0),
        {"q": normal(1, 2, 5, 4), "k": normal(1, 2, 3, 4), "v": normal(1, 2, 3, 4)},
        {},
        23,
    ),
    "attention of rows": (
        node("Attention", ["q", "k", "v"], q_num_heads=2, kv_num_heads=2, scale=1.0),
        {"q": normal(1, 5, 8), "k": normal(1, 3, 8), "v": normal(1, 3, 8)},
        {},
        23,
    ),
    "rotary positions": (
        node("RotaryEmbedding", ["x", "c", "s"], num_heads=2),
        {"x": normal(1, 5, 8), "c": normal(1, 5, 2), "s": normal(1, 5, 2)},
        {},
        23,
    ),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_they_compute_what_the_reference_computes(name: str, tmp_path: Path) -> None:
    only, given, known, opset = COMPUTED[name]
    (alone,) = reference.ReferenceEvaluator(model([only], given, known, opset)).run(None, given)
    # Added to something else, the result lies as it is read, however it was made.
    last = onnx.helper.make_node("Add", ["z", "w"], ["sum"])
    given = given | {"w": normal(*alone.shape)}
    made = model([only, last], given, known, opset)
    made.graph.output[0].name = "sum"
    expected = alone + given["w"]
    workload = imported(tmp_path / "net.onnx", made)
    (output,) = [t.name for t in workload.tensors if t.kind == "output"]
    result = run(workload, {key: array.astype(np.float64) for key, array in given.items()})[output]
    np.testing.assert_allclose(result.reshape(expected.shape), expected, atol=1e-5)


#: Where data decides: what each becomes, and at how many points.
COUNTED = {
    "GatherND": (
        node("GatherND", ["x", "i"]),
        {"x": normal(4, 6)},
        {"i": np.array([[0], [2]], INT)},
        {"lookup": 2 * 6},
    ),
    "ScatterND": (
        node("ScatterND", ["x", "i", "u"]),
        {"x": normal(4, 6), "u": normal(2, 6)},
        {"i": np.array([[0], [2]], INT)},
        {"index_put": 4 * 6 * 2},
    ),
    "ScatterElements": (
        node("ScatterElements", ["x", "i", "u"], axis=1),
        {"x": normal(4, 6), "u": normal(4, 2)},
        {"i": np.zeros((4, 2), INT)},
        {"scatter": 4 * 6 * 2},
    ),
    "GatherElements": (
        node("GatherElements", ["x", "i"], axis=1),
        {"x": normal(4, 6)},
        {"i": np.zeros((4, 2), INT)},
        {"lookup": 4 * 2},
    ),
    "OneHot": (
        node("OneHot", ["i", "d", "v"]),
        {"i": np.zeros(4, INT)},
        {"d": np.array(5, INT), "v": np.array([0, 1], np.float32)},
        {"eq": 4 * 5, "where": 4 * 5},
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_data_decides_is_counted(name: str, tmp_path: Path) -> None:
    only, given, known, points = COUNTED[name]
    workload = imported(tmp_path / "net.onnx", model([only], given, known, 18))
    assert {o.kind: o.points for o in workload.operators} == points

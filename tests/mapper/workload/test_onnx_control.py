"""Recurrent layers, branches and loops of ONNX compute what the reference does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arch.errors import InputError
from mapper.workload.load import load_workload
from tests.mapper.workload.test_onnx_import import (
    FLOAT,
    Case,
    check_against_reference,
    info,
    ints,
    model,
    node,
    onnx,
    random,
    saved,
)


def recurrent(operator: str, gates: int, **attributes: Any) -> Case:
    """Three steps of a batch of two, four elements of state from three of input."""
    states = ["h0", "c0"] if operator == "LSTM" else ["h0"]
    made = node(operator, ["x", "w", "r", "", "", *states], ["y"], hidden_size=4, **attributes)
    weights = {"w": random(1, gates * 4, 3), "r": random(1, gates * 4, 4)}
    return [made], [3, 2, 3], weights | {name: random(1, 2, 4) for name in states}


def written(kind: str, body: Any, *inputs: str, **others: Any) -> Case:
    """Around a product; what decides stands in the file."""
    weights = {"go": np.array(True), "three": ints(3), "w": random(4, 4)}
    return [node(kind, list(inputs), ["y"], **body, **others)], [2, 4], weights


def branches() -> Case:
    taken = onnx.helper.make_graph(
        [node("MatMul", ["x", "w"], ["p"])], "then", [], [info("p", FLOAT, None)]
    )
    other = onnx.helper.make_graph(
        [node("Relu", ["x"], ["q"])], "else", [], [info("q", FLOAT, None)]
    )
    return written("If", {"then_branch": taken, "else_branch": other}, "go")


def loop() -> Case:
    nodes = [node("MatMul", ["h", "w"], ["n"]), node("Identity", ["c"], ["d"])]
    given = [info("i", onnx.TensorProto.INT64, []), info("c", onnx.TensorProto.BOOL, [])]
    body = onnx.helper.make_graph(
        nodes,
        "body",
        [*given, info("h", FLOAT, None)],
        [info("d", onnx.TensorProto.BOOL, []), info("n", FLOAT, None)],
    )
    return written("Loop", {"body": body}, "three", "go", "x")


CASES = {
    "LSTM": lambda: recurrent("LSTM", 4),
    "GRU": lambda: recurrent("GRU", 3),
    "GRU, reset after the product": lambda: recurrent("GRU", 3, linear_before_reset=1),
    "RNN": lambda: recurrent("RNN", 1),
    "a branch that is known": branches,
    "a loop of three iterations": loop,
}


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_the_reference_does(name: str, tmp_path: Path) -> None:
    check_against_reference(CASES[name](), tmp_path)


def test_a_branch_that_depends_on_data_is_refused(tmp_path: Path) -> None:
    built_nodes, _, _ = branches()
    weights = {"w": random(4, 4)}
    first = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Cast", ["s"], ["go"], to=9)]
    built = model([*first, *built_nodes], {"x": [2, 4]}, weights)
    with pytest.raises(InputError, match="its condition depends on data"):
        load_workload(str(saved(tmp_path, built)))

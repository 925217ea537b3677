"""Does a lowered program compute what its operator is defined to compute?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from arch.load import load_architecture
from mapper.hierarchy import Execution, execution
from mapper.lower import lower_execution
from mapper.mapping import Loop, Mapping, Stage
from mapper.program import Hold, Node, Program, Repeat
from mapper.search.exact import map_operator
from mapper.workload.graph import Workload
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures, resized
from tests.mapper.operators import window
from tests.mapper.program_interpreter import Array, execute
from tests.mapper.random_mappings import drawn_mapping
from tests.mapper.workload.interpreter import run as run_definition

WORKLOADS = {
    "product": operators.product(9, 7, 11),
    "product in even tiles": operators.product(8, 4, 8),
    "batched product": operators.batched_product(3, 3, 4, 5),
    "convolution": operators.convolved(2, 3, (5, 6), window(3, axes=2)),
    "padded convolution": operators.convolved(1, 3, (4, 5), window(3, padding=1, axes=2)),
    "strided convolution": operators.convolved(2, 3, (6, 5), window(3, 2, padding=1, axes=2)),
    "dilated convolution": operators.convolved(2, 3, (9,), window(3, padding=2, dilation=2)),
    "strides that leave gaps": operators.convolved(2, 3, (13,), window(2, 4, padding=1)),
    "grouped convolution": operators.convolved(4, 4, (7,), window(3, padding=1), groups=2),
    "depthwise convolution": operators.convolved(3, 3, (5, 4), window(3, 2, 1, axes=2), groups=3),
    "pooling": operators.pooled(5, 11, window(3, 2, padding=1)),
    "pooling of pooling": operators.pooled_twice(2, 4),
    "addition": operators.added(9, 7),
}


def whole_numbers(workload: Workload, rng: np.random.Generator) -> dict[str, Array]:
    """Small integers in floats: their sums are exact in any order."""
    return {
        tensor.name: rng.integers(-8, 9, tensor.shape).astype(np.float64)
        for tensor in workload.tensors
        if tensor.kind in ("input", "weight")
    }


def expected(workload: Workload, values: dict[str, Array]) -> Array:
    return run_definition(workload, values)[workload.operators[0].output.tensor]


@pytest.mark.parametrize("name", architectures())
@pytest.mark.parametrize("kind", WORKLOADS)
def test_random_mappings_compute_the_definition(kind: str, name: str) -> None:
    """Exact, ragged and padded tiles; every byte that is copied is one that is priced."""
    workload = WORKLOADS[kind]
    rng = np.random.default_rng([list(WORKLOADS).index(kind), list(architectures()).index(name)])
    device = resized(architectures()[name], {"buffer": 300, "weights": 60, "acc": 40})
    run = execution(workload, workload.operators[0], device)
    for _ in range(2):
        program = lower_execution(run, drawn_mapping(workload, device, rng))
        values = whole_numbers(workload, rng)
        computed = execute(workload, run, program, values)
        np.testing.assert_array_equal(computed, expected(workload, values))


@pytest.mark.parametrize("name", ["edge_npu", "ws16", "tiny"])
def test_optimal_mappings_compute_the_definition(name: str) -> None:
    device = load_architecture(name)
    for number, workload in enumerate(WORKLOADS.values()):
        operator = workload.operators[0]
        mapping = map_operator(workload, operator, device, price).mapping
        run = execution(workload, operator, device)
        values = whole_numbers(workload, np.random.default_rng(number))
        computed = execute(workload, run, lower_execution(run, mapping), values)
        np.testing.assert_array_equal(computed, expected(workload, values))


def spilling_product() -> tuple[Workload, Execution, Program]:
    """Partial sums leave the buffer and come back."""
    workload = WORKLOADS["product in even tiles"]
    device = resized(architectures()["free"], {"buffer": 300, "acc": 128})
    run = execution(workload, workload.operators[0], device)
    mapping = Mapping(
        operator="mac",
        compute="array",
        intrinsic=run.intrinsic.name,
        nest=(
            Loop("K", 4),
            Loop("M", 4),
            *(Stage(operand, "buffer") for operand in range(3)),
            Stage(2, "acc"),
            *(Loop(dim, 1) for dim in "MNK"),
        ),
        spatial=(),
        made_by="hand",
    )
    return workload, run, lower_execution(run, mapping)


@pytest.mark.parametrize("operand", [0, 1, 2])
def test_a_missing_load_would_show(operand: int) -> None:
    """The interpreter can fail: no operand's loads are redundant."""
    workload, run, program = spilling_product()
    values = whole_numbers(workload, np.random.default_rng(1))
    right = execute(workload, run, program, values)
    np.testing.assert_array_equal(right, expected(workload, values))
    broken = replace(program, body=_without_loads(program.body, operand))
    assert not np.array_equal(execute(workload, run, broken, values), right)


def _without_loads(body: tuple[Node, ...], operand: int) -> tuple[Node, ...]:
    found: list[Node] = []
    for node in body:
        if isinstance(node, Hold) and node.operand == operand:
            node = replace(node, load=None)
        if isinstance(node, Hold | Repeat):
            node = replace(node, body=_without_loads(node.body, operand))
        found.append(node)
    return tuple(found)

"""More room, more budget or a finer choice of tiles: is what the search finds ever worse?

Random layers, random hardware. Larger registers, buffers and arrays, wider ports; a constraint
taken away; the seed of every random choice is fixed.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from arch.load import load_architecture
from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.hierarchy import execution
from mapper.search.constraints import Constraint
from mapper.search.exact import OBJECTIVES, map_execution, map_operator
from mapper.search.method import Method
from mapper.search.methods import map_execution as map_by
from mapper.search.space import constrained_orders
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.prices import price
from tests.mapper.hardware import architectures, resized
from tests.mapper.test_search_exact import random_workload

#: Random layers per property.
LAYERS = 6


def optimum(workload: Workload, architecture: Architecture, objective: str) -> float:
    """Infinite where nothing fits."""
    try:
        result = map_operator(workload, workload.operators[0], architecture, price, objective)
    except InfeasibleError:
        return math.inf
    assert result.optimal
    return result.objective_value


@pytest.mark.parametrize("name", ["weight_stationary", "free", "nested_registers", "latched"])
def test_every_larger_memory_is_at_least_as_good(name: str) -> None:
    """From what barely fits anything to what fits everything, step by step."""
    rng = np.random.default_rng([7, len(name)])
    device = architectures()[name]
    improved = 0
    for _ in range(LAYERS):
        workload = random_workload(rng)
        memories = [m for m in device.memories[1:] if not m.is_latch]
        grown = memories[int(rng.integers(len(memories)))]
        objective = list(OBJECTIVES)[int(rng.integers(len(OBJECTIVES)))]
        sizes = sorted({max(1, round(grown.size_bytes * f)) for f in (0.25, 0.5, 1, 1.3, 2, 8)})
        found = [
            optimum(workload, resized(device, {grown.name: size}), objective) for size in sizes
        ]
        assert found == sorted(found, reverse=True), (workload, grown.name, objective)
        improved += found[0] > found[-1]
    assert improved > 0


#: Layers of real networks on real hardware, and what grows.
REAL = (
    ("ws16", "rf_w.size", ("16 B", "128 B", "1 KiB", "4 KiB")),
    ("ws16", "gb.size", ("8 KiB", "32 KiB", "100 KiB", "256 KiB")),
    ("eyeriss", "psum_spad.size", ("8 B", "48 B", "96 B")),
    ("edge_npu", "acc.size", ("64 B", "256 B", "1 KiB")),
)


@pytest.mark.parametrize(("arch", "parameter", "values"), REAL)
def test_real_layers_gain_from_larger_memories(
    arch: str, parameter: str, values: tuple[str, ...]
) -> None:
    """Energies do not change with sizes here only if they are given: areas and prices that grow
    with a memory are not the search's doing, so sizes change after the prices are made."""
    smallest = load_architecture(arch, {parameter: values[0]})
    name = parameter.split(".")[0]
    for layer in ("conv2d:C=32,H=14,K=64,R=3", "gemm:M=100,N=192,K=96"):
        workload = load_workload(layer)
        sizes = [
            next(
                m.size_bytes
                for m in load_architecture(arch, {parameter: v}).memories
                if m.name == name
            )
            for v in values
        ]
        found = [optimum(workload, resized(smallest, {name: size}), "edp") for size in sizes]
        assert found == sorted(found, reverse=True), (arch, parameter, layer, found)


def test_a_constraint_less_is_at_least_as_good() -> None:
    rng = np.random.default_rng(11)
    device = architectures()["free"]
    compared = 0
    for _ in range(3 * LAYERS):
        workload = random_workload(rng)
        run = execution(workload, workload.operators[0], device)
        dims = [d for d, e in run.operator.extents.items() if e > 1]
        some = frozenset((d, a.name) for d in dims[:2] for a in run.intrinsic.axes)
        fewer = frozenset(pair for pair in some if pair[0] == dims[0])
        found = []
        for unrolled in (frozenset[tuple[str, str]](), fewer, some, None):
            orders = constrained_orders(run, Constraint(unrolled=unrolled))
            try:
                found.append(map_execution(run, 0.0, price, "edp", orders).objective_value)
            except InfeasibleError:
                found.append(math.inf)
        assert found == sorted(found, reverse=True)
        compared += found[0] > found[-1]
    assert compared > 0


@pytest.mark.parametrize("method", ["annealing", "genetic", "random"])
def test_a_larger_budget_is_at_least_as_good_and_never_beats_the_optimum(method: str) -> None:
    """The same seed goes the same way, only further."""
    workload = load_workload("conv2d:C=24,H=13,K=40,R=3")
    device = load_architecture("eyeriss")
    run = execution(workload, workload.operators[0], device)
    best = map_execution(run, device.leakage_w, price, "edp")
    found = [
        map_by(Method(name=method, budget=budget, seed=5), run, device.leakage_w, price, "edp")
        for budget in (20, 60, 180)
    ]
    values = [result.objective_value for result in found]
    assert values == sorted(values, reverse=True)
    assert values[-1] >= best.objective_value
    again = map_by(Method(name=method, budget=60, seed=5), run, device.leakage_w, price, "edp")
    assert again == found[1]


def test_finer_tilings_are_at_least_as_good() -> None:
    """A layer of a prime extent against the same with one row less, which divides evenly: each
    tiling of the smaller is one of the larger restricted, so that latency cannot be worse."""
    device = architectures()["output_stationary"]
    for extent in (5, 7, 11, 13):
        whole, less = (
            load_workload(f"gemm:M={size},N=6,K=4,dtype=int8") for size in (extent, extent - 1)
        )
        assert optimum(less, device, "energy") <= optimum(whole, device, "energy")


def test_the_same_question_has_the_same_answer_whatever_was_asked_before() -> None:
    device = load_architecture("ws16")
    first, other = load_workload("gemm:M=60,N=90,K=70"), load_workload("conv2d:C=8,H=9,K=24,R=3")
    alone = map_operator(first, first.operators[0], device, price)
    map_operator(other, other.operators[0], device, price)
    assert map_operator(first, first.operators[0], replace(device), price) == alone

"""Does a batch of mappings cost what lowering and pricing each of them says?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from arch.load import load_architecture
from arch.spec import Architecture
from mapper.batch import BatchCost, BatchModel, best_of
from mapper.batch_model import NUMPY, Backend, batch_model, torch_backend
from mapper.cost import InfeasibleError
from mapper.hierarchy import Execution, execution
from mapper.mapping import Mapping
from mapper.search import pricing
from mapper.search.coefficients import Coefficients
from mapper.search.factors import Column
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import StageOrder, stage_orders
from mapper.workload.load import load_workload
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures
from tests.mapper.scalar_model import Cost, ScalarModel
from tests.mapper.test_search_exact import random_workload

CASES = 6
MAPPINGS = 24


@dataclass(frozen=True)
class Batch:
    """Mappings drawn independently: mapping ``i`` is row ``i`` of every group's table."""

    order: StageOrder
    model: BatchModel
    tables: list[FloatArray]
    mappings: list[Mapping]

    def costs(self) -> BatchCost:
        rows = [np.arange(len(self.mappings)) for _ in self.tables]
        return self.model.costs(rows)


def coefficients(run: Execution, architecture: Architecture) -> Coefficients:
    return Coefficients(
        run=run, leakage_w=architecture.leakage_w, price=price, objective=pricing.EDP
    )


def drawn(order: StageOrder, architecture: Architecture, rng: np.random.Generator) -> Batch:
    run = order.run
    chosen: dict[str, IntArray] = {
        dim: rng.integers(len(order.tilings(dim)), size=MAPPINGS) for dim in run.operator.extents
    }
    tables = [order.factors(g, {dim: chosen[dim] for dim in g}) for g in run.counts.groups]
    mappings = [
        order.mapping({dim: int(rows[i]) for dim, rows in chosen.items()}, made_by="random")
        for i in range(MAPPINGS)
    ]
    model = batch_model(order, coefficients(run, architecture).model(order), tables)
    return Batch(order, model, tables, mappings)


def scalar(model: ScalarModel, mapping: Mapping) -> Cost | str:
    """The cost, or the limit that the mapping breaks."""
    try:
        return model.cost(mapping)
    except InfeasibleError as error:
        return error.limit


def check(batch: Batch, scalars: list[Cost | str]) -> Counter[str]:
    """Every mapping's cost or broken limit; counts what was seen."""
    costs, seen = batch.costs(), Counter[str]()
    # As many additions as memories, then the leakage; the scalar sum rounds once more.
    bound = (len(batch.order.run.memories) + 2) * 2.0**-53
    for i, expected in enumerate(scalars):
        broken = int(costs.broken[i])
        if isinstance(expected, str):
            first = (broken & -broken).bit_length() - 1
            assert broken, batch.mappings[i]
            assert batch.model.limits[first].name == expected
            seen[expected.split()[0]] += 1
        else:
            assert broken == 0, batch.mappings[i]
            assert int(costs.latency_ps[i]) == expected.latency_ps
            assert abs(costs.energy_pj[i] - expected.energy_pj) <= bound * expected.energy_pj
            seen["fits"] += 1
    return seen


@pytest.mark.parametrize("name", architectures())
def test_batch_equals_the_scalar_model(name: str) -> None:
    """Differential: random operators (products, windows, padding, groups), orders, tilings."""
    architecture = architectures()[name]
    seen = Counter[str]()
    for seed in range(CASES):
        rng = np.random.default_rng(seed)
        workload = random_workload(rng)
        run = execution(workload, workload.operators[0], architecture)
        orders = list(stage_orders(run))
        batch = drawn(orders[int(rng.integers(len(orders)))], architecture, rng)
        assert batch.model.exact
        model = ScalarModel(workload, workload.operators[0], architecture)
        seen += check(batch, [scalar(model, mapping) for mapping in batch.mappings])
    assert seen["fits"] > MAPPINGS
    assert seen["capacity"] > 0


@pytest.mark.parametrize(
    "spec",
    ["gemm:M=96,N=80,K=120,dtype=int8", "conv2d:N=1,C=16,H=14,K=24,R=3,dtype=int8"],
)
@pytest.mark.parametrize("arch", ["ws16", "edge_npu", "eyeriss"])
def test_shipped_hardware(spec: str, arch: str) -> None:
    """Differential, on real sizes: leakage, latencies, shared ports, row-stationary arrays."""
    architecture, workload = load_architecture(arch), load_workload(spec)
    rng = np.random.default_rng(3)
    orders = list(stage_orders(execution(workload, workload.operators[0], architecture)))
    batch = drawn(orders[int(rng.integers(len(orders)))], architecture, rng)
    model = ScalarModel(workload, workload.operators[0], architecture)
    check(batch, [scalar(model, mapping) for mapping in batch.mappings])


def gemm_tables(architecture: Architecture) -> tuple[StageOrder, list[FloatArray]]:
    workload = operators.product(12, 10, 9)
    order = next(stage_orders(execution(workload, workload.operators[0], architecture)))
    tables = [
        order.factors(group, {group[0]: np.arange(len(order.tilings(group[0])))})
        for group in order.run.counts.groups
    ]
    return order, tables


def model_of(order: StageOrder, tables: list[FloatArray], on: Backend = NUMPY) -> BatchModel:
    architecture = architectures()["free"]
    return batch_model(order, coefficients(order.run, architecture).model(order), tables, on)


def test_all_combinations_equal_independent_rows() -> None:
    """Differential: broadcast indices against the same mappings spelled out."""
    order, tables = gemm_tables(architectures()["free"])
    model = model_of(order, tables)
    sizes = [len(table) for table in tables]
    together = model.costs(np.ogrid[tuple(slice(size) for size in sizes)])
    apart = model.costs([grid.ravel() for grid in np.indices(sizes)])
    assert together.latency_ps.shape == tuple(sizes)
    for name in ("latency_ps", "energy_pj", "broken"):
        np.testing.assert_array_equal(getattr(together, name).ravel(), getattr(apart, name))


def test_torch_equals_numpy() -> None:
    """Differential: the same code on another library gives the same bits."""
    import torch

    order, tables = gemm_tables(architectures()["free"])
    rng = np.random.default_rng(1)
    rows = [rng.integers(len(table), size=500) for table in tables]
    ours = model_of(order, tables).costs(rows)
    theirs = model_of(order, tables, torch_backend("cpu")).costs([torch.as_tensor(r) for r in rows])
    for name in ("latency_ps", "energy_pj", "broken"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name).numpy())


def test_axes_that_are_too_short_are_a_cause() -> None:
    """Both sides of a gate: the product of spatial factors on a shared axis."""
    order, tables = gemm_tables(architectures()["free"])
    model = model_of(order, tables)
    costs = model.costs(np.ogrid[tuple(slice(len(table)) for table in tables)])
    sizes = {axis.name: axis.size for axis in order.run.intrinsic.axes}
    assert order.contended
    for bit, axis in enumerate(order.contended):
        assert model.limits[bit].name == f"axis {axis} of array"
        used = order.columns.index(Column("used", over=(axis,)))
        m, n, k = (table[:, used] for table in tables)
        product = m[:, None, None] * n[:, None] * k
        np.testing.assert_array_equal((costs.broken >> bit) & 1 == 1, product > sizes[axis])


def test_numbers_that_do_not_fit_are_reported() -> None:
    """Both sides of a gate: exactness is claimed only below 2**53."""
    order, tables = gemm_tables(architectures()["free"])
    assert model_of(order, tables).exact
    assert not model_of(order, [table * 2.0**20 for table in tables]).exact


def test_the_best_is_legal_and_no_legal_one_is_better() -> None:
    """Definition: of those that fit, the least of each objective; none if none fits."""
    order, tables = gemm_tables(architectures()["free"])
    costs = model_of(order, tables).costs([np.arange(len(tables[0])), np.array([4]), np.array([7])])
    values = {
        "latency": costs.latency_ps,
        "energy": costs.energy_pj,
        "edp": costs.latency_ps * costs.energy_pj,
    }
    for objective, value in values.items():
        at = int(best_of(costs, objective, np))
        assert costs.broken[at] == 0
        assert value[at] == value[costs.broken == 0].min()

"""Do the search's tables and its compiled cost say of a mapping what the scalar model says?

The optimum alone would not show an error that only makes other mappings look worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.hierarchy import execution
from mapper.legality import peak_bits, staged_tiles
from mapper.search import costs, pricing
from mapper.search.coefficients import Coefficients
from mapper.search.flows import flows
from mapper.search.pricing import FloatArray
from mapper.search.space import StageOrder, stage_orders
from mapper.workload.graph import Workload
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures, resized
from tests.mapper.operators import window
from tests.mapper.scalar_model import ScalarModel

#: Mappings per operator and architecture.
DRAWS = 25

WORKLOADS = (
    operators.product(7, 5, 9),
    operators.batched_product(3, 5, 4, 7),
    operators.convolved(2, 5, (7, 6), window(3, padding=1, axes=2)),
    operators.convolved(4, 6, (11,), window(3, stride=2, padding=1, dilation=2), groups=2),
    operators.convolved(3, 3, (13,), window(2, stride=4, padding=1), groups=3),
    operators.pooled(5, 11, window(3, 2, padding=1)),
    operators.pooled_twice(2, 6),
    operators.added(10, 7),
)


@dataclass(frozen=True)
class Draw:
    """A mapping, as the numbers of its tilings."""

    workload: Workload
    architecture: Architecture
    order: StageOrder
    chosen: dict[str, int]

    def factors(self, dims: tuple[str, ...]) -> FloatArray:
        """Of each volume, what these dimensions of one group contribute, or at least."""
        (group,) = (g for g in self.order.run.counts.groups if set(dims) <= set(g))
        picked = {dim: np.array([self.chosen[dim]]) for dim in dims}
        row: FloatArray = self.order.factors(group, picked)[0]
        return row

    @property
    def volumes(self) -> FloatArray:
        groups = self.order.run.counts.groups
        product: FloatArray = np.prod([self.factors(group) for group in groups], axis=0)
        return product


def draws(workload: Workload, architecture: Architecture) -> Iterator[Draw]:
    rng = np.random.default_rng(len(workload.operators[0].extents))
    run = execution(workload, workload.operators[0], architecture)
    orders = list(stage_orders(run))
    for _ in range(DRAWS):
        order = orders[int(rng.integers(len(orders)))]
        chosen = {dim: int(rng.integers(len(order.tilings(dim)))) for dim in run.operator.extents}
        yield Draw(workload, architecture, order, chosen)


def priced(draw: Draw) -> FloatArray:
    coefficients = Coefficients(
        run=draw.order.run,
        leakage_w=draw.architecture.leakage_w,
        price=price,
        objective=pricing.EDP,
    )
    model = coefficients.model(draw.order)
    answer = np.empty(costs.ANSWERS)
    costs.cost(draw.volumes, flows(model), np.empty(2 * len(model.memories)), answer)
    return answer


@pytest.mark.parametrize("name", architectures())
def test_every_mapping_costs_what_the_scalar_model_says(name: str) -> None:
    """Latency to the picosecond, energy but for its rounding to 40 bits."""
    plenty = dict.fromkeys((m.name for m in architectures()[name].memories), 1 << 20)
    device = resized(architectures()[name], plenty)
    compared = 0
    for workload in WORKLOADS:
        model = ScalarModel(workload, workload.operators[0], device)
        for draw in draws(workload, device):
            answer = priced(draw)
            mapping = draw.order.mapping(draw.chosen, made_by="random")
            if answer[costs.EXCESS] == math.inf:  # two dimensions too many on an axis
                with pytest.raises(InfeasibleError, match="axis"):
                    model.cost(mapping)
                continue
            cost = model.cost(mapping)
            assert answer[costs.TOTAL_PS] == cost.latency_ps, mapping
            assert answer[costs.TOTAL_PJ] == pytest.approx(cost.energy_pj, rel=1e-11), mapping
            compared += 1
    assert compared > DRAWS


@pytest.mark.parametrize("name", architectures())
def test_excess_is_what_memories_lack(name: str) -> None:
    device = resized(architectures()[name], {"buffer": 20})
    sizes = {memory.name: 8 * memory.size_bytes for memory in device.memories}
    for workload in WORKLOADS:
        for draw in draws(workload, device):
            excess = priced(draw)[costs.EXCESS]
            if excess < math.inf:
                mapping = draw.order.mapping(draw.chosen, made_by="random")
                peak = peak_bits(staged_tiles(draw.order.run, mapping))
                lacking = sum(max(0, bits / sizes[name] - 1) for name, bits in peak.items())
                assert excess == pytest.approx(lacking)


@pytest.mark.parametrize("name", architectures())
def test_factors_of_one_dimension_bound_those_of_its_group(name: str) -> None:
    """What the search drops because of one dimension alone cannot be part of anything better."""
    for workload in WORKLOADS:
        for draw in draws(workload, architectures()[name]):
            for group in draw.order.run.counts.groups:
                alone = np.prod([draw.factors((dim,)) for dim in group], axis=0)
                assert (alone <= draw.factors(group)).all(), (group, draw.chosen)


@pytest.mark.parametrize("name", architectures())
def test_a_rows_factors_do_not_depend_on_the_other_rows(name: str) -> None:
    """Counts on shared axes are remembered from row to row."""
    for workload in WORKLOADS:
        several = list(draws(workload, architectures()[name]))
        order = several[0].order
        for group in order.run.counts.groups:
            options = {dim: len(order.tilings(dim)) for dim in group}
            picked = {
                dim: np.array([draw.chosen[dim] % count for draw in several])
                for dim, count in options.items()
            }
            table = order.factors(group, picked)
            for row in range(DRAWS):
                alone = order.factors(group, {dim: at[row : row + 1] for dim, at in picked.items()})
                assert (table[row] == alone[0]).all()

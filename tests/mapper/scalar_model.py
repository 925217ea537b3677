"""The analytical model of one mapping, and of every mapping: what the search must agree with.

Nothing here uses the search's tables or its cost function: each mapping is lowered to a program
and the program is priced.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.hierarchy import Execution, execution
from mapper.lower import lower_execution
from mapper.mapping import Mapping
from mapper.search.space import StageOrder, stage_orders
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from sim.analytical import estimate
from sim.lowered import Lowered
from sim.prices import price, price_all

OBJECTIVES = ("latency", "energy", "edp")


@dataclass(frozen=True, slots=True)
class Cost:
    latency_ps: int
    energy_pj: float

    def keys(self, objective: str) -> tuple[float, float]:
        """What decides, and what breaks ties."""
        latency, energy = float(self.latency_ps), self.energy_pj
        return {
            "latency": (latency, energy),
            "energy": (energy, latency),
            "edp": (latency * energy, latency),
        }[objective]


class ScalarModel:
    """Prices mappings of one operator on one architecture."""

    def __init__(self, workload: Workload, operator: Operator, architecture: Architecture) -> None:
        self.run: Execution = execution(workload, operator, architecture)
        self._prices = price_all(architecture, price)
        self._leakage_w = architecture.leakage_w

    def cost(self, mapping: Mapping) -> Cost:
        """Raises ``InfeasibleError`` if the mapping does not fit."""
        program = lower_execution(self.run, mapping)
        work = program.total_work()
        lowered = Lowered(execution=self.run, program=program, work=work)
        latency = estimate(lowered, self._prices).latency_ps
        dynamic = math.fsum(self._prices[name].energy_pj(w) for name, w in work.items())
        return Cost(latency, dynamic + self._leakage_w * latency)

    def costs(self, orders: Iterator[StageOrder]) -> Iterator[Cost]:
        """Of every mapping that fits."""
        for order in orders:
            for mapping in every_mapping(order):
                try:
                    yield self.cost(mapping)
                except InfeasibleError:
                    continue


def every_mapping(order: StageOrder) -> Iterator[Mapping]:
    extents = order.run.operator.extents
    numbers = [range(len(order.tilings(dim))) for dim in extents]
    for choice in itertools.product(*numbers):
        yield order.mapping(dict(zip(extents, choice, strict=True)), made_by="enumeration")


def mapspace_size(run: Execution) -> int:
    return sum(
        math.prod(len(order.tilings(dim)) for dim in run.operator.extents)
        for order in stage_orders(run)
    )


def best(costs: list[Cost], objective: str) -> tuple[float, float]:
    """The least value and, among those as good, the least of what breaks ties."""
    least = min(cost.keys(objective)[0] for cost in costs)
    ties = [c.keys(objective)[1] for c in costs if c.keys(objective)[0] <= least * (1 + 1e-11)]
    return least, min(ties)

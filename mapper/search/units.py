"""Mappings and costs of the units of a plan, each found once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from arch.datatypes import Bits
from arch.spec import Architecture
from mapper.cost import InfeasibleError, PriceList
from mapper.hierarchy import Execution
from mapper.mapping import Mapping
from mapper.placement import Homes, Occupied, placed
from mapper.plan import Unit
from mapper.search.exact import map_execution
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from mapper.workload.same_work import same_work

#: Room for tiles beside what others occupy is rounded down to such shares of the memory, so that
#: equal operators in nearly equal circumstances are mapped once.
SHARES = 64


class Cost(NamedTuple):
    """By the analytical model; energy includes leakage."""

    latency_ps: int
    energy_pj: float

    def plus(self, other: Cost) -> Cost:
        return Cost(self.latency_ps + other.latency_ps, self.energy_pj + other.energy_pj)

    def value(self, objective: str) -> float:
        """What is minimised: picoseconds, picojoules or their product."""
        values = {
            "latency": float(self.latency_ps),
            "energy": self.energy_pj,
            "edp": self.latency_ps * self.energy_pj,
        }
        return values[objective]


class UnitCost(Protocol):
    """What a unit costs, with its tensors at home where told and memories partly occupied."""

    def __call__(
        self,
        workload: Workload,
        architecture: Architecture,
        unit: Unit,
        homes: Homes,
        occupied: Occupied,
    ) -> tuple[int, float]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every search of a schedule is about."""

    workload: Workload
    architecture: Architecture
    price: PriceList
    cost: UnitCost
    objective: str


@dataclass(slots=True)
class Mapped:
    """Optimal mappings of operators and pieces of them; ``calls`` counts evaluations."""

    setting: Setting
    calls: int = 0
    known: dict[Hashable, Mapping | InfeasibleError] = field(default_factory=dict)
    costs: dict[Hashable, Cost] = field(default_factory=dict)

    def mapping(self, operator: Operator, homes: Homes, occupied: Occupied) -> Mapping:
        """``InfeasibleError`` if the operator does not fit beside what others occupy."""
        rounded = {memory: self._rounded(memory, bits) for memory, bits in occupied.items()}
        where = tuple(homes.get(access.tensor) for access in operator.accesses)
        workload = self.setting.workload
        key = same_work(workload, operator), where, tuple(sorted(rounded.items()))
        if key not in self.known:
            self.known[key] = self._searched(operator, homes, rounded)
        found = self.known[key]
        if isinstance(found, InfeasibleError):
            raise found
        return replace(found, operator=operator.name)

    def single(self, operator: Operator, homes: Homes, occupied: Occupied) -> tuple[Mapping, Cost]:
        """The operator on its own."""
        mapping = self.mapping(operator, homes, occupied)
        where = tuple(homes.get(access.tensor) for access in operator.accesses)
        shape = mapping.nest, mapping.spatial
        key = same_work(self.setting.workload, operator), where, shape
        if key not in self.costs:
            self.costs[key] = self.price_of(mapping, homes, occupied)
        return mapping, self.costs[key]

    def price_of(self, unit: Unit, homes: Homes, occupied: Occupied) -> Cost:
        self.calls += 1
        setting = self.setting
        found = setting.cost(setting.workload, setting.architecture, unit, homes, occupied)
        return Cost(*found)

    def _searched(
        self, operator: Operator, homes: Homes, occupied: Occupied
    ) -> Mapping | InfeasibleError:
        setting = self.setting
        try:
            run = placed(setting.workload, operator, setting.architecture, homes, occupied)
            return self._optimal(run)
        except InfeasibleError as error:
            return error

    def _optimal(self, run: Execution) -> Mapping:
        setting = self.setting
        leakage_w = setting.architecture.leakage_w
        result = map_execution(run, leakage_w, setting.price, setting.objective)
        self.calls += result.calls
        return result.mapping

    def _rounded(self, memory: str, bits: Bits) -> Bits:
        size = next(m.size_bytes for m in self.setting.architecture.memories if m.name == memory)
        share = max(8 * size // SHARES, 8)
        return int(-(-bits // share)) * share

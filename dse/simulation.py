"""A workload on an architecture: mapped where its family is mapped, then evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arch.spec import Architecture
from mapper.cost import Metrics
from mapper.mapping import Mapping as OperatorMapping
from mapper.search.exact import SearchResult
from mapper.search.method import EXACT, Method
from mapper.search.network import map_workload
from mapper.workload.graph import Workload
from sim.engines import DEFAULT
from sim.kernel_models import evaluate, runs_kernels
from sim.prices import price


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What a run costs, and how each operator's mapping was found (nothing for kernels)."""

    metrics: Metrics
    results: Mapping[str, SearchResult]

    @property
    def mappings(self) -> dict[str, OperatorMapping]:
        return {name: result.mapping for name, result in self.results.items()}

    @property
    def calls(self) -> int:
        """Calls of a cost model: those of the mapping searches, and the final evaluation."""
        return sum(result.calls for result in self.results.values()) + 1


def simulate(
    workload: Workload,
    architecture: Architecture,
    fidelity: str,
    objective: str,
    *,
    engine: str = DEFAULT,
    method: Method = EXACT,
) -> Simulation:
    """Every operator at the mapping that ``method`` finds for ``objective``, at ``fidelity``;
    simulations run on ``engine``.

    Raises ``InfeasibleError`` if the hardware cannot run the workload.
    """
    results: Mapping[str, SearchResult] = {}
    if not runs_kernels(architecture):
        results = map_workload(workload, architecture, price, objective, method)
    mappings = {name: result.mapping for name, result in results.items()}
    metrics = evaluate(workload, architecture, mappings, fidelity, engine)
    return Simulation(metrics=metrics, results=results)

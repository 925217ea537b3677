"""A workload on an architecture: mapped where its family is mapped, then evaluated."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arch.errors import InputError, Problem
from arch.spec import Architecture
from dse.fixed_mapping import map_as_given
from mapper.cost import Metrics
from mapper.mapping import Mapping as OperatorMapping
from mapper.search.exact import SearchResult
from mapper.search.method import EXACT, Method
from mapper.search.network import map_workload
from mapper.workload.graph import Workload
from sim.engines import DEFAULT
from sim.kernel_models import evaluate, runs_kernels
from sim.memory import check_outermost
from sim.prices import price
from sim.timeline import EVERYTHING, Slice, View, timeline

if TYPE_CHECKING:
    from dse.on_cores import PlacedRun
    from mapper.search.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How to find out: which engine simulates, whether the whole schedule is searched, and if
    not, how each operator's mapping is, or that it is ``given`` (see ``fixed_mapping``)."""

    engine: str = DEFAULT
    fuse: bool = False
    method: Method = EXACT
    given: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What a run costs, and how each operator's mapping was found (nothing for kernels).

    With a ``schedule``, operators of ``metrics`` are its units and ``results`` is empty; so it is
    with what was ``placed`` on several cores.
    """

    metrics: Metrics
    results: Mapping[str, SearchResult]
    schedule: Schedule | None = None
    placed: PlacedRun | None = None

    @property
    def mappings(self) -> dict[str, OperatorMapping]:
        return {name: result.mapping for name, result in self.results.items()}

    @property
    def calls(self) -> int:
        """Calls of a cost model: those of the mapping searches, and the final evaluation."""
        searched = sum(result.calls for result in self.results.values())
        whole = self.placed or self.schedule
        return searched + (whole.calls if whole else 0) + 1

    def timeline(
        self, workload: Workload, architecture: Architecture, view: View = EVERYTHING
    ) -> Iterator[Slice]:
        """An event simulation of the run."""
        if self.placed is not None:
            return self.placed.timeline(workload, architecture, view)
        if self.schedule is not None:
            slices: Iterator[Slice]
            slices = _fused().timeline_of(workload, architecture, self.schedule, view)
            return slices
        return timeline(workload, architecture, self.mappings, view=view)

    def schedule_document(self) -> dict[str, Any]:
        """What to add to the document of the metrics."""
        if self.placed is not None:
            return self.placed.document()
        return {} if self.schedule is None else {"schedule": _fused().document_of(self.schedule)}


def _fused() -> Any:
    """The search of schedules, which most runs do not need, imports half as much again."""
    return importlib.import_module("dse.fused")


def _check_exact(way: Way, where: str) -> None:
    """``InputError`` for mappings that a search of schedules would ignore."""
    if way.given is not None:
        raise InputError(Problem(f"{where} none can be given", where=f"mapping {way.given}"))
    if way.method.name != EXACT.name:
        reason = f"{where} mappings are exact"
        raise InputError(Problem(reason, where=f"search {way.method.name}"))


def simulate(
    workload: Workload,
    architecture: Architecture,
    fidelity: str,
    objective: str,
    way: Way | None = None,
) -> Simulation:
    """Every operator at the mapping that is found for ``objective``, at ``fidelity``; on several
    cores the best schedule with its units on all of them.

    Raises ``InfeasibleError`` if the hardware cannot run the workload.
    """
    way = way or Way()
    if architecture.cores > 1 and not runs_kernels(architecture):
        _check_exact(way, f"on {architecture.cores} cores")
        on_cores = importlib.import_module("dse.on_cores")
        placed = on_cores.simulate_placed(workload, architecture, fidelity, objective, way.engine)
        return Simulation(metrics=placed.run.metrics, results={}, placed=placed)
    if way.fuse:
        _check_exact(way, "with fusion")
        metrics, found = _fused().simulate_fused(
            workload, architecture, fidelity, objective, way.engine
        )
        return Simulation(metrics=metrics, results={}, schedule=found)
    results: Mapping[str, SearchResult] = {}
    if not runs_kernels(architecture):
        check_outermost(workload, architecture)
        results = (
            map_workload(workload, architecture, price, objective, way.method)
            if way.given is None
            else dict(map_as_given(way.given, workload, architecture, price, objective))
        )
    mappings = {name: result.mapping for name, result in results.items()}
    metrics = evaluate(workload, architecture, mappings, fidelity, way.engine)
    return Simulation(metrics=metrics, results=results)

"""One hardware point: architecture, best mappings, cost, and whether it meets the limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from arch.spec import Architecture
from dse.bounds import least_costs
from dse.config import SearchConfig
from dse.document import metrics_document
from dse.limits import broken, violations
from dse.mapping_document import mapping_document
from dse.simulation import Simulation, Way, simulate
from dse.trial import TrialState
from mapper.cost import InfeasibleError
from mapper.memory_plan.mcu import core_of, is_planned, plan_on
from mapper.search.method import Method
from mapper.workload.graph import Workload
from sim.engines import DEFAULT

#: The constraint of a design on which some operator has no mapping at all.
FITS = "fits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a point: the part of a ``Trial`` that evaluation decides."""

    state: TrialState
    reason: str
    objectives: Mapping[str, float]
    constraints: Mapping[str, float]
    metrics: Mapping[str, Any] | None
    cost_model_calls: int
    seconds: float = field(default=0.0, compare=False)


#: From overrides to outcome; raises only for bugs and for overrides that are not allowed.
Evaluator = Callable[[Mapping[str, Any]], Outcome]


class _Cost(Protocol):
    """What totals are made of: measured or bounded."""

    @property
    def latency_ps(self) -> int: ...

    @property
    def energy_pj(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PointEvaluator:
    """The evaluator of a search; sent once to each worker. Any ``engine`` has one result."""

    config: SearchConfig
    workloads: Mapping[str, Workload]
    engine: str = DEFAULT

    def __call__(self, overrides: Mapping[str, Any]) -> Outcome:
        started = time.perf_counter()
        chosen = [w.spec for w in self.config.workloads_of(overrides)]
        workloads = {spec: self.workloads[spec] for spec in chosen}
        evaluator = replace(self, workloads=workloads)
        outcome = evaluator._outcome(self.config.architecture(overrides))
        return replace(outcome, seconds=time.perf_counter() - started)

    def _outcome(self, architecture: Architecture) -> Outcome:
        """Limits that need no mapping come first: an over-area design costs no search."""
        area = {"area_mm2": architecture.area_mm2}
        reason = broken(self.config.constraints, area)
        if reason:
            return self._unmapped(architecture, reason, {}, calls=0)
        runs: dict[str, Simulation] = {}
        try:
            for spec, workload in self.workloads.items():
                runs[spec] = self._simulated(workload, architecture)
        except InfeasibleError as error:
            calls = error.calls + sum(run.calls for run in runs.values())
            return self._unmapped(architecture, str(error), {FITS: error.violation}, calls)
        totals = self._totals(architecture, {spec: run.metrics for spec, run in runs.items()})
        totals |= self._beside(architecture)
        reason = broken(self.config.constraints, totals)
        return Outcome(
            state=TrialState.INFEASIBLE if reason else TrialState.COMPLETE,
            reason=reason,
            objectives=totals,
            constraints=violations(self.config.constraints, totals),
            metrics={spec: document(run) for spec, run in runs.items()},
            cost_model_calls=sum(run.calls for run in runs.values()),
        )

    def _simulated(self, workload: Workload, architecture: Architecture) -> Simulation:
        mapping = self.config.mapping
        method = Method(name=mapping.method, budget=mapping.budget, seed=self.config.seed)
        way = Way(engine=self.engine, fuse=mapping.fusion, method=method)
        return simulate(workload, architecture, self.config.fidelity, mapping.objective, way)

    def _unmapped(
        self, architecture: Architecture, reason: str, violated: Mapping[str, float], calls: int
    ) -> Outcome:
        """A design that cannot be, which took ``calls`` to find out. Its objectives are what no
        mapping (or schedule, where that is searched) could beat, if even that is defined; its
        constraints are at least as far from being met as these say."""
        fidelity, fused = self.config.fidelity, self.config.mapping.fusion
        try:
            costs = {
                spec: least_costs(workload, architecture, fidelity, fused=fused)
                for spec, workload in self.workloads.items()
            }
            totals = self._totals(architecture, costs) | self._beside(architecture)
        except InfeasibleError:
            totals = {}
        return Outcome(
            state=TrialState.INFEASIBLE,
            reason=reason,
            objectives=totals,
            constraints={**violations(self.config.constraints, totals), **violated},
            metrics=None,
            cost_model_calls=calls + len(self.workloads),
        )

    def _beside(self, architecture: Architecture) -> dict[str, float]:
        """What is known without running: SRAM of a microcontroller (the plan of the network that
        needs the most, fitting or not), and the size of the network where it is chosen."""
        found = {}
        if is_planned(architecture):
            reserved = core_of(architecture).kernels.reserved_bytes
            peaks = (plan_on(w, architecture).peak_bytes for w in self.workloads.values())
            found["ram_bytes"] = float(max(peaks) + reserved)
        if self.config.chooses_workload:
            macs = sum(workload.macs for workload in self.workloads.values())
            found["per_gmac"] = 1e9 / max(1, macs)
        return found

    def _totals(self, architecture: Architecture, costs: Mapping[str, _Cost]) -> dict[str, float]:
        """Every quantity, by key; time and energy are weighted sums over the workloads. What has
        no area (a board) has none of zero either."""
        weights = {w.spec: w.weight for w in self.config.workloads}
        latency = sum(weights[spec] * cost.latency_ps for spec, cost in costs.items())
        energy = sum(weights[spec] * cost.energy_pj for spec, cost in costs.items())
        area = architecture.area_mm2
        return {
            "latency_ps": latency,
            "energy_pj": energy,
            **({"area_mm2": area} if area else {}),
            "power_w": energy / latency,
            "edp_js": energy * latency * 1e-24,
        }


def document(run: Simulation) -> dict[str, Any]:
    """As ``dse simulate --json``, and for each mapped operator its mapping and how good it is."""
    plain = metrics_document(run.metrics)
    for entry in plain["operators"]:
        result = run.results.get(entry["name"])
        if result is not None:
            entry["mapping"] = {
                "calls": result.calls,
                "optimal": result.optimal,
                "lower_bound": result.lower_bound,
                "gap": result.gap,
                **mapping_document(result.mapping),
            }
    return plain | run.schedule_document()

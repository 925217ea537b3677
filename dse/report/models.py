"""Asking the models: the recommended designs again, at every fidelity, and one timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arch.spec import Architecture
from dse.config import SearchConfig
from dse.report.designs import recommended
from dse.report.evidence import Evidence, FidelityCheck, WorkloadSummary
from dse.study import Study
from dse.trial import Trial
from mapper.cost import Mappings
from mapper.search.network import map_workload
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.models import FIDELITIES, cost_model
from sim.prices import price
from sim.timeline import Slice, timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mapped:
    """A design with the mappings of every workload."""

    trial: Trial
    architecture: Architecture
    mappings: Mapping[str, Mappings]


def collect(study: Study) -> Evidence:
    """Maps the starting and the recommended designs again (the search keeps no mappings)."""
    config = study.config
    workloads = {w.spec: load_workload(w.spec) for w in config.workloads}
    found = [d.trial for d in recommended(study.feasible, study.objective_keys)]
    wanted = {t.number: t for t in (study.start, *found)}
    architectures = {n: config.architecture(t.overrides) for n, t in wanted.items()}
    mapped = {
        n: _map(config, workloads, t, architectures[n])
        for n, t in wanted.items()
        if t.metrics is not None
    }
    first = config.workloads[0].spec
    return Evidence(
        architectures=architectures,
        workloads=tuple(_summary(w.spec, w.weight, workloads[w.spec]) for w in config.workloads),
        checks=tuple(_check(config, workloads, m) for m in mapped.values()),
        timeline=_timeline(first, workloads[first], mapped[found[0].number]) if found else (),
    )


def _map(
    config: SearchConfig,
    workloads: Mapping[str, Workload],
    trial: Trial,
    architecture: Architecture,
) -> _Mapped:
    objective = config.mapping.objective
    mappings = {
        spec: {
            name: found.mapping
            for name, found in map_workload(workload, architecture, price, objective).items()
        }
        for spec, workload in workloads.items()
    }
    return _Mapped(trial=trial, architecture=architecture, mappings=mappings)


def _summary(spec: str, weight: float, workload: Workload) -> WorkloadSummary:
    return WorkloadSummary(
        spec=spec,
        weight=weight,
        macs=workload.macs,
        parameters=workload.parameters,
        operators=len(workload.operators),
    )


def _check(
    config: SearchConfig, workloads: Mapping[str, Workload], mapped: _Mapped
) -> FidelityCheck:
    latency: dict[str, float] = {}
    energy: dict[str, float] = {}
    for fidelity in FIDELITIES:
        model = cost_model(fidelity)
        runs = [
            (
                w.weight,
                model.evaluate(workloads[w.spec], mapped.architecture, mapped.mappings[w.spec]),
            )
            for w in config.workloads
        ]
        latency[fidelity] = sum(weight * run.latency_ps for weight, run in runs)
        energy[fidelity] = sum(weight * run.energy_pj for weight, run in runs)
    return FidelityCheck(number=mapped.trial.number, latency_ps=latency, energy_pj=energy)


def _timeline(spec: str, workload: Workload, mapped: _Mapped) -> tuple[Slice, ...]:
    return tuple(timeline(workload, mapped.architecture, mapped.mappings[spec]))

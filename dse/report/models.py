"""Asking the models: the recommended designs again, at every fidelity, and one timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from arch.errors import InputError, Problem
from arch.registry import family_named
from arch.spec import Architecture
from arch.technology import CORNERS
from dse.config import WORKLOAD, SearchConfig
from dse.mapping_document import mapping_of
from dse.plan_document import plan_of
from dse.report.designs import recommended
from dse.report.evidence import (
    Evidence,
    FidelityCheck,
    TechnologyRange,
    WorkloadSummary,
)
from dse.report.settings import changed_paths, setting, with_workload
from dse.search import fingerprint
from dse.study import Study
from dse.trial import Trial
from mapper.cost import InfeasibleError, Mappings, Metrics
from mapper.legality import MappingError
from mapper.memory_plan.mcu import is_planned
from mapper.plan import Plan
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.kernel_models import evaluate
from sim.models import EVENT, FIDELITIES
from sim.plan import evaluate_plan
from sim.plan_cores import CoresRun, cores_timeline, evaluate_on_cores
from sim.plan_timeline import plan_timeline
from sim.timeline import Slice, timeline

#: The parameter that chooses among the sources of the technology's numbers.
CORNER = "corner"


def _refuse_changed(study: Study, workloads: Mapping[str, Workload]) -> None:
    moved = [s for s, w in workloads.items() if study.workloads[s] != fingerprint(w)]
    if moved:
        raise InputError(
            Problem(
                f"workload {spec}: the network that it names is another than the one searched "
                "for; restore that one, or search again with another --out",
                where=str(study.run_dir),
            )
            for spec in moved
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mapped:
    """A design with the mappings of every workload."""

    trial: Trial
    architecture: Architecture
    mappings: Mapping[str, Mappings]
    plans: Mapping[str, Plan]
    cores: Mapping[str, list[int]]

    def run(self, workload: Workload, spec: str, fidelity: str) -> Metrics:
        """The workload again, as it was mapped, scheduled or placed on cores then."""
        if spec in self.cores:
            return self._on_cores(workload, spec, fidelity).metrics
        if spec in self.plans:
            return evaluate_plan(fidelity, workload, self.architecture, self.plans[spec])
        return evaluate(workload, self.architecture, self.mappings[spec], fidelity)

    def _on_cores(self, workload: Workload, spec: str, fidelity: str) -> CoresRun:
        plan, cores = self.plans[spec], self.cores[spec]
        return evaluate_on_cores(fidelity, workload, self.architecture, plan, cores)

    def timeline(self, workload: Workload, spec: str) -> Iterator[Slice]:
        if spec in self.cores:
            run = self._on_cores(workload, spec, EVENT)
            return cores_timeline(run, self.architecture.memories[0].name)
        if spec in self.plans:
            return plan_timeline(workload, self.architecture, self.plans[spec])
        return timeline(workload, self.architecture, self.mappings[spec])


def collect(study: Study) -> Evidence:
    """Everything but the mapping search: mappings are those that the trials recorded.

    ``InputError`` if a workload is not the one that was searched for: its mappings would be wrong.
    """
    config = study.config
    workloads = {w.spec: load_workload(w.spec) for w in config.workloads}
    _refuse_changed(study, workloads)
    found = [d.trial for d in recommended(study.feasible, study.objective_keys)]
    wanted = {t.number: t for t in (study.start, *found)}
    architectures = {n: config.architecture(t.overrides) for n, t in wanted.items()}
    described = {n: with_workload(config, t, architectures[n]) for n, t in wanted.items()}
    mapped = {
        n: _Mapped(
            trial=t,
            architecture=architectures[n],
            mappings=_mappings(t),
            plans=_plans(t),
            cores=_cores(t),
        )
        for n, t in wanted.items()
        if t.metrics is not None
    }
    first = config.workloads_of(found[0].overrides if found else {})[0].spec
    return Evidence(
        architectures=described,
        workloads=tuple(_summary(w.spec, w.weight, workloads[w.spec]) for w in config.workloads),
        checks=tuple(_check(config, workloads, m) for m in mapped.values()),
        ranges=tuple(
            _range(config, workloads, mapped[n])
            for n in (0, *(t.number for t in found[:1] if t.number))
            if n in mapped and _has_corners(architectures[n])
        ),
        timeline=_timeline(first, workloads[first], mapped[found[0].number]) if found else (),
        idle=_idle(config, workloads, mapped[found[0].number], described) if found else (),
    )


def _mappings(trial: Trial) -> dict[str, Mappings]:
    return {
        spec: {
            o["name"]: mapping_of(o["name"], o["mapping"])
            for o in document["operators"]
            if "mapping" in o
        }
        for spec, document in (trial.metrics or {}).items()
    }


def _plans(trial: Trial) -> dict[str, Plan]:
    return {
        spec: plan_of(document["schedule"]["plan"])
        for spec, document in (trial.metrics or {}).items()
        if "schedule" in document
    }


def _cores(trial: Trial) -> dict[str, list[int]]:
    """Which core runs each unit of a plan, where there are several."""
    return {
        spec: document["schedule"]["cores"]
        for spec, document in (trial.metrics or {}).items()
        if "cores" in document.get("schedule", {})
    }


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
    """The search's own fidelity is on record; the others are evaluated."""
    totals = {
        name: mapped.trial.objectives
        if name == mapped.trial.fidelity
        else _totals(config, workloads, mapped, name)
        for name in FIDELITIES
    }
    return FidelityCheck(
        number=mapped.trial.number,
        latency_ps={name: total["latency_ps"] for name, total in totals.items()},
        energy_pj={name: total["energy_pj"] for name, total in totals.items()},
    )


def _totals(
    config: SearchConfig, workloads: Mapping[str, Workload], mapped: _Mapped, fidelity: str
) -> Mapping[str, float]:
    """The quantities of a trial, by key."""
    latency = energy = 0.0
    for w in config.workloads_of(mapped.trial.overrides):
        run = mapped.run(workloads[w.spec], w.spec, fidelity)
        latency += w.weight * run.latency_ps
        energy += w.weight * run.energy_pj
    return {
        "latency_ps": latency,
        "energy_pj": energy,
        "area_mm2": mapped.architecture.area_mm2,
        "power_w": energy / latency,
        "edp_js": energy * latency * 1e-24,
    }


def _has_corners(architecture: Architecture) -> bool:
    return CORNER in family_named(architecture.family).paths(architecture.document)


def _range(
    config: SearchConfig, workloads: Mapping[str, Workload], mapped: _Mapped
) -> TechnologyRange:
    low, high = (
        _totals(
            config,
            workloads,
            replace(mapped, architecture=mapped.architecture.with_overrides({CORNER: corner})),
            config.fidelity,
        )
        for corner in (CORNERS[0], CORNERS[-1])
    )
    return TechnologyRange(number=mapped.trial.number, low=low, high=high)


def _idle(
    config: SearchConfig,
    workloads: Mapping[str, Workload],
    mapped: _Mapped,
    described: Mapping[int, Architecture],
) -> tuple[str, ...]:
    """Changed parameters that, set back alone, leave time, energy and area as they are.

    SRAM that is planned is not among these, so nothing is said of boards.
    """
    start, chosen = described[0], described[mapped.trial.number]
    changed = changed_paths(start, chosen, config.space) - {WORKLOAD}
    if not changed or is_planned(mapped.architecture):
        return ()
    totals = _totals(config, workloads, mapped, config.fidelity)
    idle: list[str] = []
    for parameter in config.space.parameters:
        paths = [path for path in (parameter.path, *parameter.ties) if path in changed]
        back = {path: setting(start, path) for path in paths}
        try:
            architecture = mapped.architecture.with_overrides(back)
            without = replace(mapped, architecture=architecture)
            if _totals(config, workloads, without, config.fidelity) == totals:
                idle += paths
        except (InputError, InfeasibleError, MappingError):
            continue  # without it there would be no such design
    return tuple(idle)


def _timeline(spec: str, workload: Workload, mapped: _Mapped) -> tuple[Slice, ...]:
    return tuple(mapped.timeline(workload, spec))

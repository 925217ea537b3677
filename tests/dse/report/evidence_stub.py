"""Evidence for the synthetic study without running a mapper or a model."""

from __future__ import annotations

from synthetic_study import LAYERS, WORKLOAD

from dse.report.designs import recommended
from dse.report.evidence import Evidence, FidelityCheck, TechnologyRange, WorkloadSummary
from dse.study import Study
from dse.trial import Trial
from sim.timeline import Slice

#: Latency of each fidelity relative to the analytical one.
FACTORS = {"roofline": 0.8, "analytical": 1.0, "event": 1.043}


def evidence(study: Study) -> Evidence:
    found = [d.trial for d in recommended(study.feasible, study.objective_keys)]
    wanted = {t.number: t for t in (study.start, *found)}
    return Evidence(
        architectures={n: study.config.architecture(t.overrides) for n, t in wanted.items()},
        workloads=(
            WorkloadSummary(
                spec=WORKLOAD, weight=1.0, macs=1_814_073_344, parameters=11_689_512, operators=21
            ),
        ),
        checks=tuple(_check(t) for t in wanted.values() if t.metrics is not None),
        ranges=tuple(_range(t) for t in wanted.values() if t.metrics is not None),
        timeline=_timeline(found[0]) if found else (),
    )


def _check(trial: Trial) -> FidelityCheck:
    latency, energy = trial.objectives["latency_ps"], trial.objectives["energy_pj"]
    return FidelityCheck(
        number=trial.number,
        latency_ps={name: latency * factor for name, factor in FACTORS.items()},
        energy_pj=dict.fromkeys(FACTORS, energy),
    )


def _range(trial: Trial) -> TechnologyRange:
    """20 % less and 30 % more of energy and area."""
    low, high = (
        {k: v * (1 if k == "latency_ps" else factor) for k, v in trial.objectives.items()}
        for factor in (0.8, 1.3)
    )
    return TechnologyRange(number=trial.number, low=low, high=high)


def _timeline(trial: Trial) -> tuple[Slice, ...]:
    """Every layer: a load, eight tile computations with a steady stretch, a store."""
    assert trial.metrics is not None
    slices: list[Slice] = []
    start = 0
    for layer, record in zip(LAYERS, trial.metrics[WORKLOAD]["operators"], strict=True):
        unit = record["latency_ps"] // 10
        slices.append(_slice("operators", "operator", layer[0], (start, 10 * unit)))
        slices.append(_slice("ports", "dram", "load", (start, unit)))
        slices.append(_slice("processes", "load input in gbuf", "load", (start, unit)))
        for i in range(1, 9):
            steady = 20 if i == 4 else 1
            span = (start + i * unit, unit)
            slices.append(_slice("ports", "array", "compute", span, steady))
            slices.append(_slice("processes", "compute", "compute", span, steady))
        slices.append(_slice("ports", "gbuf.read", "store", (start + 9 * unit, unit)))
        store = (start + 9 * unit, unit)
        slices.append(_slice("processes", "store output in gbuf", "store", store))
        start += 10 * unit
    return tuple(slices)


def _slice(group: str, track: str, name: str, span: tuple[int, int], iterations: int = 1) -> Slice:
    return Slice(
        group=group,
        track=track,
        name=name,
        start_ps=span[0],
        duration_ps=span[1],
        busy_ps=span[1],
        iterations=iterations,
    )

"""What every family must satisfy whose programs are kernels of a library (sim/kernel_models.py).

    class TestMine(KernelConformance):
        architectures = ("mine",)
        workloads = ("gemm:M=64,N=64,K=64",)

What a piece of hardware cannot run it must refuse, and say why; at least one workload must run.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import pytest

from arch.errors import InputError
from arch.load import load_architecture
from arch.spec import Architecture
from dse.document import metrics_document
from mapper.cost import InfeasibleError, Metrics
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.kernel_models import evaluate, runs_kernels
from sim.models import FIDELITIES
from sim.timeline import timeline


@dataclass(frozen=True, kw_only=True)
class Run:
    """A workload on an architecture, at all fidelities."""

    workload: Workload
    architecture: Architecture
    metrics: dict[str, Metrics]

    def __str__(self) -> str:
        return f"{self.workload.name} on {self.architecture.name}"


class KernelConformance:
    """The suite."""

    architectures: ClassVar[tuple[str, ...]]
    workloads: ClassVar[tuple[str, ...]]

    @pytest.fixture(scope="class")
    @classmethod
    def runs(cls) -> list[Run]:
        networks = [load_workload(spec) for spec in cls.workloads]
        found = []
        for name in cls.architectures:
            architecture = load_architecture(name)
            assert runs_kernels(architecture)
            ran = [run for run in (_run(w, architecture) for w in networks) if run is not None]
            assert ran, name
            found += ran
        return found

    def test_roofline_at_most_analytical_at_most_event(self, runs: list[Run]) -> None:
        for run in runs:
            for quick, careful in pairwise(run.metrics.values()):
                for one, other in zip(quick.operators, careful.operators, strict=True):
                    assert one.latency_ps <= other.latency_ps, f"{run}: {one.name}"
                assert quick.latency_ps <= careful.latency_ps

    def test_the_same_work_costs_the_same_dynamic_energy(self, runs: list[Run]) -> None:
        for run in runs:
            energies = [m.dynamic_energy_pj for m in run.metrics.values()]
            assert all(_close(e, energies[0]) for e in energies), run

    def test_parts_sum_to_totals(self, runs: list[Run]) -> None:
        for run in runs:
            for m in run.metrics.values():
                leakage = run.architecture.leakage_w * m.latency_ps
                assert _close(m.energy_pj, m.dynamic_energy_pj + leakage)
                assert _close(m.energy_pj, sum(c.energy_pj for c in m.components.values()))
                assert _close(m.energy_pj, sum(o.energy_pj for o in m.operators))
                assert _close(m.power_w * m.latency_ps, m.energy_pj)
                assert m.latency_ps == sum(o.latency_ps for o in m.operators)
                assert m.macs == sum(o.macs for o in m.operators) == run.workload.macs, run
                for name, component in m.components.items():
                    parts = [o.components[name] for o in m.operators]
                    assert component.busy_ps == sum(p.busy_ps for p in parts)
                    assert component.read_bytes == sum(p.read_bytes for p in parts)
                    assert component.write_bytes == sum(p.write_bytes for p in parts)

    def test_nothing_is_busy_for_longer_than_it_takes(self, runs: list[Run]) -> None:
        for run in runs:
            for m in run.metrics.values():
                for operator in m.operators:
                    assert operator.bound_by in (*operator.components, "latency")
                    for component in operator.components.values():
                        assert 0 <= component.busy_ps <= operator.latency_ps, f"{run}: {operator}"
                        assert 0 <= component.utilization <= 1

    def test_the_gap_between_the_models_is_explained(self, runs: list[Run]) -> None:
        for run in runs:
            quick, careful = run.metrics["analytical"], run.metrics["event"]
            assert sum(careful.gap.values()) == careful.latency_ps - quick.latency_ps
            assert all(ps > 0 for o in careful.operators for ps in o.gap.values())

    def test_evaluation_is_deterministic(self, runs: list[Run]) -> None:
        for run in runs[::3]:
            again = evaluate(run.workload, run.architecture, {}, "event")
            assert again == run.metrics["event"]

    def test_documents_say_what_the_metrics_are(self, runs: list[Run]) -> None:
        for run in runs:
            for m in run.metrics.values():
                read = json.loads(json.dumps(metrics_document(m), allow_nan=False))
                assert read["latency_ps"] == sum(o["latency_ps"] for o in read["operators"])
                assert read["macs"] == sum(o["macs"] for o in read["operators"])
                assert _close(read["energy_pj"], sum(o["energy_pj"] for o in read["operators"]))
                assert read["memory"] == m.memory

    def test_the_timeline_agrees_with_the_metrics(self, runs: list[Run]) -> None:
        for run in runs[::3]:
            pieces = [
                p
                for p in timeline(run.workload, run.architecture, {})
                if (p.group, p.track) == ("operators", "operator")
            ]
            durations = [o.latency_ps for o in run.metrics["event"].operators]
            assert [p.duration_ps for p in pieces] == durations

    def test_a_memory_must_be_large_enough_and_no_larger(self, runs: list[Run]) -> None:
        for run in runs[::3]:
            for memory in run.architecture.memories:
                needed = run.metrics["event"].memory.get(memory.name, 0)
                if needed > 1:
                    _run_with(run, replace(memory, size_bytes=needed))
                    with pytest.raises(InfeasibleError) as refusal:
                        _run_with(run, replace(memory, size_bytes=needed - 1))
                    assert refusal.value.needed > refusal.value.allowed


def _run(workload: Workload, architecture: Architecture) -> Run | None:
    """Nothing if the hardware cannot run it."""
    try:
        metrics = {f: evaluate(workload, architecture, {}, f) for f in FIDELITIES}
    except (InfeasibleError, InputError):
        return None
    return Run(workload=workload, architecture=architecture, metrics=metrics)


def _run_with(run: Run, memory: object) -> None:
    components = tuple(
        memory if c.name == memory.name else c  # type: ignore[attr-defined]
        for c in run.architecture.components
    )
    changed = replace(run.architecture, components=components)  # type: ignore[arg-type]
    evaluate(run.workload, changed, {}, "event")


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)

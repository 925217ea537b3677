"""The family ``gpu`` keeps the promises that every family makes, for loop mappings too.

``dse`` runs a GPU's workloads as kernels (tests/sim/gpu); its components can still be mapped.
"""

from __future__ import annotations

from arch.spec import Architecture
from mapper.workload.graph import Workload
from sim.kernel_models import evaluate
from sim.timeline import timeline
from tests.conformance.suite import Case, FamilyConformance
from tests.conformance.workloads import workloads_for


class TestGpu(FamilyConformance):
    architecture = "h200"

    @classmethod
    def workloads(cls, architecture: Architecture) -> tuple[Workload, ...]:
        return workloads_for(architecture)[::6]

    def test_the_timeline_agrees_with_the_metrics(self, cases: list[Case]) -> None:
        """The timeline is of the kernels, one after the other."""
        for case in cases:
            metrics = evaluate(case.workload, case.architecture, {}, "event")
            pieces = [
                p for p in timeline(case.workload, case.architecture, {}) if p.group == "operators"
            ]
            assert [p.duration_ps for p in pieces] == [o.latency_ps for o in metrics.operators]

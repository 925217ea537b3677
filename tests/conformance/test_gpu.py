"""The family ``gpu`` keeps the promises that every family makes."""

from __future__ import annotations

from arch.spec import Architecture
from mapper.workload.graph import Workload
from tests.conformance.suite import FamilyConformance
from tests.conformance.workloads import workloads_for


class TestGpu(FamilyConformance):
    architecture = "h200"

    @classmethod
    def workloads(cls, architecture: Architecture) -> tuple[Workload, ...]:
        return workloads_for(architecture)[::4]

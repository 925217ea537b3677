"""A network on several cores: cut and placed for an objective, then run at a fidelity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arch.spec import Architecture
from dse.plan_document import cores_document, placed_document
from dse.scheduling import OnCores, place, simulated
from mapper.workload.graph import Workload
from sim.plan_cores import CoresRun, cores_timeline
from sim.timeline import Slice, View


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRun:
    """Which core runs what (``found``), and what that costs (``run``)."""

    found: OnCores
    run: CoresRun

    @property
    def calls(self) -> int:
        return self.found.schedule.calls

    def timeline(
        self, workload: Workload, architecture: Architecture, view: View
    ) -> Iterator[Slice]:
        run = self.run
        if run.simulated is None:
            run = simulated(workload, architecture, self.found)
        return cores_timeline(run, architecture.memories[0].name, view)

    def document(self) -> dict[str, Any]:
        """``schedule`` is what is needed to evaluate it again."""
        return {
            "cores": cores_document(self.found, self.run),
            "schedule": placed_document(self.found),
        }


def simulate_placed(
    workload: Workload, architecture: Architecture, fidelity: str, objective: str, engine: str
) -> PlacedRun:
    found = place(workload, architecture, objective)
    run = simulated(workload, architecture, found, fidelity, engine)
    return PlacedRun(found=found, run=run)

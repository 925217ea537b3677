"""What the report asks the models for: the recommended designs at every fidelity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arch.spec import Architecture
from sim.timeline import Slice


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSummary:
    """A workload as the question names it."""

    spec: str
    weight: float
    macs: int
    parameters: int
    operators: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityCheck:
    """Latency and energy of one design by fidelity, summed over the weighted workloads."""

    number: int
    latency_ps: Mapping[str, float]
    energy_pj: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TechnologyRange:
    """One design where the technology's sources are lowest and highest, by objective key.

    Mappings are those of the design, the model is the search's.
    """

    number: int
    low: Mapping[str, float]
    high: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """``architectures`` by trial number; ``checks`` of the recommended designs and the start.

    ``ranges`` are of the start and the chosen design, empty where the technology has none.
    ``timeline`` is the chosen design's event simulation of the first workload. ``idle`` are
    changes of the chosen design against the start of which each alone could be left out.
    """

    architectures: Mapping[int, Architecture]
    workloads: tuple[WorkloadSummary, ...]
    checks: tuple[FidelityCheck, ...]
    ranges: tuple[TechnologyRange, ...]
    timeline: tuple[Slice, ...]
    idle: tuple[str, ...] = ()

    def check(self, number: int) -> FidelityCheck | None:
        return next((c for c in self.checks if c.number == number), None)

    def range_of(self, number: int) -> TechnologyRange | None:
        return next((r for r in self.ranges if r.number == number), None)

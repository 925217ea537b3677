"""Constraints with their margins, and why trials were infeasible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from arch.spec import Architecture
from dse.config import Constraint
from dse.report import display
from dse.study import Study
from dse.trial import Trial, TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A limit and how far the design stays below it (negative: how far it is beyond)."""

    text: str
    limit: float
    value: float
    key: str

    @property
    def share(self) -> float:
        """The unused part of the limit."""
        return 1 - self.value / self.limit if self.limit else -float(self.value > 0)


def margins(constraints: Sequence[Constraint], trial: Trial) -> tuple[Margin, ...]:
    """For each configured constraint whose quantity is known."""
    return tuple(
        Margin(
            text=display.limit(c),
            limit=c.limit,
            value=trial.objectives[c.quantity.key],
            key=c.quantity.key,
        )
        for c in constraints
        if c.quantity.key in trial.objectives
    )


def memory_margins(trial: Trial, architecture: Architecture) -> tuple[Margin, ...]:
    """For each memory whose peak use the models report: of one instance, over all workloads."""
    peaks: dict[str, int] = {}
    for document in (trial.metrics or {}).values():
        for name, peak in document["memory"].items():
            peaks[name] = max(peaks.get(name, 0), peak)
    return tuple(
        Margin(
            text=f"{memory.name} capacity{', each' if memory.count > 1 else ''}",
            limit=memory.size_bytes,
            value=peaks[memory.name],
            key="size_bytes",
        )
        for memory in architecture.memories
        if memory.name in peaks
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A limit that trials broke, how often, and one message as it was recorded."""

    limit: str
    count: int
    example: Trial


def infeasible_reasons(study: Study) -> tuple[Reason, ...]:
    """By falling count."""
    broken = [t for t in study.trials if t.state is TrialState.INFEASIBLE]
    counts = Counter(limit_of(t) for t in broken)
    first: dict[str, Trial] = {}
    for trial in broken:
        first.setdefault(limit_of(trial), trial)
    return tuple(
        Reason(limit=limit, count=count, example=first[limit])
        for limit, count in counts.most_common()
    )


def limit_of(trial: Trial) -> str:
    """The limit that a recorded reason starts with."""
    return trial.reason.partition(":")[0]

"""All facts of a report, computed once from the study and the models' evidence."""

from __future__ import annotations

from dataclasses import dataclass

from arch.spec import Architecture
from dse.config import WeightedWorkload
from dse.report.confidence import Case, Finding, how_sure
from dse.report.convergence import Convergence, convergence
from dse.report.designs import Design, label, nearest_misses, recommended
from dse.report.evidence import Evidence
from dse.report.explain import Comparison, why
from dse.report.importance import Importance, importance
from dse.report.layers import LayerPair, pairs
from dse.report.limits import Reason, infeasible_reasons
from dse.study import Study
from dse.trial import Trial

#: How many designs to show when none is feasible.
NEAREST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """``designs`` are the recommended ones, the chosen first; empty if nothing is feasible.

    ``compared`` is the starting design, then the recommended ones that differ from it.
    ``nearest`` are the trials that came closest to feasible, where none is.
    """

    study: Study
    evidence: Evidence
    front: tuple[Trial, ...]
    designs: tuple[Design, ...]
    nearest: tuple[Trial, ...]
    convergence: Convergence | None
    importance: tuple[Importance, ...]
    pairs: tuple[LayerPair, ...]
    why: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    reasons: tuple[Reason, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return self.study.objective_keys

    @property
    def chosen(self) -> Trial | None:
        return self.designs[0].trial if self.designs else None

    @property
    def chosen_workloads(self) -> tuple[WeightedWorkload, ...]:
        """What the chosen design runs (all of them where none is chosen)."""
        overrides = {} if self.chosen is None else self.chosen.overrides
        return self.study.config.workloads_of(overrides)

    @property
    def compared(self) -> tuple[Design, ...]:
        by_number = {d.trial.number: d for d in self.designs}
        start = by_number.pop(0, Design(trial=self.study.start, roles=()))
        return (start, *by_number.values())

    @property
    def base(self) -> Architecture:
        return self.evidence.architectures[0]

    @property
    def chosen_name(self) -> str:
        return label(self.chosen) if self.chosen is not None else ""


def gather(study: Study, evidence: Evidence) -> Facts:
    """The facts of a study, whatever state it is in."""
    designs = recommended(study.feasible, study.objective_keys)
    progress = convergence(study)
    chosen = designs[0].trial if designs else None
    side_by_side = pairs(study.config, study.start, chosen) if chosen is not None else ()
    return Facts(
        study=study,
        evidence=evidence,
        front=study.pareto() if designs else (),
        designs=designs,
        nearest=() if designs else nearest_misses(study, NEAREST),
        convergence=progress,
        importance=importance(study),
        pairs=side_by_side,
        why=_why(study, chosen, side_by_side, evidence),
        findings=_findings(study, designs, progress, evidence),
        reasons=infeasible_reasons(study),
    )


def _why(
    study: Study, chosen: Trial | None, side_by_side: tuple[LayerPair, ...], evidence: Evidence
) -> tuple[tuple[str, str], ...]:
    if chosen is None:
        return ()
    return why(
        Comparison(
            study=study,
            chosen=chosen,
            pairs=side_by_side,
            before=evidence.architectures[study.start.number],
            after=evidence.architectures[chosen.number],
        )
    )


def _findings(
    study: Study,
    designs: tuple[Design, ...],
    progress: Convergence | None,
    evidence: Evidence,
) -> tuple[Finding, ...]:
    if progress is None:
        return ()
    return how_sure(Case(study=study, designs=designs, convergence=progress, evidence=evidence))

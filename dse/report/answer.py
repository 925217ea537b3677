"""The answer in one or two sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.report import display
from dse.report.data import Facts
from dse.report.designs import Design, label
from dse.report.settings import changed_settings
from dse.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to build: a headline, what changes against the start, and the alternatives."""

    headline: str
    changes: tuple[tuple[str, Any, Any], ...]
    alternatives: tuple[str, ...]


def answer(facts: Facts) -> Answer:
    chosen = facts.chosen
    if chosen is None:
        return Answer(headline=_nothing(facts), changes=(), alternatives=())
    changes = changed_settings(facts.base, facts.evidence.architectures[chosen.number], facts.study)
    return Answer(
        headline=_headline(facts, chosen),
        changes=changes,
        alternatives=tuple(_alternative(facts, d) for d in facts.designs[1:]),
    )


def _headline(facts: Facts, chosen: Trial) -> str:
    count = len(facts.study.trials)
    if chosen is facts.study.start:
        better = "a better compromise" if len(facts.keys) > 1 else "better"
        return (
            f"Keep the starting design {facts.base.name}: none of the "
            f"{display.plural(count, 'evaluated design')} is {better}."
        )
    lead = f"Build design {label(chosen)}: {_gains(facts, chosen)} than {facts.base.name}"
    if not facts.study.start.feasible:
        return f"{lead}, which itself breaks a constraint ({facts.study.start.reason})."
    return f"{lead}, the starting design."


def _gains(facts: Facts, trial: Trial) -> str:
    """``2.10× faster and 1.30× larger``; unchanged objectives are left out."""
    start = facts.study.start.objectives
    words = [display.change(k, start[k], trial.objectives[k]) for k in facts.keys]
    told = [word for word in words if word != display.EQUAL]
    return display.listed(told) if told else "no different"


def _alternative(facts: Facts, design: Design) -> str:
    roles = display.listed(role.name for role in design.roles)
    if design.trial is facts.study.start:
        return f"{roles[0].upper()}{roles[1:]}: the starting design."
    return f"{roles[0].upper()}{roles[1:]}: {design.label}, {_gains(facts, design.trial)}."


def _nothing(facts: Facts) -> str:
    tried = display.plural(len(facts.study.trials), "design")
    lead = f"No design meets every constraint ({tried} evaluated, and the start)."
    nearest = facts.nearest
    if nearest is None:
        return lead
    return f"{lead} The closest is {label(nearest)}: {nearest.reason}."

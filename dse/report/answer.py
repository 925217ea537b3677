"""The answer in one or two sentences."""

from __future__ import annotations

from dataclasses import dataclass

from dse.report import display
from dse.report.data import Facts
from dse.report.designs import Design, baseline, label
from dse.report.settings import all_paths, changed_paths, setting
from dse.trial import Trial

#: Designs named in a list before it is cut.
NAMED = 6

#: What is said of a change that could be left out.
IDLE = " (alone it makes no difference)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to build: a headline, what changes against the start, and the alternatives.

    A change is a parameter, its old and new value, and a remark if it makes no difference.
    """

    headline: str
    changes: tuple[tuple[str, str, str, str], ...]
    alternatives: tuple[str, ...]


def answer(facts: Facts) -> Answer:
    chosen = facts.chosen
    if chosen is None:
        return Answer(headline=_nothing(facts), changes=(), alternatives=())
    after = facts.evidence.architectures[chosen.number]
    changed = changed_paths(facts.base, after, facts.study.space)
    changes = tuple(
        (
            path,
            display.parameter(setting(facts.base, path)),
            display.parameter(setting(after, path)),
            IDLE if path in facts.evidence.idle else "",
        )
        for path in all_paths(facts.study.space)
        if path in changed
    )
    return Answer(
        headline=_headline(facts, chosen),
        changes=changes,
        alternatives=(*(_alternative(facts, d) for d in facts.designs[1:]), *_better(facts)),
    )


def _headline(facts: Facts, chosen: Trial) -> str:
    start, name = facts.study.start, facts.base.name
    if chosen is start:
        count = display.plural(len(facts.study.trials), "evaluated design")
        better = "a better compromise" if len(facts.keys) > 1 else "better"
        return f"Keep the starting design {name}: none of {count} is {better}."
    lead = f"Build design {label(chosen)}"
    gains = _gains(facts, chosen)
    compared = f"{lead}: {gains} than {name}, the starting design" if gains else lead
    if start.feasible:
        return f"{compared}."
    reason = display.typeset(start.reason)
    return f"{compared}. The starting design {name} itself is infeasible ({reason})."


def _gains(facts: Facts, trial: Trial) -> str:
    """``2.10× faster and 1.30× larger``; unchanged and unknown objectives are left out."""
    known = [(k, b) for k in facts.keys if (b := baseline(facts.study, k)) is not None]
    words = [display.change(k, start, trial.objectives[k]) for k, start in known]
    told = [word for word in words if word != display.EQUAL]
    return display.listed(told) if told else ""


def _alternative(facts: Facts, design: Design) -> str:
    roles = display.listed(role.name for role in design.roles)
    lead = f"{roles[0].upper()}{roles[1:]}"
    if design.trial is facts.study.start:
        return f"{lead}: the starting design."
    gains = _gains(facts, design.trial)
    return f"{lead}: {design.label}, {gains}." if gains else f"{lead}: {design.label}."


def _better(facts: Facts) -> list[str]:
    """Which Pareto designs beat the start in everything, for a replacement without regrets."""
    start = facts.study.start
    if len(facts.keys) < 2 or any(baseline(facts.study, k) is None for k in facts.keys):
        return []
    ways = {
        t.number: [display.direction(start.objectives[k], t.objectives[k]) for k in facts.keys]
        for t in facts.front
    }
    found = [label(t) for t in facts.front if max(ways[t.number]) <= 0 and min(ways[t.number]) < 0]
    if not found:
        return ["No Pareto design is at least as good as the start in every objective."]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    named = display.listed(found) if not more else ", ".join(found[:NAMED])
    return [f"At least as good as the start in every objective: {named}{more}."]


def _nothing(facts: Facts) -> str:
    tried = display.plural(len(facts.study.trials), "design")
    lead = f"No design meets every limit: {tried} evaluated, and the start."
    if not facts.nearest:
        return lead
    closest = facts.nearest[0]
    return f"{lead} The closest is {label(closest)} ({display.typeset(closest.reason)})."

"""How sure the answer is: findings with a verdict, each by a rule that the report states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dse.report import display
from dse.report.convergence import REACHED, Change, Convergence
from dse.report.designs import Design, label
from dse.report.evidence import Evidence, FidelityCheck, TechnologyRange
from dse.report.layers import layers
from dse.report.limits import infeasible_reasons
from dse.study import Study
from dse.trial import Trial


class Verdict(StrEnum):
    """How much the finding supports the answer; ``NOTE`` only informs."""

    GOOD = "good"
    FAIR = "fair"
    WEAK = "weak"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    topic: str
    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything that the findings are drawn from."""

    study: Study
    designs: tuple[Design, ...]
    convergence: Convergence
    evidence: Evidence

    @property
    def chosen(self) -> Trial:
        return self.designs[0].trial


#: (good, fair): a value up to the first is good, up to the second fair, beyond it weak.
LAST_GAIN = (0.01, 0.05)
FIDELITY_GAP = (0.10, 0.25)
MAPPING_GAP = (0.0, 0.10)
#: The same for values that should be large.
INTERRUPTED_SHARE = (1.0, 0.5)

RULES = (
    f"convergence is good up to {display.percent(LAST_GAIN[0])} improvement from the last fifth "
    f"of the trials, fair up to {display.percent(LAST_GAIN[1])}; stability is good when they "
    f"changed no recommendation, fair if none gained more than {display.percent(LAST_GAIN[1])}; "
    f"model agreement is good up to {display.percent(FIDELITY_GAP[0])} between the search's model "
    f"and event simulation, fair up to {display.percent(FIDELITY_GAP[1])}; mappings are good when "
    f"all are proven optimal, fair up to {display.percent(MAPPING_GAP[1])} from the lower bound; "
    "technology is weak when a limit breaks or a gain becomes a loss within the range of its "
    "sources, fair when one vanishes"
)


def how_sure(case: Case) -> tuple[Finding, ...]:
    """Findings in the order in which an architect would ask."""
    return tuple(f for find in FINDINGS if (f := find(case)) is not None)


def _graded(number: float, thresholds: tuple[float, float]) -> Verdict:
    good, fair = thresholds
    if number <= good:
        return Verdict.GOOD
    return Verdict.FAIR if number <= fair else Verdict.WEAK


def _budget(case: Case) -> Finding:
    study = case.study
    done, asked, size = len(study.trials), study.config.trials, study.space.size
    reasons = infeasible_reasons(study)
    bad = sum(r.count for r in reasons)
    causes = f" ({', '.join(f'{r.limit} {r.count}' for r in reasons)})" if reasons else ""
    covered = min(1.0, (done + bool(study.start.overrides)) / size)  # the start may be in the space
    exhausted = covered == 1.0
    text = (
        f"{done:,} of {display.plural(asked, 'trial')} run beside the start, {done - bad:,} "
        f"feasible, {bad:,} infeasible{causes}. With the start they cover "
        f"{display.percent(covered)} of the {size:,} designs in the space."
    )
    if exhausted:
        text += " Every design was evaluated: the front is exact for these models."
    ended = exhausted or done >= asked
    half = done >= INTERRUPTED_SHARE[1] * asked
    verdict = Verdict.GOOD if ended else Verdict.FAIR if half else Verdict.WEAK
    return Finding(topic="Budget", verdict=verdict, text=text)


def _convergence(case: Case) -> Finding | None:
    c = case.convergence
    total = len(case.study.trials)
    last = total + 1 - c.last_from
    if last < 1:
        return None
    keys = case.study.objective_keys
    reached = f"{display.percent(REACHED)} of the final hypervolume was reached"
    if len(keys) == 1:
        reached = f"A {display.noun(keys[0])} within {display.percent(1 - REACHED)} was reached"
    text = (
        f"{reached} at trial {c.reached_at} of {total}; the last "
        f"{display.plural(last, 'trial')} improved it by {display.percent(c.last_gain)}."
    )
    verdict = _graded(c.last_gain, LAST_GAIN)
    if verdict is Verdict.WEAK:
        more = f"dse search with --resume --trials {2 * total}"
        text += f" More trials are likely to find better designs ({more})."
    return Finding(topic="Convergence", verdict=verdict, text=text)


def _stability(case: Case) -> Finding | None:
    c = case.convergence
    last = len(case.study.trials) + 1 - c.last_from
    if last < 1:
        return None
    if not c.changes:
        text = f"No recommendation changed in the last {display.plural(last, 'trial')}."
        return Finding(topic="Stability", verdict=Verdict.GOOD, text=text)
    text = f"In the last {display.plural(last, 'trial')}: {'; '.join(map(_changed, c.changes))}."
    new = any(change.before is None for change in c.changes)
    worst = max((change.loss or 0.0 for change in c.changes), default=0.0)
    verdict = Verdict.WEAK if new or worst > LAST_GAIN[1] else Verdict.FAIR
    return Finding(topic="Stability", verdict=verdict, text=text)


def _changed(change: Change) -> str:
    if change.before is None:
        return f"{change.role.name} was first found ({label(change.after)})"
    gain = f", {display.percent(change.loss)} better" if change.loss is not None else ""
    return f"{change.role.name} went from {label(change.before)} to {label(change.after)}{gain}"


def _fidelity(case: Case) -> Finding | None:
    searched = case.study.config.fidelity
    check = case.evidence.check(case.chosen.number)
    if check is None or searched == "event":
        return None
    gap = check.latency_ps["event"] / check.latency_ps[searched] - 1
    text = (
        f"Event simulation of {label(case.chosen)} takes "
        f"{display.value('latency_ps', check.latency_ps['event'])}, {display.percent(gap)} more "
        f"than the {searched} model that the search used{_gain_at_event(case, check)}."
    )
    return Finding(topic="Model agreement", verdict=_graded(abs(gap), FIDELITY_GAP), text=text)


def _gain_at_event(case: Case, check: FidelityCheck) -> str:
    start = case.evidence.check(case.study.start.number)
    if start is None or case.chosen is case.study.start:
        return ""
    searched = case.study.config.fidelity
    before = start.latency_ps[searched], start.latency_ps["event"]
    after = check.latency_ps[searched], check.latency_ps["event"]
    said = display.change("latency_ps", before[0], after[0])
    kept = display.change("latency_ps", before[1], after[1])
    return f"; against the start it is {kept} there ({said} by the {searched} model)"


def _lower_bound(case: Case) -> Finding | None:
    check = case.evidence.check(case.chosen.number)
    if check is None:
        return None
    bound, reached = check.latency_ps["roofline"], check.latency_ps["event"]
    text = (
        f"The roofline of {label(case.chosen)}, which no mapping on this hardware can beat, is "
        f"{display.value('latency_ps', bound)}: the simulated latency is "
        f"{display.times(reached / bound)} that bound."
    )
    return Finding(topic="Lower bound", verdict=Verdict.NOTE, text=text)


def _mapping(case: Case) -> Finding | None:
    found = [r.mapping for r in layers(case.study.config, case.chosen) if r.mapping is not None]
    if not found:
        return None
    optimal = sum(bool(m["optimal"]) for m in found)
    worst = max(0.0 if m["optimal"] else float(m["gap"]) for m in found)
    objective = case.study.config.mapping.objective
    text = f"{optimal} of {len(found)} layer mappings are proven optimal for {objective}"
    text += (
        "."
        if optimal == len(found)
        else (f"; the others are within {display.percent(worst)} of a lower bound.")
    )
    return Finding(topic="Mapping", verdict=_graded(worst, MAPPING_GAP), text=text)


#: What depends on the technology's numbers and is worth a range.
RANGED = ("energy_pj", "area_mm2")


def _technology(case: Case) -> Finding | None:
    """Does the answer hold wherever in the range of the technology's sources the truth lies?"""
    chosen = case.evidence.range_of(case.chosen.number)
    if chosen is None:
        return None
    spans = [
        f"{display.noun(key)} {display.span(key, chosen.low[key], chosen.high[key])}"
        for key in RANGED
    ]
    lead = f"Over the range of the technology's sources {label(case.chosen)} has"
    broken = [
        display.limit(c)
        for c in case.study.config.constraints
        if chosen.high[c.quantity.key] > c.limit
    ]
    text = f"{lead} {display.listed(spans)}{_gains_in_range(case, chosen)}."
    if broken:
        text += f" At the high end it breaks {display.listed(broken)}."
    verdict = Verdict.WEAK if broken else _steadiness(case, chosen)
    return Finding(topic="Technology", verdict=verdict, text=text)


def _gains_in_range(case: Case, chosen: TechnologyRange) -> str:
    start = case.evidence.range_of(case.study.start.number)
    if start is None or case.chosen is case.study.start:
        return ""
    low, high = (
        display.listed(display.change(key, old[key], new[key]) for key in RANGED)
        for old, new in ((start.low, chosen.low), (start.high, chosen.high))
    )
    if low == high:
        return f"; against the start it is {low} at both ends"
    return f"; against the start it is {low} at the low end, {high} at the high end"


def _steadiness(case: Case, chosen: TechnologyRange) -> Verdict:
    """Whether each gain or loss against the start stays one: weak where one turns around."""
    start = case.evidence.range_of(case.study.start.number)
    if start is None:
        return Verdict.NOTE
    directions = [
        {
            display.direction(start.low[key], chosen.low[key]),
            display.direction(start.high[key], chosen.high[key]),
        }
        for key in RANGED
    ]
    if {-1, 1} in directions:
        return Verdict.WEAK
    return Verdict.GOOD if all(len(d) == 1 for d in directions) else Verdict.FAIR


def _constants(case: Case) -> Finding | None:
    base = case.evidence.architectures[case.study.start.number]
    sources = base.document.get("sources", ())
    if not sources:
        return None
    text = f"Where the numbers of {base.name} come from: {'; '.join(map(str, sources))}."
    return Finding(topic="Constants", verdict=Verdict.NOTE, text=text)


FINDINGS: tuple[Callable[[Case], Finding | None], ...] = (
    _budget,
    _convergence,
    _stability,
    _fidelity,
    _lower_bound,
    _mapping,
    _technology,
    _constants,
)

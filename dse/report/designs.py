"""Which designs the report recommends, and why those."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dse.pareto import non_dominated
from dse.report import display
from dse.study import Study
from dse.trial import Trial

START = "start"


@dataclass(frozen=True, slots=True)
class Role:
    """What a design is recommended for; ``key`` is the objective that it is best in, if one."""

    name: str
    key: str | None


COMPROMISE = Role("compromise", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A trial and what it is recommended for (nothing: shown for comparison)."""

    trial: Trial
    roles: tuple[Role, ...]

    @property
    def label(self) -> str:
        return label(self.trial)


def label(trial: Trial) -> str:
    """``#57``; the base architecture is ``start``."""
    return f"#{trial.number}" if trial.number else START


def anchor(trial: Trial) -> str:
    """The link target of a Pareto design within the page."""
    return f"design-{trial.number}"


def compromise(front: Sequence[Trial], keys: Sequence[str]) -> Trial:
    """The design with the least product of all objectives (such as energy x delay x area).

    One per cent of any objective counts the same, and the choice does not depend on the units
    or on how extreme the ends of the front are. Ties: the earliest trial.
    """
    return min(front, key=lambda t: (math.fsum(math.log(t.objectives[k]) for k in keys), t.number))


def recommended(feasible: Sequence[Trial], keys: Sequence[str]) -> tuple[Design, ...]:
    """The compromise, then the best design for each objective; one entry per trial."""
    front = non_dominated(feasible, keys)
    if not front:
        return ()
    picks = [(compromise(front, keys), COMPROMISE)] if len(keys) > 1 else []
    picks += [(best(front, keys, k), Role(f"best {display.noun(k)}", k)) for k in keys]
    by_number: dict[int, list[Role]] = {}
    for trial, role in picks:
        by_number.setdefault(trial.number, []).append(role)
    trials = {trial.number: trial for trial, _ in picks}
    return tuple(Design(trial=trials[n], roles=tuple(roles)) for n, roles in by_number.items())


def best(front: Sequence[Trial], keys: Sequence[str], key: str) -> Trial:
    """The least ``key``; ties go to the one that is better in the other objectives."""
    order = (key, *(k for k in keys if k != key))
    return min(front, key=lambda t: (*(t.objectives[k] for k in order), t.number))


def nearest_misses(study: Study, count: int) -> tuple[Trial, ...]:
    """The trials whose worst violations are least, for a search that found nothing feasible."""
    candidates = [t for t in (study.start, *study.trials) if t.constraints]
    return tuple(sorted(candidates, key=lambda t: (max(t.constraints.values()), t.number))[:count])


#: Quantities that are lower bounds for a design that was not simulated.
BOUNDED = frozenset({"latency_ps", "energy_pj", "edp_js"})


def is_exact(trial: Trial, key: str) -> bool:
    """Whether the value is a model's result; area needs no simulation."""
    return key in trial.objectives and (trial.metrics is not None or key == "area_mm2")


def baseline(study: Study, key: str) -> float | None:
    """The starting design's value to compare with; ``None`` if it was never simulated."""
    return study.start.objectives[key] if is_exact(study.start, key) else None

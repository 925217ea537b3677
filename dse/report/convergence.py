"""Has the search converged, and which answers did its last trials still change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dse.pareto import hypervolume_history, non_dominated, scale_of
from dse.report.designs import Role, recommended
from dse.study import Study
from dse.trial import Trial

#: The share of the trials whose effect is examined.
LAST_SHARE = 0.2

#: "Reached" means this share of the final hypervolume.
REACHED = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A recommendation that the last trials changed (``before`` is ``None``: or first made).

    ``loss`` says how much worse the earlier design is, relatively, in the role's own objective
    (``None`` for the compromise, which has none).
    """

    role: Role
    before: Trial | None
    after: Trial
    loss: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """``history`` and ``best`` start with the starting design (trial 0), then one entry a trial.

    ``history`` is a share: of several objectives, the hypervolume of the box that the final
    front spans; of one, the final best value relative to the best so far. ``best`` holds, for
    each objective, the best feasible value so far (``None`` before the first).
    """

    history: tuple[float, ...]
    best: dict[str, tuple[float | None, ...]]
    reached_at: int
    last_from: int
    last_gain: float
    changes: tuple[Change, ...]


def convergence(study: Study) -> Convergence | None:
    """``None`` when no trial is feasible: there is nothing that could converge."""
    keys = study.objective_keys
    front = non_dominated(study.feasible, keys)
    if not front:
        return None
    everything = (study.start, *study.trials)
    best = {key: _best_so_far(everything, key) for key in keys}
    if len(keys) == 1:
        ends = best[keys[0]]
        history = tuple(0.0 if b is None else front[0].objectives[keys[0]] / b for b in ends)
    else:
        history = hypervolume_history(everything, keys, scale_of(front, keys))
    last_from = len(everything) - round(LAST_SHARE * len(study.trials))
    final = history[-1]
    return Convergence(
        history=history,
        best=best,
        reached_at=next(i for i, share in enumerate(history) if share >= REACHED * final),
        last_from=last_from,
        last_gain=(final - history[last_from - 1]) / final,
        changes=_changes(everything[:last_from], study.feasible, keys),
    )


def _best_so_far(trials: Sequence[Trial], key: str) -> tuple[float | None, ...]:
    best: float | None = None
    history: list[float | None] = []
    for trial in trials:
        if trial.feasible and (best is None or trial.objectives[key] < best):
            best = trial.objectives[key]
        history.append(best)
    return tuple(history)


def _changes(
    earlier: Sequence[Trial], feasible: Sequence[Trial], keys: Sequence[str]
) -> tuple[Change, ...]:
    before = _by_role([t for t in earlier if t.feasible], keys)
    after = _by_role(feasible, keys)
    return tuple(
        _change(role, before.get(role), trial)
        for role, trial in after.items()
        if role not in before or before[role].number != trial.number
    )


def _change(role: Role, before: Trial | None, after: Trial) -> Change:
    loss = None
    if before is not None and role.key is not None:
        loss = before.objectives[role.key] / after.objectives[role.key] - 1
    return Change(role=role, before=before, after=after, loss=loss)


def _by_role(feasible: Sequence[Trial], keys: Sequence[str]) -> dict[Role, Trial]:
    return {role: d.trial for d in recommended(feasible, keys) for role in d.roles}

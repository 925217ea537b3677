"""Studies for Optuna's own tools, such as its dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from arch.errors import InputError, Problem
from dse.samplers.optuna_backend import quiet
from dse.space import Parameter
from dse.study import Study
from dse.trial import Trial, TrialState

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

FILE = "optuna.sqlite"


def export_optuna(study: Study, path: Path) -> str:
    """Writes an Optuna database with one study; returns its storage URL.

    Parameters are labels with their values as text, so that the dashboard shows ``256 KiB``.
    Trials that have no objectives become failed ones, with their reason.
    """
    if path.exists():
        raise InputError(Problem("exists already", file=path))
    import optuna

    url = f"sqlite:///{path}"
    with quiet():
        exported = optuna.create_study(
            storage=url,
            study_name=study.config.name,
            directions=["minimize"] * len(study.objective_keys),
        )
        exported.set_metric_names(list(study.objective_keys))
        exported.set_user_attr("config", study.config.text)
        labels = {p.path: _labels(p) for p in study.space.parameters}
        inside = [t for t in (study.start, *study.trials) if study.space.contains(t.overrides)]
        exported.add_trials([_frozen(t, labels, study.objective_keys) for t in inside])
    return url


def _labels(parameter: Parameter) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution

    return CategoricalDistribution([str(v) for v in parameter.values])


def _frozen(
    trial: Trial, labels: dict[str, BaseDistribution], keys: tuple[str, ...]
) -> optuna.trial.FrozenTrial:
    import optuna

    known = trial.state is not TrialState.FAILED and bool(trial.objectives)
    attributes: dict[str, Any] = {
        "number": trial.number,
        "state": trial.state.value,
        "reason": trial.reason,
        "cost_model_calls": trial.cost_model_calls,
    }
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState.COMPLETE if known else optuna.trial.TrialState.FAIL,
        params={path: str(trial.overrides[path]) for path in labels},
        distributions=labels,
        values=[trial.objectives[k] for k in keys] if known else None,
        constraints=dict(trial.constraints) if known else None,
        user_attrs=attributes,
    )

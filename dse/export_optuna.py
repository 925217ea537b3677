"""A study as an Optuna database, to be looked at in Optuna's dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from arch.errors import InputError, Problem
from dse.samplers.optuna_backend import quiet
from dse.study import Study
from dse.trial import Trial, TrialState

if TYPE_CHECKING:
    import optuna

FILE = "optuna.db"


def export(study: Study) -> Path:
    """Writes ``optuna.db`` into the run directory, instead of an earlier one."""
    target = study.run_dir / FILE
    partial = study.run_dir / f"{FILE}.partial"
    partial.unlink(missing_ok=True)
    try:
        with quiet():
            _fill(f"sqlite:///{partial.resolve()}", study)
        partial.replace(target)
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError(Problem(message, where=str(target))) from error
    finally:
        partial.unlink(missing_ok=True)
    return target


def _fill(url: str, study: Study) -> None:
    import optuna

    storage = optuna.storages.RDBStorage(url)
    copied = optuna.create_study(
        storage=storage,
        study_name=study.config.name,
        directions=["minimize"] * len(study.config.objectives),
    )
    copied.set_metric_names([objective.key for objective in study.config.objectives])
    for trial in (study.start, *study.trials):
        copied.add_trial(_trial(study, trial))
    storage.engine.dispose()


def _trial(study: Study, trial: Trial) -> optuna.trial.FrozenTrial:
    """Values by name, as they stand in an architecture file; the start may have none."""
    import optuna

    failed = trial.state is TrialState.FAILED
    given = [p for p in study.config.space.parameters if p.path in trial.overrides]
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState.FAIL if failed else optuna.trial.TrialState.COMPLETE,
        params={p.path: _plain(trial.overrides[p.path]) for p in given},
        distributions={
            p.path: optuna.distributions.CategoricalDistribution([_plain(v) for v in p.values])
            for p in given
        },
        values=None if failed else [trial.objectives[key] for key in study.objective_keys],
        constraints=dict(trial.constraints),
        user_attrs={"state": trial.state.value, "reason": trial.reason, **trial.objectives},
    )


def _plain(value: Any) -> str | int | float | bool:
    """Optuna's choices are scalars."""
    return value if isinstance(value, str | int | float | bool) else str(value)

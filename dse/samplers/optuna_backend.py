"""Optuna's samplers behind our interface: an in-memory study is rebuilt for each round."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dse.samplers.base import Observation, Suggestion
from dse.samplers.threads import one_thread
from dse.space import Parameter, Space

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

#: Optuna's own note of a suggestion in the making; of no use afterwards.
_TRANSIENT = "gp:relative_params"


def ask_optuna(
    space: Space,
    sampler: optuna.samplers.BaseSampler,
    history: Sequence[Observation],
    objectives: int,
    count: int,
) -> list[Suggestion]:
    """``count`` suggestions; each knows of those before it as running trials."""
    import optuna

    with one_thread(), quiet():
        study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
        spread = {str(i): _distribution(p) for i, p in enumerate(space.parameters)}
        study.add_trials([_frozen(o, spread) for o in history])
        asked = [study.ask(fixed_distributions=spread) for _ in range(count)]
        trials = study.get_trials(deepcopy=False)
        return [_suggestion(trials[trial.number]) for trial in asked]


def _distribution(parameter: Parameter) -> BaseDistribution:
    """Values are known to Optuna by their index; an order is kept, labels have none."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if parameter.ordered:
        return IntDistribution(0, len(parameter.values) - 1)
    return CategoricalDistribution(tuple(range(len(parameter.values))))


def _frozen(
    observation: Observation, spread: dict[str, BaseDistribution]
) -> optuna.trial.FrozenTrial:
    import optuna

    return optuna.trial.create_trial(
        params={str(i): index for i, index in enumerate(observation.point)},
        distributions=spread,
        values=list(observation.objectives),
        constraints=dict(observation.constraints),
        system_attrs=dict(observation.sampler_state),
    )


def _suggestion(trial: optuna.trial.FrozenTrial) -> Suggestion:
    point = tuple(int(trial.params[str(i)]) for i in range(len(trial.params)))
    kept = {k: v for k, v in trial.system_attrs.items() if not k.startswith(_TRANSIENT)}
    return Suggestion(point=point, state=kept)


@contextmanager
def quiet() -> Iterator[None]:
    """No log lines, and no notices about options that are new in Optuna."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)

"""Optuna's samplers behind our interface: an in-memory study is rebuilt for each round."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from dse.samplers.base import Observation, Suggestion
from dse.samplers.threads import one_thread
from dse.space import Parameter, Space

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

#: Optuna's own note of a suggestion in the making; of no use afterwards.
_TRANSIENT = ("gp:relative_params", "tpe:relative_params")


class OptunaRound:
    """An Optuna study with the history in it, for one round of suggestions."""

    def __init__(
        self,
        space: Space,
        sampler: optuna.samplers.BaseSampler,
        history: Sequence[Observation],
        objectives: int,
    ) -> None:
        import optuna

        self._spread = distributions(space)
        self._study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
        self._study.add_trials([_frozen(o, self._spread) for o in history])
        self._asked: list[optuna.Trial] = []

    def ask(self) -> Suggestion:
        """The next suggestion; those not told about are pending."""
        self._asked.append(self._study.ask(fixed_distributions=self._spread))
        trial = self._study.get_trials(deepcopy=False)[self._asked[-1].number]
        point = tuple(int(trial.params[name]) for name in self._spread)
        kept = {k: v for k, v in trial.system_attrs.items() if not k.startswith(_TRANSIENT)}
        return Suggestion(point=point, state=kept)

    def tell(self, observation: Observation) -> None:
        """What came (or is believed to come) of the last suggestion."""
        for name, violation in observation.constraints.items():
            self._asked[-1].set_constraint(name, violation)
        self._study.tell(self._asked[-1], list(observation.objectives))


def ask_optuna(
    space: Space,
    sampler: optuna.samplers.BaseSampler,
    history: Sequence[Observation],
    objectives: int,
    count: int,
) -> list[Suggestion]:
    """``count`` suggestions; each knows of those before it as pending."""
    with one_thread(), quiet():
        optuna_round = OptunaRound(space, sampler, history, objectives)
        return [optuna_round.ask() for _ in range(count)]


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """Parameters as Optuna knows them: indices into their values, named by path."""
    return {p.path: _distribution(p) for p in space.parameters}


def _distribution(parameter: Parameter) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if parameter.ordered:
        return IntDistribution(0, len(parameter.values) - 1)
    return CategoricalDistribution(tuple(range(len(parameter.values))))


def _frozen(
    observation: Observation, spread: dict[str, BaseDistribution]
) -> optuna.trial.FrozenTrial:
    import optuna

    return optuna.trial.create_trial(
        params=dict(zip(spread, observation.point, strict=True)),
        distributions=spread,
        values=list(observation.objectives),
        constraints=dict(observation.constraints),
        system_attrs=dict(observation.sampler_state),
    )


@contextmanager
def quiet() -> Iterator[None]:
    """No log lines, and no notices about options that are new in Optuna, nor about the division
    by zero in its choice of starts when all but one candidate are hopeless (it then starts
    from that one, as it should)."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)

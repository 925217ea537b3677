"""Tree-structured Parzen estimator (Optuna): cheap, good for many categorical parameters."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from arch.schema import StrictModel
from dse.samplers.base import Observation, Suggestion
from dse.samplers.design import halton
from dse.samplers.optuna_backend import ask_optuna, quiet
from dse.space import Space


class TpeOptions(StrictModel):
    """``startup``: evenly spread points first; ``candidates``: draws that compete for one place."""

    startup: int = Field(default=10, ge=1)
    candidates: int = Field(default=24, ge=1)


class TpeSampler:
    def __init__(self, space: Space, objectives: int, options: TpeOptions) -> None:
        self._space = space
        self._objectives = objectives
        self._options = options

    def suggest(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
        if len(history) < self._options.startup:
            return halton(self._space, len(history), count, seed)
        from optuna.samplers import TPESampler

        with quiet():
            sampler = TPESampler(
                seed=seed,
                n_startup_trials=0,
                n_ei_candidates=self._options.candidates,
                multivariate=True,
                constant_liar=True,
            )
        return ask_optuna(self._space, sampler, history, self._objectives, count)

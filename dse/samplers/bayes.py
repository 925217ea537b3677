"""Bayesian optimization of several objectives under constraints (the default).

Optuna's Gaussian processes: one per objective and per constraint, and the expected gain in
dominated volume times the probability of feasibility as acquisition.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from dse.samplers.base import Observation, Suggestion
from dse.samplers.design import halton
from dse.samplers.optuna_backend import ask_optuna, quiet
from dse.space import Space


class BayesOptions(BaseModel):
    """``startup``: how many points cover the space evenly before the first model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    startup: int = Field(default=10, ge=2)


class BayesSampler:
    def __init__(self, space: Space, objectives: int, options: BayesOptions) -> None:
        self._space = space
        self._objectives = objectives
        self._options = options

    def suggest(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
        if len(history) < self._options.startup:
            return halton(self._space, len(history), count, seed)
        from optuna.samplers import GPSampler

        with quiet():
            sampler = GPSampler(seed=seed, n_startup_trials=0, deterministic_objective=True)
        return ask_optuna(self._space, sampler, history, self._objectives, count)

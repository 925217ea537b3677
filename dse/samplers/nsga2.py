"""The genetic algorithm NSGA-II (Optuna): for cheap evaluations by the thousand."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from arch.schema import StrictModel
from dse.samplers.base import Observation, Suggestion
from dse.samplers.optuna_backend import ask_optuna, quiet
from dse.space import Space


class Nsga2Options(StrictModel):
    """``population``: individuals a generation; ``crossover``: chance that two parents mix."""

    population: int = Field(default=20, ge=2)
    crossover: float = Field(default=0.9, ge=0, le=1)


class Nsga2Sampler:
    def __init__(self, space: Space, objectives: int, options: Nsga2Options) -> None:
        self._space = space
        self._objectives = objectives
        self._options = options

    def suggest(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
        from optuna.samplers import NSGAIISampler

        with quiet():
            sampler = NSGAIISampler(
                seed=seed,
                population_size=self._options.population,
                crossover_prob=self._options.crossover,
            )
        return ask_optuna(self._space, sampler, history, self._objectives, count)

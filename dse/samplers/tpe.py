"""Tree-structured Parzen estimator (Optuna): cheap, good for many categorical parameters."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from dse.samplers.base import Observation, Suggestion
from dse.samplers.modelled import ModelledOptions, ModelledSampler
from dse.samplers.optuna_backend import ask_optuna, quiet


class TpeOptions(ModelledOptions):
    """``startup``: evenly spread points first; ``candidates``: draws that compete for one place."""

    startup: int = Field(default=10, ge=1)
    candidates: int = Field(default=24, ge=1)


class TpeSampler(ModelledSampler[TpeOptions]):
    def _ask(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
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

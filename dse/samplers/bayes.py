"""Bayesian optimization of several objectives under constraints (the default).

Optuna's Gaussian processes, one per objective and per constraint, with the expected gain in
dominated volume times the probability of feasibility as acquisition. Within a batch, a point
that was suggested but not evaluated is believed to be what a model predicts for it (Ginsbourger
et al., Kriging is well-suited to parallelize optimization, 2010). Optuna's own way with pending
points integrates over them, which took six times as long at 100 trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dse.samplers.base import Observation, Suggestion
from dse.samplers.believer import Believer
from dse.samplers.modelled import ModelledOptions, ModelledSampler
from dse.samplers.optuna_backend import OptunaRound, quiet
from dse.samplers.threads import one_thread

if TYPE_CHECKING:
    from optuna.samplers import GPSampler

#: How much work Optuna puts into the acquisition: samples of its quasi Monte Carlo integral
#: (Optuna's default: 128) and random candidates before its local search (2048). With these a
#: suggestion takes a quarter of the time; benchmarks/search_samplers.py finds no loss.
_EFFORT = {"_n_qmc_samples_ehvi": 32, "_n_preliminary_samples": 512}


class BayesSampler(ModelledSampler[ModelledOptions]):
    def _ask(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
        with one_thread(), quiet():
            optuna_round = OptunaRound(self._space, _gp_sampler(seed), history, self._objectives)
            suggestions = [optuna_round.ask()]
            believer = Believer(self._space, history) if count > 1 else None
            while believer is not None and len(suggestions) < count:
                optuna_round.tell(believer.observation(suggestions[-1].point))
                suggestions.append(optuna_round.ask())
        return suggestions


def _gp_sampler(seed: int) -> GPSampler:
    from optuna.samplers import GPSampler

    sampler = GPSampler(seed=seed, n_startup_trials=0, deterministic_objective=True)
    for attribute, value in _EFFORT.items():
        getattr(sampler, attribute)  # fails loudly if a later Optuna names it otherwise
        setattr(sampler, attribute, value)
    return sampler

"""The search loop: suggest a round, evaluate it, record each trial, until the budget is spent.

Rounds have a fixed size, and the suggestions of a round follow from the trials before it and
the seed alone. So results depend neither on the number of workers nor on interruptions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from arch.errors import InputError, Problem
from dse.config import SearchConfig
from dse.evaluate import Evaluator, Outcome, PointEvaluator
from dse.executor import Executor, PointError, executor_for
from dse.samplers import make_sampler
from dse.samplers.base import Round, Suggestion, known_points, observations, propose, round_seed
from dse.store import Store, load_study, product_version
from dse.study import EXHAUSTED, Study
from dse.trial import Trial, TrialState
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.engines import DEFAULT

#: Called after each recorded trial, in the order in which they finish.
OnTrial = Callable[[Trial], None]


def _ignore(trial: Trial) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRun:
    """How to run a search: where, with how many workers, new or resumed, watched by whom.

    ``cluster`` is the address of a Dask scheduler, used instead of local ``workers``;
    ``engine`` runs the simulations of a search at event fidelity.
    """

    config: SearchConfig
    run_dir: Path
    workers: int = 1
    cluster: str | None = None
    resume: bool = False
    on_trial: OnTrial = _ignore
    engine: str = DEFAULT


def search(run: SearchRun) -> Study:
    """Runs (or goes on with) a search and returns its study.

    Ctrl-C abandons what is being evaluated and returns the study as far as it got, or ends the
    search like any other command while there is no trial to tell of. Bad input raises
    ``InputError``; a bug in a model raises ``RuntimeError`` naming the design that caused it,
    after recording it as a failed trial.
    """
    workloads = {w.spec: load_workload(w.spec) for w in run.config.workloads}
    evaluate = PointEvaluator(config=run.config, workloads=workloads, engine=run.engine)
    return search_with(run, evaluate, {s: fingerprint(w) for s, w in workloads.items()})


def search_with(run: SearchRun, evaluate: Evaluator, workloads: Mapping[str, str]) -> Study:
    """``search`` with another evaluator; ``workloads`` are fingerprints by specification."""
    opened = Store.resume if run.resume else Store.create
    executor = executor_for(evaluate, run.workers, run.cluster)
    try:
        with opened(run.run_dir, run.config, workloads) as store:
            loop = _Loop(config=run.config, store=store, on_trial=run.on_trial, executor=executor)
            try:
                store.put(stopped=loop.run())
            except KeyboardInterrupt:
                store.put(stopped="interrupted")
                if not store.trials():
                    raise
    finally:
        executor.close()
    return load_study(run.run_dir)


def fingerprint(workload: Workload) -> str:
    """Changes when the workload does (a user's function, a file)."""
    return hashlib.sha256(repr((workload.tensors, workload.operators)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A trial to be: what to evaluate, and what its sampler wants to remember."""

    overrides: Mapping[str, Any]
    sampler_state: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    config: SearchConfig
    store: Store
    executor: Executor
    on_trial: OnTrial

    def run(self) -> str:
        """Why it stopped: ``budget`` or ``exhausted``."""
        done = {t.number: t for t in self.store.trials() if t.state is not TrialState.FAILED}
        start = _Asked(overrides=base_point(self.config), sampler_state={})
        self._evaluate({0: start}, done)
        for first in range(1, self.config.trials + 1, self.config.batch):
            asked = self._round(first, done)
            self._evaluate({n: a for n, a in asked.items() if n <= self.config.trials}, done)
            if len(asked) < self.config.batch:
                return EXHAUSTED
        return "budget"

    def _round(self, first: int, done: Mapping[int, Trial]) -> dict[int, _Asked]:
        """The round that begins with trial ``first``, from all trials before it.

        A round that was recorded in full need not be suggested again on resuming.
        """
        numbers = range(first, first + self.config.batch)
        if all(number in done for number in numbers):
            return {n: _Asked(overrides={}, sampler_state={}) for n in numbers}
        before = [done[number] for number in range(first)]
        return {
            number: _Asked(overrides=self.config.space.overrides(s.point), sampler_state=s.state)
            for number, s in zip(numbers, self._suggestions(first, before), strict=False)
        }

    def _suggestions(self, first: int, before: Sequence[Trial]) -> list[Suggestion]:
        config, space = self.config, self.config.space
        sampler = make_sampler(
            config.sampler.name, config.sampler.options, space, len(config.objectives)
        )
        task = Round(
            space=space,
            count=config.batch,
            history=observations(space, before, config.objective_keys),
            known=known_points(space, before),
            seed=round_seed(config.seed, first),
        )
        return propose(sampler, task)

    def _evaluate(self, asked: Mapping[int, _Asked], done: dict[int, Trial]) -> None:
        numbers = [number for number in asked if number not in done]
        points = [asked[number].overrides for number in numbers]
        try:
            for i, outcome in self.executor.run(points):
                trial = self._trial(numbers[i], asked[numbers[i]], outcome)
                self.store.record(trial)
                done[trial.number] = trial
                self.on_trial(trial)
        except PointError as error:
            self._fail(numbers[error.index], asked[numbers[error.index]], error)

    def _fail(self, number: int, asked: _Asked, error: PointError) -> NoReturn:
        """Records the point that a bug or a contradiction stopped the study at, and stops."""
        outcome = Outcome(
            state=TrialState.FAILED,
            reason=f"{type(error.cause).__name__}: {error.cause}",
            objectives={},
            constraints={},
            metrics=None,
            cost_model_calls=0,
        )
        self.store.record(self._trial(number, asked, outcome))
        self.store.put(stopped="failed")
        design = ", ".join(f"{k}={v}" for k, v in asked.overrides.items()) or "the base design"
        if isinstance(error.cause, InputError):
            message = f"no architecture with {design}: {error.cause}"
            raise InputError(Problem(message, where="parameters")) from error.cause
        raise RuntimeError(f"trial {number} ({design}) failed: {error.cause!r}") from error.cause

    def _trial(self, number: int, asked: _Asked, outcome: Outcome) -> Trial:
        return Trial(
            number=number,
            overrides=asked.overrides,
            state=outcome.state,
            reason=outcome.reason,
            objectives=outcome.objectives,
            constraints=outcome.constraints,
            metrics=outcome.metrics,
            fidelity=self.config.fidelity,
            seed=self.config.seed,
            cost_model_calls=outcome.cost_model_calls,
            seconds=outcome.seconds,
            config_hash=self.config.hash,
            version=product_version(),
            sampler_state=asked.sampler_state,
        )


def base_point(config: SearchConfig) -> dict[str, Any]:
    """Overrides that give the base architecture again; none if it lies outside the space."""
    base = config.architecture({})
    chosen: dict[str, Any] = {}
    for parameter in config.space.parameters:
        paths = (parameter.path, *parameter.ties)
        forms = [dict.fromkeys(paths, value) for value in parameter.values]
        same = next((form for form in forms if config.architecture(form) == base), None)
        if same is None:
            return {}
        chosen |= same
    return chosen

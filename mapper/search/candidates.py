"""Single mappings of one operator for searches that look at few: legality, cost and its count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from mapper.hierarchy import Execution
from mapper.mapping import Mapping
from mapper.search import pricing
from mapper.search.pricing import FloatArray, Model
from mapper.search.space import StageOrder


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mapping by numbers: its order of stages, and the tiling of each dimension."""

    order: int
    rows: tuple[int, ...]


class BudgetSpent(Exception):  # noqa: N818 - a signal to stop, not an error
    """All calls of the cost function that were allowed have been made."""


@dataclass(frozen=True, slots=True)
class Improvement:
    """After how many calls the best value became this one."""

    calls: int
    value: float


@dataclass(slots=True, eq=False)
class Candidates:
    """The mapspace of one operator, one candidate at a time.

    ``calls`` counts candidates whose cost was asked for; asking again for one is free, as is
    asking whether it fits: that needs footprints only.
    """

    run: Execution
    orders: Sequence[StageOrder]
    models: Sequence[Model]
    budget: int
    calls: int = 0
    best: Candidate | None = None
    best_answer: FloatArray = field(default_factory=lambda: np.full(pricing.ANSWERS, np.inf))
    history: list[Improvement] = field(default_factory=list)
    starts: list[Candidate] | None = None
    _factors: dict[tuple[int, int, tuple[int, ...]], FloatArray] = field(default_factory=dict)
    _answers: dict[Candidate, FloatArray] = field(default_factory=dict)
    _asked: set[Candidate] = field(default_factory=set)

    def again(self, budget: int) -> Self:
        """The same mapspace with nothing counted; what was computed before is not again."""
        fresh = type(self)(self.run, self.orders, self.models, budget)
        fresh._factors, fresh._answers, fresh.starts = self._factors, self._answers, self.starts
        return fresh

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.run.operator.extents)

    @property
    def objective(self) -> int:
        return self.models[0].objective

    @property
    def best_value(self) -> float:
        return objective_value(self.best_answer, self.objective)

    def fits(self, candidate: Candidate) -> bool:
        """Are the axes long and the memories large enough?"""
        return bool(self._answer(candidate)[pricing.EXCESS] == 0.0)

    def is_known(self, candidate: Candidate) -> bool:
        """Was its cost asked for before?"""
        return candidate in self._asked

    def value(self, candidate: Candidate) -> float:
        """What is minimised. Counted; raises ``BudgetSpent`` if it would be one call too many."""
        answer = self._answer(candidate)
        if candidate not in self._asked:
            if self.calls >= self.budget:
                raise BudgetSpent
            self.calls += 1
            self._asked.add(candidate)
            self.note(candidate)
        return objective_value(answer, self.objective)

    def note(self, candidate: Candidate) -> None:
        """It was priced with the last call: is it the best so far?"""
        answer = self._answer(candidate)
        fits = answer[pricing.EXCESS] == 0.0
        if fits and pricing.better(self.objective, answer, self.best_answer):
            self.best, self.best_answer = candidate, answer
            self.history.append(Improvement(self.calls, self.best_value))

    def shares(self, candidate: Candidate) -> FloatArray:
        """``[memory]``: how full it is, its share of the energy, and its time over the latency."""
        model, answer = self.models[candidate.order], np.empty(pricing.ANSWERS)
        traffic = np.empty((len(model.memories), pricing.TRAFFIC_FIELDS))
        pricing.cost(self._volumes(candidate), model, traffic, answer)
        prices = model.memories
        read, written = traffic[:, pricing.READ], traffic[:, pricing.WRITTEN]
        energy = read * prices[:, pricing.READ_PJ] + written * prices[:, pricing.WRITE_PJ]
        reading, writing = (
            read * prices[:, pricing.READ_TICKS],
            written * prices[:, pricing.WRITE_TICKS],
        )
        shared = prices[:, pricing.SHARED_PORT] != 0
        ticks = np.where(shared, reading + writing, np.maximum(reading, writing))
        full = traffic[:, pricing.HELD] / prices[:, pricing.CAPACITY_BITS]
        busy = ticks / prices[:, pricing.TICKS_PER_PS] / answer[pricing.TOTAL_PS]
        return np.stack([full, energy / answer[pricing.TOTAL_PJ], busy], axis=1)

    def compute_share(self, candidate: Candidate) -> float:
        """Time of the compute unit's steps over the latency."""
        model = self.models[candidate.order]
        steps = self._volumes(candidate)[model.steps_column]
        busy = steps * model.step_ticks / model.step_ticks_per_ps
        return float(busy / self._answer(candidate)[pricing.TOTAL_PS])

    def _answer(self, candidate: Candidate) -> FloatArray:
        if candidate not in self._answers:
            model = self.models[candidate.order]
            answer = np.empty(pricing.ANSWERS)
            traffic = np.empty((len(model.memories), pricing.TRAFFIC_FIELDS))
            pricing.cost(self._volumes(candidate), model, traffic, answer)
            self._answers[candidate] = answer
        return self._answers[candidate]

    def _volumes(self, candidate: Candidate) -> FloatArray:
        order = self.orders[candidate.order]
        row = dict(zip(self.dims, candidate.rows, strict=True))
        volumes = np.ones(len(order.columns))
        for g, group in enumerate(self.run.counts.groups):
            key = candidate.order, g, tuple(row[dim] for dim in group)
            if key not in self._factors:
                picked = {dim: np.array([row[dim]]) for dim in group}
                self._factors[key] = order.factors(group, picked)[0]
            volumes *= self._factors[key]
        return volumes

    def mapping(self, candidate: Candidate, made_by: str) -> Mapping:
        chosen = dict(zip(self.dims, candidate.rows, strict=True))
        return self.orders[candidate.order].mapping(chosen, made_by)


def objective_value(answer: FloatArray, objective: int) -> float:
    """Picoseconds, picojoules or their product; infinite if it does not fit."""
    if answer[pricing.EXCESS] > 0.0:
        return math.inf
    latency, energy = float(answer[pricing.TOTAL_PS]), float(answer[pricing.TOTAL_PJ])
    return (latency, energy, latency * energy)[objective]

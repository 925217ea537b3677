"""Single mappings of one operator for searches that look at few: legality, cost and its count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mapper.hierarchy import Execution
from mapper.mapping import Mapping
from mapper.search.costs import ANSWERS, EXCESS, better, cost, value
from mapper.search.flows import Flows, flows
from mapper.search.pricing import FloatArray, Model
from mapper.search.shares import Shares, demands, shares
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
    asking whether it fits: that needs footprints only. Once the best value is down to
    ``enough`` (a bound), the budget is spent.
    """

    run: Execution
    orders: Sequence[StageOrder]
    models: Sequence[Model]
    budget: int
    costs: Sequence[Flows] = ()
    calls: int = 0
    best: Candidate | None = None
    best_answer: FloatArray = field(default_factory=lambda: np.full(ANSWERS, np.inf))
    history: list[Improvement] = field(default_factory=list)
    enough: float = 0.0
    _factors: dict[tuple[int, int, tuple[int, ...]], FloatArray] = field(default_factory=dict)
    _answers: dict[Candidate, FloatArray] = field(default_factory=dict)
    _asked: set[Candidate] = field(default_factory=set)
    _demands: FloatArray = field(default_factory=lambda: np.empty((0, 1)))
    _demanding: int = 0

    def __post_init__(self) -> None:
        if not self.costs:
            self.costs = tuple(flows(model) for model in self.models)

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
        return bool(self._answer(candidate)[EXCESS] == 0.0)

    def is_known(self, candidate: Candidate) -> bool:
        """Was its cost asked for before?"""
        return candidate in self._asked

    def unrolling(self, candidate: Candidate) -> tuple[tuple[int, ...], ...]:
        """Its spatial factors ``[dim][axis]``."""
        order = self.orders[candidate.order]
        return tuple(
            tuple(int(factor) for factor in order.tilings(dim).spatial[row])
            for dim, row in zip(self.dims, candidate.rows, strict=True)
        )

    def is_beaten(self, candidate: Candidate) -> bool:
        """Did one that was priced ask for no more of anything? Then it cannot be better."""
        known = self._demands[: self._demanding]
        return bool(len(known) and (known <= self._demand(candidate)).all(axis=1).any())

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
        fits = answer[EXCESS] == 0.0
        if fits:
            self._remember(self._demand(candidate))
        if fits and better(self.objective, answer, self.best_answer):
            self.best, self.best_answer = candidate, answer
            self.history.append(Improvement(self.calls, self.best_value))
            if self.best_value <= self.enough:
                self.budget = self.calls

    def _remember(self, demand: FloatArray) -> None:
        if self._demanding == len(self._demands):
            more = np.empty((max(64, 2 * self._demanding), len(demand)))
            more[: self._demanding] = self._demands[: self._demanding]
            self._demands = more
        self._demands[self._demanding] = demand
        self._demanding += 1

    def shares(self, candidate: Candidate) -> Shares:
        """Where room, time and energy of a candidate that fits go."""
        return shares(
            self._volumes(candidate), self.models[candidate.order], self.costs[candidate.order]
        )

    def _demand(self, candidate: Candidate) -> FloatArray:
        order = candidate.order
        volumes = self._volumes(candidate)
        return demands(volumes, self.orders[order], self.models[order], self.costs[order])

    def _answer(self, candidate: Candidate) -> FloatArray:
        if candidate not in self._answers:
            flows = self.costs[candidate.order]
            answer = np.empty(ANSWERS)
            cost(self._volumes(candidate), flows, np.empty(len(flows.ports)), answer)
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
    return math.inf if answer[EXCESS] > 0.0 else value(objective, answer)

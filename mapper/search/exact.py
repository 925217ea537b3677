"""The optimal mapping of one operator: exhaustive over the mapspace, with sound pruning."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from arch.spec import Architecture
from mapper.cost import InfeasibleError, PriceList
from mapper.hierarchy import Execution, execution
from mapper.legality import peak_bits, staged_tiles
from mapper.mapping import Mapping
from mapper.search import pricing
from mapper.search.coefficients import Coefficients
from mapper.search.costs import ANSWERS, acceptable, better, value
from mapper.search.pricing import FloatArray
from mapper.search.problem import Problem
from mapper.search.space import StageOrder, distinct_orders
from mapper.search.terms import with_terms
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator

#: Two models that add up the same energies in another order differ by less than this share.
ROUNDING = 1e-9

OBJECTIVES = {"latency": pricing.LATENCY, "energy": pricing.ENERGY, "edp": pricing.EDP}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A mapping and what is known about it.

    ``calls`` counts evaluations of the cost function, bounds of partial mappings included.
    ``objective_value`` is picoseconds, picojoules or their product; ``lower_bound`` is proven
    for the mapspace that docs/mapping_search.md states, so ``optimal`` means that both are equal.
    A mapping that was given may be ``outside`` that mapspace, and cost less than all in it.
    """

    mapping: Mapping
    calls: int
    optimal: bool
    objective_value: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """How far the mapping can be from the optimum, relative to the lower bound; below zero if
        it is ``outside``."""
        return self.objective_value / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def outside(self) -> bool:
        """Is it better than the bound, so that it is in no mapspace that the bound is for?"""
        return self.gap < -ROUNDING


def map_operator(
    workload: Workload,
    operator: Operator,
    architecture: Architecture,
    price: PriceList,
    objective: str = "edp",
) -> SearchResult:
    """The best mapping of ``operator`` under the analytical model.

    ``objective`` is ``latency``, ``energy`` or ``edp``; latency (energy, for ``latency``)
    breaks ties. Raises ``InfeasibleError`` if no mapping fits, naming the memory.
    """
    run = execution(workload, operator, architecture)
    return map_execution(run, architecture.leakage_w, price, objective)


def map_execution(
    run: Execution,
    leakage_w: float,
    price: PriceList,
    objective: str = "edp",
    orders: Iterable[StageOrder] | None = None,
) -> SearchResult:
    """As ``map_operator``, for an operator already placed on its unit and its memories.

    ``orders`` are the orders of stages to look at; all of them if not given.
    """
    coefficients = Coefficients(
        run=run,
        leakage_w=leakage_w,
        price=price,
        objective=OBJECTIVES[objective],
    )
    are_all = orders is None
    some = tuple(distinct_orders(run) if orders is None else orders)
    search = _searched(coefficients, some, are_all=are_all)
    found = search.found()
    if found is None:
        raise _does_not_fit(coefficients, some, search.calls)
    reached = value(OBJECTIVES[objective], found.cost)
    return SearchResult(
        mapping=found.mapping,
        calls=found.calls,
        optimal=True,
        objective_value=reached,
        lower_bound=reached,
    )


#: A pass over one order of stages: what it improves, and by more than which share.
Improve = Callable[[Problem, FloatArray, float], tuple[int, dict[str, int] | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    mapping: Mapping
    cost: FloatArray
    calls: int


#: Coordinate descent begins under so many orders of stages, evenly spread, and then under all of
#: which something is left; if there are very many orders, under as few of the most promising ones.
_SEEDS, _MANY = 4, 64

#: Passes over a sample of the tilings: each finds the optimum but for this share. An early one
#: skips almost everything, and what it finds lets the next skip as much.
_SAMPLED_SLACKS = (0.3, 0.03)


def _searched(
    coefficients: Coefficients, orders: Iterable[StageOrder], *, are_all: bool
) -> _Search:
    """The search for the best mapping under any of the orders of stages.

    Orders by level are looked through first: of mappings that cost the same they have those that
    move large tiles.
    """
    search = _Search(coefficients)
    every = (
        Problem(order, terms, of_many=are_all) for order, terms in with_terms(orders, coefficients)
    )
    problems = [problem for problem in every if not problem.is_superfluous]
    by_level = [problem for problem in problems if problem.order.is_by_level]
    others = [problem for problem in problems if not problem.order.is_by_level]
    for some in filter(None, (by_level, others)):
        _look_through(some, search)
    return search


def _look_through(problems: list[Problem], search: _Search) -> None:
    if not search.fits:
        search.sample(problems[:: -(-len(problems) // _SEEDS)])
    if not search.fits:
        search.sample(problems)
    left = search.left_of(problems)
    search.sample(left if len(problems) < _MANY else left[:_SEEDS])
    search.improve(search.left_of(left), Problem.search, 0.0)


class _Search:
    """The best mapping so far, and how many evaluations it took to find it."""

    def __init__(self, coefficients: Coefficients) -> None:
        self.objective = coefficients.objective
        self.best = np.full(ANSWERS, np.inf)
        self.winner: tuple[Problem, dict[str, int]] | None = None
        self.calls = 0

    @property
    def fits(self) -> bool:
        return acceptable(self.objective, self.best)

    def sample(self, problems: list[Problem]) -> None:
        """Coordinate descent under each order and a search among the tilings that it looked at.

        A good mapping found early lets the search drop almost everything else.
        """
        reached = {}
        for problem in problems:
            here, chosen = self._descended(problem)
            fits = acceptable(self.objective, here)
            reached[problem] = value(self.objective, here) if fits else math.inf
            if fits and better(self.objective, here, self.best):
                self.best, self.winner = here, (problem, chosen)
        promising = sorted(problems, key=reached.__getitem__)
        for slack in _SAMPLED_SLACKS:
            self.improve(promising, Problem.explore, slack)

    def _descended(self, problem: Problem) -> tuple[FloatArray, dict[str, int]]:
        here = np.full(ANSWERS, np.inf)
        more, chosen = problem.descend(here)
        self.calls += more
        return here, chosen

    def left_of(self, problems: list[Problem]) -> list[Problem]:
        """Those of which tilings are left that may be part of something better, promising ones
        first."""
        for problem in problems:
            self.calls += problem.narrow(self.best)
        left = [problem for problem in problems if not problem.is_done]
        return sorted(left, key=Problem.bound)

    def improve(self, problems: list[Problem], improve: Improve, slack: float) -> None:
        for problem in problems:
            more, chosen = improve(problem, self.best, slack)
            self.calls += more
            if chosen is not None:
                self.winner = (problem, chosen)

    def found(self) -> _Found | None:
        if self.winner is None:
            return None
        problem, chosen = self.winner
        more, chosen = problem.polish(chosen)
        mapping = problem.order.mapping(chosen, made_by="exact")
        return _Found(mapping=mapping, cost=self.best, calls=self.calls + more)


def _does_not_fit(
    coefficients: Coefficients, orders: tuple[StageOrder, ...], calls: int
) -> InfeasibleError:
    """Names the memory that is most too small for the mapping that comes closest to fitting;
    ``calls`` were spent before."""
    run = coefficients.run
    search = _searched(replace(coefficients, objective=pricing.ROOM), orders, are_all=False)
    closest = search.found()
    assert closest is not None, "with one element per tile every axis is long enough"
    peak = peak_bits(staged_tiles(run, closest.mapping))
    worst = max(
        (memory for memory in run.memories if memory.name in peak),
        key=lambda memory: peak[memory.name] / memory.size_bytes,
    )
    error = InfeasibleError(
        limit=f"capacity of {worst.name} in bytes",
        needed=-(-peak[worst.name] // 8),
        allowed=worst.size_bytes,
        detail=f"no tiling of {run.operator.name} fits, this one comes closest",
    )
    error.calls = calls + closest.calls
    return error

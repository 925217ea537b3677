"""Every search by name, under one interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from arch.errors import InputError, Problem, unknown
from mapper.cost import PriceList
from mapper.hierarchy import Execution
from mapper.search import exact
from mapper.search.annealing import anneal, climb
from mapper.search.bound import lower_bound
from mapper.search.candidates import BudgetSpent, Candidates
from mapper.search.coefficients import Coefficients
from mapper.search.exact import OBJECTIVES, SearchResult
from mapper.search.genetic import evolve
from mapper.search.random_draws import draw
from mapper.search.space import stage_orders
from mapper.search.starts import NothingFits

#: Improves on the best of the candidates until their budget is spent.
Walk = Callable[[Candidates, np.random.Generator], None]

#: The searches that look at a sample of the mapspace.
WALKS: Mapping[str, Walk] = {
    "heuristic": anneal,
    "annealing": anneal,
    "climbing": climb,
    "genetic": evolve,
    "random": draw,
}
METHODS = ("exact", *WALKS)

#: Calls per operator: those of HASCO's release for a layer (64 + 10 x 36).
BUDGET = 424


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How mappings are searched. ``budget`` (calls per operator) and ``seed`` are not for exact."""

    name: str = "exact"
    budget: int = BUDGET
    seed: int = 1

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise InputError(Problem(unknown("search", self.name, list(METHODS)), "search"))
        if self.budget < 1:
            raise InputError(Problem(f"{self.budget} is out of range; at least 1", "budget"))

    def map_execution(
        self, run: Execution, leakage_w: float, price: PriceList, objective: str
    ) -> SearchResult:
        """A mapping of an operator placed on its unit.

        Raises ``InfeasibleError`` if no mapping fits (proven by the exact search).
        """
        if self.name == "exact":
            return exact.map_execution(run, leakage_w, price, objective)
        coefficients = Coefficients(
            run=run, leakage_w=leakage_w, price=price, objective=OBJECTIVES[objective]
        )
        orders = tuple(stage_orders(run))
        models = tuple(coefficients.model(order) for order in orders)
        space = Candidates(run, orders, models, self.budget)
        explore(space, WALKS[self.name], self.seed)
        if space.best is None:
            # Whether anything fits is for the exact search to say.
            found = exact.map_execution(run, leakage_w, price, objective)
            return replace(found, calls=found.calls + space.calls)
        return self._result(space)

    def _result(self, space: Candidates) -> SearchResult:
        assert space.best is not None
        bound = lower_bound(space.orders, space.models)
        return SearchResult(
            mapping=space.mapping(space.best, made_by=self.name),
            calls=space.calls + bound.calls,
            optimal=space.best_value <= bound.value,
            objective_value=space.best_value,
            lower_bound=min(bound.value, space.best_value),
        )


def explore(space: Candidates, walk: Walk, seed: int) -> None:
    """Walk until the budget is spent or nothing is left to try."""
    try:
        walk(space, np.random.default_rng(seed))
    except (BudgetSpent, NothingFits):
        return

"""Every search by name, under one interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from mapper.cost import PriceList
from mapper.hierarchy import Execution
from mapper.search import exact
from mapper.search.annealing import anneal, climb
from mapper.search.bound import Bound, lower_bound
from mapper.search.candidates import BudgetSpent, Candidate, Candidates
from mapper.search.coefficients import Coefficients
from mapper.search.exact import OBJECTIVES, SearchResult
from mapper.search.genetic import evolve
from mapper.search.method import EXACT, Method
from mapper.search.q_learning import learn
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
    "q_learning": learn,
    "random": draw,
}


def map_execution(
    method: Method, run: Execution, leakage_w: float, price: PriceList, objective: str
) -> SearchResult:
    """A mapping of an operator placed on its unit.

    Raises ``InfeasibleError`` if no mapping fits (proven by the exact search).
    """
    if method.name == EXACT.name:
        return exact.map_execution(run, leakage_w, price, objective)
    coefficients = Coefficients(
        run=run, leakage_w=leakage_w, price=price, objective=OBJECTIVES[objective]
    )
    orders = tuple(stage_orders(run))
    models = tuple(coefficients.model(order) for order in orders)
    bound = lower_bound(orders, models)
    space = Candidates(run, orders, models, method.budget, enough=bound.value)
    explore(space, WALKS[method.name], method.seed)
    if space.best is None:
        # Whether anything fits is for the exact search to say.
        found = exact.map_execution(run, leakage_w, price, objective)
        return replace(found, calls=found.calls + space.calls)
    return _result(space, space.best, bound, method.name)


def _result(space: Candidates, best: Candidate, bound: Bound, made_by: str) -> SearchResult:
    return SearchResult(
        mapping=space.mapping(best, made_by),
        calls=space.calls,
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

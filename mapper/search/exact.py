"""The optimal mapping of one operator: exhaustive over the mapspace, with sound pruning."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from arch.spec import Architecture
from mapper.cost import InfeasibleError, PriceList
from mapper.hierarchy import Execution, execution
from mapper.legality import peak_bits, staged_tiles
from mapper.mapping import Mapping
from mapper.search import pricing
from mapper.search.boxes import grow_tree, join_trees, search
from mapper.search.coefficients import Coefficients
from mapper.search.descent import descend, promising
from mapper.search.pricing import FloatArray
from mapper.search.space import StageOrder, stage_orders
from mapper.search.tilings import IntArray
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator

OBJECTIVES = {"latency": pricing.LATENCY, "energy": pricing.ENERGY, "edp": pricing.EDP}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A mapping and what is known about it.

    ``calls`` counts evaluations of the cost function, bounds of partial mappings included.
    ``objective_value`` is picoseconds, picojoules or their product; ``lower_bound`` is proven
    for the whole mapspace, so ``optimal`` means that both are equal.
    """

    mapping: Mapping
    calls: int
    optimal: bool
    objective_value: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """How far the mapping can be from the optimum, relative to the lower bound."""
        return self.objective_value / self.lower_bound - 1 if self.lower_bound else 0.0


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
    run: Execution, leakage_w: float, price: PriceList, objective: str = "edp"
) -> SearchResult:
    """As ``map_operator``, for an operator already placed on its unit and its memories."""
    coefficients = Coefficients(
        run=run,
        leakage_w=leakage_w,
        price=price,
        objective=OBJECTIVES[objective],
    )
    problems = [_Problem(order, coefficients.model(order)) for order in stage_orders(run)]
    found = _optimum(problems)
    if found is None:
        raise _does_not_fit(run, problems)
    value = _value(found.cost, OBJECTIVES[objective])
    return SearchResult(
        mapping=found.mapping,
        calls=found.calls,
        optimal=True,
        objective_value=value,
        lower_bound=value,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    mapping: Mapping
    cost: FloatArray
    calls: int


def _optimum(problems: list[_Problem]) -> _Found | None:
    """The best mapping under any of the orders of stages."""
    best, winner, calls = _descend_all(problems)
    for problem in problems:
        more, chosen = problem.search(best)
        calls += more
        if chosen is not None:
            winner = (problem, chosen)
    if winner is None:
        return None
    problem, chosen = winner
    return _Found(mapping=problem.order.mapping(chosen, made_by="exact"), cost=best, calls=calls)


def _descend_all(
    problems: list[_Problem],
) -> tuple[FloatArray, tuple[_Problem, dict[str, int]] | None, int]:
    """Coordinate descent under every order of stages; sorts ``problems``, promising ones first.

    A good mapping found early lets the search drop almost everything else.
    """
    best = np.full(pricing.ANSWERS, np.inf)
    winner = None
    calls = 0
    reached = {}
    for problem in problems:
        objective = problem.model.objective
        here = np.full(pricing.ANSWERS, np.inf)
        more, chosen = problem.descend(here)
        calls += more
        fits = pricing.acceptable(objective, here)
        reached[problem] = _value(here, objective) if fits else math.inf
        if fits and pricing.better(objective, here, best):
            best, winner = here, (problem, chosen)
    problems.sort(key=reached.__getitem__)
    return best, winner, calls


def _value(answer: FloatArray, objective: int) -> float:
    latency, energy = answer[pricing.TOTAL_PS], answer[pricing.TOTAL_PJ]
    return float([latency, energy, latency * energy, answer[pricing.EXCESS]][objective])


#: dim -> the number of its tiling, one per row
Picked = dict[str, IntArray]

#: Tilings per dimension that coordinate descent looks at; what it misses the search finds.
_SAMPLE = 48

#: Which dimensions are unrolled is decided first: until then all bounds are loose.
_SPLIT_FIRST = {"used": 1e3}


class _Problem:
    """One order of stages: its mapspace and what is still worth looking at."""

    def __init__(self, order: StageOrder, model: pricing.Model) -> None:
        self.order = order
        self.model = model
        self.groups = order.run.counts.groups

    def descend(self, best: FloatArray) -> tuple[int, dict[str, int]]:
        """Coordinate descent from the smallest tiles, on a sample; fills ``best``."""
        picked = [
            _combinations({dim: _sample(len(self.order.tilings(dim))) for dim in group})
            for group in self.groups
        ]
        rows = self._factors(picked)
        held = [i for i, c in enumerate(self.order.columns) if c.kind == "held"]
        start = [int(np.argmin(table[:, held].sum(axis=1))) for table in rows]
        first = np.cumsum([0, *(len(table) for table in rows)], dtype=np.int64)
        chosen = first[:-1] + np.array(start, dtype=np.int64)
        calls = descend(np.concatenate(rows), first, chosen, self.model, best)
        return calls, _chosen(chosen - first[:-1], picked)

    def search(self, best: FloatArray) -> tuple[int, dict[str, int] | None]:
        """Improve ``best`` to the optimum of this order of stages."""
        picked, calls = self._worth_combining(best)
        if picked is None:
            return calls, None
        rows = self._factors(picked)
        more = self._filter(rows, picked, best)
        if not all(map(len, rows)):
            return calls + more, None
        weights = np.array([_SPLIT_FIRST.get(c.kind, 1.0) for c in self.order.columns])
        forest, root = join_trees([grow_tree(table, weights) for table in rows])
        chosen = np.full(len(rows), -1, dtype=np.int64)
        calls += more + search(forest, root, self.model, best, chosen)
        return calls, _chosen(chosen, picked) if chosen[0] >= 0 else None

    def _worth_combining(self, best: FloatArray) -> tuple[list[Picked] | None, int]:
        """Per group the combinations of those tilings that are promising on their own.

        ``None`` if a dimension has none: nothing can be better than ``best``.
        """
        alone = [(group, dim) for group in self.groups for dim in group]
        tilings = [{dim: np.arange(len(self.order.tilings(dim)))} for _, dim in alone]
        bounds = [
            self.order.factors(group, one) for (group, _), one in zip(alone, tilings, strict=True)
        ]
        calls = self._filter(bounds, tilings, best)
        if not all(map(len, bounds)):
            return None, calls
        kept = {dim: one[dim] for (_, dim), one in zip(alone, tilings, strict=True)}
        return [_combinations({dim: kept[dim] for dim in group}) for group in self.groups], calls

    def _factors(self, picked: list[Picked]) -> list[FloatArray]:
        return [
            self.order.factors(group, one) for group, one in zip(self.groups, picked, strict=True)
        ]

    def _filter(self, rows: list[FloatArray], picked: list[Picked], best: FloatArray) -> int:
        """Drop rows that cannot be part of a better mapping, until nothing changes.

        Shortens ``rows`` and ``picked`` in place; returns evaluations.
        """
        calls, changed = 0, True
        while changed and all(map(len, rows)):
            changed = False
            for g, table in enumerate(rows):
                smallest = [other.min(axis=0) for h, other in enumerate(rows) if h != g]
                others = np.prod(np.array([*smallest, np.ones(table.shape[1])]), axis=0)
                mask = promising(table, others, self.model, best)
                calls += len(table)
                if not mask.all():
                    changed = True
                    rows[g] = np.ascontiguousarray(table[mask])
                    picked[g] = {dim: chosen[mask] for dim, chosen in picked[g].items()}
                    if not mask.any():
                        return calls
        return calls


def _combinations(options: Picked) -> Picked:
    """Every combination of the dimensions' options, one per row."""
    grids = np.meshgrid(*options.values(), indexing="ij")
    return {dim: grid.ravel() for dim, grid in zip(options, grids, strict=True)}


def _sample(count: int) -> IntArray:
    """All of a few options, evenly spaced ones of many."""
    return np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64))


def _chosen(rows: IntArray, picked: list[Picked]) -> dict[str, int]:
    """Which tiling of each dimension the chosen rows stand for."""
    return {
        dim: int(options[row])
        for row, one in zip(rows, picked, strict=True)
        for dim, options in one.items()
    }


def _does_not_fit(run: Execution, problems: list[_Problem]) -> InfeasibleError:
    """Names the memory that is most too small for the mapping that comes closest to fitting."""
    for problem in problems:
        problem.model = problem.model._replace(objective=pricing.ROOM)
    closest = _optimum(problems)
    assert closest is not None, "with one element per tile every axis is long enough"
    peak = peak_bits(staged_tiles(run, closest.mapping))
    worst = max(
        (memory for memory in run.memories if memory.name in peak),
        key=lambda memory: peak[memory.name] / memory.size_bytes,
    )
    return InfeasibleError(
        limit=f"capacity of {worst.name} in bytes",
        needed=-(-peak[worst.name] // 8),
        allowed=worst.size_bytes,
        detail=f"no tiling of {run.operator.name} fits, this one comes closest",
    )

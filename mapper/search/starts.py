"""Where a search begins: tilings that fill the memories and move little.

A start is built without the architecture's prices: the array is unrolled so that few steps are
needed, then tiles are chosen that fit and move few words, a word costing sixteen times less at
each level inwards. (Energies per word fall by such factors from DRAM to buffers to registers:
Horowitz, ISSCC 2014.) Traffic first is how CoSA (ISCA 2021) and Marvel (TACO 2021) map.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from arch.spec import Component
from mapper.cost import Price
from mapper.hierarchy import Execution
from mapper.search import pricing
from mapper.search.candidates import Candidate, Candidates
from mapper.search.coefficients import Coefficients
from mapper.search.costs import ANSWERS, EXCESS, TOTAL_PJ, TOTAL_PS, cost
from mapper.search.descent import descend
from mapper.search.flows import flows
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import StageOrder
from mapper.search.unrollings import Unrolling, fastest_unrollings, not_unrolled

#: Orders of stages that starts are built for; of more, evenly spaced ones.
MOST_ORDERS = 48
#: Unrollings that starts are built for, of the fastest so many those that can fit.
UNROLLINGS = 2
_TRIED = 60
#: Tilings of a dimension that a start looks at.
_SAMPLE = 24
_WORD_RATIO = 16.0
#: Starts that are priced before a search moves away from the best of them.
_EVALUATED = 16


class NothingFits(Exception):  # noqa: N818 - a signal to decide otherwise, not an error
    """No start fits, so perhaps no mapping does."""


@dataclass(frozen=True, slots=True)
class Start:
    """A candidate and the words that it moves, weighted by level, times its steps."""

    candidate: Candidate
    words: float


def starts(run: Execution, orders: Sequence[StageOrder]) -> list[Start]:
    """At most one for each of some orders and unrollings, those that move least first."""
    spread = np.unique(np.linspace(0, len(orders) - 1, min(len(orders), MOST_ORDERS)).astype(int))
    counted = Coefficients(run=run, leakage_w=0.0, price=_words_priced(run), objective=pricing.EDP)
    able = (
        way
        for way in (*fastest_unrollings(orders[0], _TRIED), not_unrolled(orders[0]))
        if _can_fit(orders[0], way, counted)
    )
    ways = list(itertools.islice(able, UNROLLINGS))
    found = [
        start
        for number in spread
        for way in ways
        for start in _filled(orders, int(number), way, counted)
    ]
    return sorted(found, key=lambda start: start.words)


def evaluated_starts(space: Candidates) -> list[Candidate]:
    """Some starts, best first, each priced; ``NothingFits`` if there is none."""
    if space.starts is None:
        space.starts = [s.candidate for s in starts(space.run, space.orders)][:_EVALUATED]
    if not space.starts:
        raise NothingFits
    return sorted(space.starts, key=space.value)


def _words_priced(run: Execution) -> _Words:
    return _Words({memory.name: level for level, memory in enumerate(run.memories)})


@dataclass(frozen=True, slots=True)
class _Words:
    """A price list that counts words, weighted by the level of their memory, and steps."""

    levels: dict[str, int]

    def __call__(self, component: Component) -> Price:
        if component.name not in self.levels:
            return Price(step_ps=1)
        weight = _WORD_RATIO ** -self.levels[component.name]
        return Price(read_pj_per_bit=weight, write_pj_per_bit=weight)


def _filled(
    orders: Sequence[StageOrder], number: int, way: Unrolling, counted: Coefficients
) -> Iterator[Start]:
    """Coordinate descent from the smallest tiles; nothing if it ends where nothing fits."""
    order = orders[number]
    dims = tuple(order.run.operator.extents)
    picked, tables = _tables(order, way)
    first = np.cumsum([0, *(len(table) for table in tables)], dtype=np.int64)
    chosen = first[:-1] + np.array([_smallest(order, table) for table in tables])
    best: FloatArray = np.full(ANSWERS, np.inf)
    descend(np.concatenate(tables), first, chosen, flows(counted.model(order)), best)
    if best[EXCESS] == 0.0:
        at = {
            dim: int(options[row])
            for row, one in zip(chosen - first[:-1], picked, strict=True)
            for dim, options in one.items()
        }
        words = float(best[TOTAL_PS] * best[TOTAL_PJ])
        yield Start(Candidate(number, tuple(at[dim] for dim in dims)), words)


def _tables(
    order: StageOrder, way: Unrolling
) -> tuple[list[dict[str, IntArray]], list[FloatArray]]:
    """Per group some of the tilings that are unrolled so, and their factors."""
    groups = order.run.counts.groups
    rows = {
        dim: _with_factors(order, dim, factors)
        for dim, factors in zip(order.run.operator.extents, way.factors, strict=True)
    }
    picked = [_combined({dim: rows[dim] for dim in group}) for group in groups]
    return picked, [order.factors(g, one) for g, one in zip(groups, picked, strict=True)]


def _smallest(order: StageOrder, table: FloatArray) -> int:
    """The row that needs least room."""
    held = [i for i, column in enumerate(order.columns) if column.kind == "held"]
    return int(np.argmin(table[:, held].sum(axis=1)))


def _can_fit(order: StageOrder, way: Unrolling, counted: Coefficients) -> bool:
    """Do the smallest tiles fit when unrolled so?"""
    terms = flows(counted.model(order))
    volumes = np.ones(len(order.columns))
    for group in order.run.counts.groups:
        volumes *= order.factors(group, _smallest_rows(order, group, way))[0]
    answer = np.empty(ANSWERS)
    cost(volumes, terms, np.empty(len(terms.ports)), answer)
    return bool(answer[EXCESS] == 0.0)


def _smallest_rows(
    order: StageOrder, group: tuple[str, ...], way: Unrolling
) -> dict[str, IntArray]:
    factors = dict(zip(order.run.operator.extents, way.factors, strict=True))
    found = {}
    for dim in group:
        rows = np.flatnonzero((order.tilings(dim).spatial == factors[dim]).all(axis=1))
        sizes = order.tilings(dim).tiles[rows].sum(axis=1)
        found[dim] = rows[[int(np.argmin(sizes))]]
    return found


def _with_factors(order: StageOrder, dim: str, factors: tuple[int, ...]) -> IntArray:
    """Some tilings of the dimension that are unrolled so."""
    rows = np.flatnonzero((order.tilings(dim).spatial == factors).all(axis=1))
    kept = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.int64))
    return np.asarray(rows[kept], dtype=np.int64)


def _combined(options: dict[str, IntArray]) -> dict[str, IntArray]:
    grids = np.meshgrid(*options.values(), indexing="ij")
    return {dim: grid.ravel() for dim, grid in zip(options, grids, strict=True)}

"""Where a search begins: tilings that fill the memories and move little.

A start is built without the architecture's prices: the array is unrolled so that few steps are
needed, or fewer words moved; then tiles are chosen that fit and move few words, a word costing
sixteen times less at each level inwards, by coordinate descents from several tilings. (Energies
per word fall by such factors from DRAM to buffers to registers: Horowitz, ISSCC 2014.) Traffic
first is how CoSA (ISCA 2021) and Marvel (TACO 2021) map.
"""

from __future__ import annotations

from collections import Counter
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
#: Unrollings that starts are built for: the fastest ones of those that can fit, and ever slower
#: ones of so many. Where words are what takes time, part of the array is better left idle.
FASTEST, SLOWER = 2, 6
_TRIED = 60
#: Tilings of a dimension that a start looks at (of one that shares an axis with another, fewer),
#: and descents that begin elsewhere than at the smallest tiles (from there the first dimension
#: takes the room that others need).
_SAMPLE, _SAMPLE_COUPLED = 60, 40
_DESCENTS = 12
_WORD_RATIO = 16.0
#: Starts that are priced before a search moves away from the best of them.
_EVALUATED = 16
#: Of these, starts with the same unrolling.
_ALIKE = 5


class NothingFits(Exception):  # noqa: N818 - a signal to decide otherwise, not an error
    """No start fits, so perhaps no mapping does."""


@dataclass(frozen=True, slots=True)
class Start:
    """A candidate, the words that it moves, weighted by level, and its steps."""

    candidate: Candidate
    way: Unrolling
    words: float
    steps: float


def starts(run: Execution, orders: Sequence[StageOrder]) -> list[Start]:
    """At most one for each of some orders and unrollings, the most promising first."""
    spread = np.unique(np.linspace(0, len(orders) - 1, min(len(orders), MOST_ORDERS)).astype(int))
    counted = Coefficients(run=run, leakage_w=0.0, price=_words_priced(run), objective=pricing.EDP)
    ways = _ways(orders[0], counted)
    found = [
        start
        for number in spread
        for way in ways
        for start in _filled(orders, int(number), way, counted)
    ]
    return _ranked(found)


def _ways(order: StageOrder, counted: Coefficients) -> list[Unrolling]:
    """Unrollings that can fit: the fastest, and some that leave more and more of the array idle."""
    fastest = fastest_unrollings(order, _TRIED)
    able = [way for way in fastest if _can_fit(order, way, counted)]
    if not able:
        return [way for way in (not_unrolled(order),) if _can_fit(order, way, counted)]
    slower = np.geomspace(FASTEST + 1, max(len(able), FASTEST + 1), SLOWER).astype(int) - 1
    return able[:FASTEST] + [able[i] for i in np.unique(slower) if i < len(able)]


def _ranked(found: list[Start]) -> list[Start]:
    """Those that take the least time by turns: where steps take it, and where words do."""
    by_steps = sorted(found, key=lambda start: start.words * start.steps)
    by_words = sorted(found, key=lambda start: start.words)
    turns = (start for both in zip(by_steps, by_words, strict=True) for start in both)
    of_way: Counter[Unrolling] = Counter()
    first: list[Start] = []
    later: list[Start] = []
    for start in dict.fromkeys(turns):
        of_way[start.way] += 1
        (first if of_way[start.way] <= _ALIKE else later).append(start)
    return first + later


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
    """Where coordinate descents lead that end where something fits: the best of them."""
    order = orders[number]
    dims = tuple(order.run.operator.extents)
    picked, tables = _tables(order, way)
    first = np.cumsum([0, *(len(table) for table in tables)], dtype=np.int64)
    joined, terms = np.concatenate(tables), flows(counted.model(order))
    ends = []
    for begin in _beginnings(order, tables):
        chosen, best = first[:-1] + begin, np.full(ANSWERS, np.inf)
        descend(joined, first, chosen, terms, best)
        if best[EXCESS] == 0.0:
            ends.append((best[TOTAL_PS] * best[TOTAL_PJ], best, chosen - first[:-1]))
    if ends:
        _, best, rows = min(ends, key=lambda end: end[0])
        at = {
            dim: int(options[row])
            for row, one in zip(rows, picked, strict=True)
            for dim, options in one.items()
        }
        candidate = Candidate(number, tuple(at[dim] for dim in dims))
        yield Start(candidate, way, float(best[TOTAL_PJ]), float(best[TOTAL_PS]))


def _beginnings(order: StageOrder, tables: Sequence[FloatArray]) -> Iterator[IntArray]:
    """Rows to descend from: the smallest, then rows spread over the tables, no two alike."""
    yield np.array([_smallest(order, table) for table in tables])
    lengths = np.array([len(table) for table in tables])
    # Multiples of square roots of numbers that are no squares, modulo 1, are spread evenly.
    roots = np.sqrt(np.arange(len(tables)) ** 2 + 2.0)
    for number in range(1, _DESCENTS + 1):
        yield (np.modf(number * roots)[0] * lengths).astype(np.int64)


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
    coupled = any(dim in group and len(group) > 1 for group in order.run.counts.groups)
    most = min(len(rows), _SAMPLE_COUPLED if coupled else _SAMPLE)
    kept = np.unique(np.linspace(0, len(rows) - 1, most).astype(np.int64))
    return np.asarray(rows[kept], dtype=np.int64)


def _combined(options: dict[str, IntArray]) -> dict[str, IntArray]:
    grids = np.meshgrid(*options.values(), indexing="ij")
    return {dim: grid.ravel() for dim, grid in zip(options, grids, strict=True)}

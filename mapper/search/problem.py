"""One order of stages: its mapspace, and what of it is still worth looking at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mapper.search.boxes import plant, search
from mapper.search.canonical import Canonical, combined
from mapper.search.costs import ANSWERS, cost, value
from mapper.search.descent import Rows, descend, narrow, sensitivities, undominated
from mapper.search.flows import Flows
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import StageOrder
from mapper.search.terms import Picked, Terms

#: Tilings that coordinate descent looks at, of a dimension alone and of one that is counted
#: together with others; what it misses the search finds.
_SAMPLE_ALONE, _SAMPLE = 1024, 48

#: Evaluations, per row, after which rows are first compared with each other.
_CALLS_PER_ROW, _ANY_CALLS = 2, 1 << 62

#: With how many rows a row is compared to see whether it is dominated.
_FRONT = 128

#: Which dimensions are unrolled is decided first: until then all bounds are loose.
_SPLIT_FIRST = {"used": 1e3}
#: What a volume that costs nothing counts when boxes are split.
_LEAST_WEIGHT = 1e-3


@dataclass(slots=True)
class Tables:
    """Per group, rows of factors, which tilings they stand for, and what these lack."""

    rows: list[FloatArray]
    picked: list[Picked]
    lacks: list[IntArray]

    @property
    def is_empty(self) -> bool:
        """Is there a group of which nothing is left?"""
        return not all(map(len, self.rows))

    def keep(self, group: int, which: IntArray | NDArray[np.bool_]) -> None:
        self.rows[group] = self.rows[group][which]
        self.picked[group] = {dim: chosen[which] for dim, chosen in self.picked[group].items()}
        self.lacks[group] = self.lacks[group][which]

    def copy(self) -> Tables:
        return Tables(list(self.rows), list(self.picked), list(self.lacks))


class Problem:
    """One order of stages and the cost of its mappings.

    Tilings that cannot be part of a better mapping are left out once and for all: ``best`` in
    the calls below never gets worse. Where all orders of stages are searched (``of_many``), so are
    mappings that another order has at no higher cost.
    """

    def __init__(self, order: StageOrder, terms: Terms, *, of_many: bool) -> None:
        self.order = order
        self.terms = terms
        self.groups = terms.groups
        self.flows = terms.flows
        self._first = np.array([_SPLIT_FIRST.get(kind, 0.0) for kind in terms.kinds])
        self._held = [i for i, kind in enumerate(terms.kinds) if kind == "held"]
        self._weights = np.maximum(self._first, 1.0)
        self._canonical = Canonical(order, terms.late_loads) if of_many else None
        self._late = self._canonical.late if self._canonical else 0
        self._lacks: dict[str, IntArray] = {}
        self._dims = [dim for group in self.groups for dim in group]
        self._sampled: Tables | None = None
        self._alone: Tables | None = None
        self._kept: Tables | None = None

    @property
    def is_superfluous(self) -> bool:
        """Has another order of stages each of its mappings, at no higher cost?"""
        return self._canonical is not None and self._canonical.leaves_nothing

    def descend(self, best: FloatArray) -> tuple[int, dict[str, int]]:
        """Coordinate descent from the smallest tiles, on a sample; fills ``best``."""
        if self._are_few():
            self._kept = tables = self._combined()
        else:
            tables = self._tables(
                [
                    _combinations({d: self._sample(d, _most(group)) for d in group})
                    for group in self.groups
                ]
            )
            self._sampled = tables
        start = [int(np.argmin(rows[:, self._held].sum(axis=1))) for rows in tables.rows]
        calls, at = _descend(tables.rows, start, self.flows, best)
        reached = [rows[row] for rows, row in zip(tables.rows, at, strict=True)]
        importance = sensitivities(np.prod(reached, axis=0), self.flows)
        self._weights = np.maximum(self._first, importance + _LEAST_WEIGHT)
        return calls, _chosen(at, tables.picked)

    def _are_few(self) -> bool:
        """Are so few tilings left that a sample would be all of them?"""
        if self._alone is None:
            return False
        left = dict(zip(self._dims, map(len, self._alone.rows), strict=True))
        return all(left[dim] <= _most(group) for group in self.groups for dim in group)

    def _sample(self, dim: str, most: int) -> IntArray:
        """Of what is left of a dimension's tilings all, or evenly spaced ones."""
        if self._alone is None:
            return _sample(len(self.order.listed_tilings(dim)), most)
        numbers = self._alone.picked[self._dims.index(dim)][dim]
        return numbers[_sample(len(numbers), most)]

    @property
    def is_done(self) -> bool:
        """Has a dimension no tiling left that may be part of something better?"""
        return self._alone is not None and self._alone.is_empty

    def bound(self) -> float:
        """The objective that no combination of what is left is below."""
        assert self._alone is not None
        least = np.prod([rows.min(axis=0) for rows in self._alone.rows], axis=0)
        answer = np.empty(ANSWERS)
        cost(least, self.flows, np.empty(len(self.flows.ports)), answer)
        return value(self.flows.objective, answer)

    def narrow(self, best: FloatArray) -> int:
        """Leave out tilings that cannot be part of a better mapping, each dimension on its own."""
        if self._alone is not None:
            return self._filter(self._alone, 0.0, best)
        terms, order = self.terms, self.order
        alone = [(group, dim) for group in self.groups for dim in group]
        bounds = [terms.blocks(order, group, dim) for group, dim in alone]
        rows = [
            terms.alone(order, group, dim) if bound is None else bound
            for (group, dim), bound in zip(alone, bounds, strict=True)
        ]
        picked = [{dim: np.arange(len(r))} for (_, dim), r in zip(alone, rows, strict=True)]
        self._alone = Tables(rows, picked, [_nothing(r) for r in rows])
        calls = self._filter(self._alone, 0.0, best)
        if self.is_done:
            return calls
        for i, (group, dim) in enumerate(alone):
            self._look_closer(self._alone, i, group, dim, in_blocks=bounds[i] is not None)
        return calls + self._filter(self._alone, 0.0, best)

    def _look_closer(
        self, alone: Tables, at: int, group: tuple[str, ...], dim: str, *, in_blocks: bool
    ) -> None:
        """Of what is left of a dimension: tilings instead of blocks, and what they lack."""
        if in_blocks:
            numbers = self.order.listed_tilings(dim).blocks.rows(alone.picked[at][dim])
            alone.picked[at] = {dim: numbers}
            alone.rows[at] = self.terms.factors(self.order, group, {dim: numbers})
        alone.lacks[at] = self._lacking(alone.picked[at])

    def _lacking(self, picked: Picked) -> IntArray:
        """What combinations of tilings lack."""
        if self._canonical is None:
            return _nothing(next(iter(picked.values())))
        for dim in picked:
            if dim not in self._lacks:
                tilings = self.order.listed_tilings(dim)
                self._lacks[dim] = self._canonical.lacks(dim, tilings)
        return combined([self._lacks[dim][numbers] for dim, numbers in picked.items()])

    def polish(self, chosen: dict[str, int]) -> tuple[int, dict[str, int]]:
        """Coordinate descent from an optimum: as good, and less time is exposed."""
        picked = []
        for group in self.groups:
            sampled = {d: _sample(len(self.order.listed_tilings(d)), _most(group)) for d in group}
            options = {d: np.union1d(some, chosen[d]) for d, some in sampled.items()}
            picked.append(_combinations(options))
        whole = self.terms.whole
        rows = [
            self.terms.factors(self.order, group, one, every=True)
            for group, one in zip(self.groups, picked, strict=True)
        ]
        start = [
            int(np.flatnonzero(np.all([one[d] == chosen[d] for d in one], axis=0))[0])
            for one in picked
        ]
        best = np.empty(ANSWERS)
        volumes = np.prod([table[row] for table, row in zip(rows, start, strict=True)], axis=0)
        cost(volumes, whole, np.empty(len(whole.ports)), best)
        calls, at = _descend(rows, start, whole, best)
        return calls, _chosen(at, picked)

    def explore(self, best: FloatArray, slack: float) -> tuple[int, dict[str, int] | None]:
        """As ``search``, in the sample that coordinate descent looked at, if it was one."""
        if self._kept is not None:
            return 0, None
        assert self._sampled is not None
        return self._searched(self._sampled.copy(), slack, best)

    def search(self, best: FloatArray, slack: float) -> tuple[int, dict[str, int] | None]:
        """Improve ``best`` until nothing here is better by more than ``slack``."""
        calls = 0
        if self._kept is None:
            calls = self.narrow(best)
            self._kept = self._combined()
        more, found = self._searched(self._kept, slack, best)
        return calls + more, found

    def _searched(
        self, tables: Tables, slack: float, best: FloatArray
    ) -> tuple[int, dict[str, int] | None]:
        """Search, and if that takes long, among fewer rows; ``tables`` become shorter then."""
        if tables.is_empty:
            return 0, None
        most = 1000 + _CALLS_PER_ROW * sum(map(len, tables.rows))
        calls, found, is_done = self._branch(tables, (slack, most), best)
        if is_done:
            return calls, found
        self._drop_dominated(tables)
        calls += self._filter(tables, slack, best)
        if tables.is_empty:
            return calls, found
        more, later, _ = self._branch(tables, (slack, _ANY_CALLS), best)
        return calls + more, later or found

    def _branch(
        self, tables: Tables, limits: tuple[float, int], best: FloatArray
    ) -> tuple[int, dict[str, int] | None, bool]:
        single = [i for i, rows in enumerate(tables.rows) if len(rows) == 1]
        many = [i for i, rows in enumerate(tables.rows) if len(rows) > 1]
        rows = [tables.rows[i] for i in many]
        lacks = [tables.lacks[i] for i in many]
        if single:  # there is nothing to choose
            rows.append(np.prod([tables.rows[i] for i in single], axis=0))
            lacks.append(combined([tables.lacks[i] for i in single]))
        forest, first = plant(rows, lacks, self._weights, self._late)
        chosen = np.full(len(first), -1, dtype=np.int64)
        calls, is_done = search(forest, self.flows, limits, best, chosen)
        if chosen[0] < 0:
            return calls, None, is_done
        at = np.zeros(len(tables.rows), dtype=np.int64)
        at[many] = (chosen - first)[: len(many)]
        return calls, _chosen(at, tables.picked), is_done

    def _combined(self) -> Tables:
        """Per group the combinations of those tilings that are promising on their own.

        Empty if a dimension has none: nothing can be better.
        """
        assert self._alone is not None
        if self._alone.is_empty:
            return self._alone
        kept = {d: one[d] for d, one in zip(self._dims, self._alone.picked, strict=True)}
        single = dict(zip(self._dims, self._alone.rows, strict=True))
        return self._tables(
            [_combinations({d: kept[d] for d in group}) for group in self.groups], single
        )

    def _tables(self, picked: list[Picked], known: dict[str, FloatArray] | None = None) -> Tables:
        """The factors of what is picked; those of a single dimension may be known already."""
        rows: list[FloatArray] = []
        for g, (group, one) in enumerate(zip(self.groups, picked, strict=True)):
            twin = self.terms.twins[g]
            if known and len(group) == 1:
                rows.append(known[group[0]])
            elif twin < g and self._are_equal(picked[twin], one):
                rows.append(rows[twin])
            else:
                rows.append(self.terms.factors(self.order, group, one))
        return Tables(rows, picked, [self._lacking(one) for one in picked])

    def _are_equal(self, one: Picked, other: Picked) -> bool:
        """Are the same tilings picked, dimension by dimension?"""
        tilings = self.order.listed_tilings
        return all(
            tilings(d) == tilings(e) and np.array_equal(one[d], other[e])
            for d, e in zip(one, other, strict=True)
        )

    def _drop_dominated(self, tables: Tables) -> None:
        """Leave out rows that another row of the group is better than whatever the others are."""
        seen: dict[int, tuple[FloatArray, IntArray, IntArray]] = {}
        for g, (rows, lacks) in enumerate(zip(tables.rows, tables.lacks, strict=True)):
            if id(rows) in seen and np.array_equal(seen[id(rows)][1], lacks):
                tables.keep(g, seen[id(rows)][2])
                continue
            narrow_rows = rows[:, self.terms.deciding]
            order = np.argsort(np.log1p(narrow_rows).sum(axis=1), kind="stable")
            kept = order[undominated(narrow_rows[order], lacks[order], _FRONT)]
            seen[id(rows)] = rows, lacks, np.sort(kept)
            tables.keep(g, seen[id(rows)][2])

    def _filter(self, tables: Tables, slack: float, best: FloatArray) -> int:
        """Drop rows that cannot be part of a better mapping, until nothing changes.

        Shortens ``tables`` in place; returns evaluations.
        """
        first = np.cumsum([0, *map(len, tables.rows)], dtype=np.int64)
        mask = np.ones(first[-1], dtype=np.bool_)
        rows = Rows(np.concatenate(tables.rows), first, np.concatenate(tables.lacks), self._late)
        calls: int = narrow(rows, self.flows, slack, best, mask)
        for g in range(len(tables.rows)):
            kept = mask[first[g] : first[g + 1]]
            if not kept.all():
                tables.keep(g, kept)
        return calls


def _descend(
    rows: list[FloatArray], start: list[int], model: Flows, best: FloatArray
) -> tuple[int, IntArray]:
    first = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    chosen = first[:-1] + np.array(start, dtype=np.int64)
    calls = descend(np.concatenate(rows), first, chosen, model, best)
    return calls, chosen - first[:-1]


def _nothing(rows: FloatArray | IntArray) -> IntArray:
    return np.zeros(len(rows), dtype=np.int64)


def _combinations(options: Picked) -> Picked:
    """Every combination of the dimensions' options, one per row."""
    grids = np.meshgrid(*options.values(), indexing="ij")
    return {dim: grid.ravel() for dim, grid in zip(options, grids, strict=True)}


def _most(group: tuple[str, ...]) -> int:
    """Tilings of each dimension of the group: combinations grow with the number of dimensions."""
    return _SAMPLE_ALONE if len(group) == 1 else int(_SAMPLE ** (2 / len(group)))


def _sample(count: int, most: int) -> IntArray:
    """All of a few options, evenly spaced ones of many."""
    return np.arange(count) if count <= most else np.arange(most) * (count - 1) // (most - 1)


def _chosen(rows: IntArray, picked: list[Picked]) -> dict[str, int]:
    """Which tiling of each dimension the chosen rows stand for."""
    return {
        dim: int(options[row])
        for row, one in zip(rows, picked, strict=True)
        for dim, options in one.items()
    }

"""One order of stages: its mapspace, and what of it is still worth looking at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mapper.search import pricing
from mapper.search.boxes import Tree, grow_tree, join_trees, search
from mapper.search.costs import ANSWERS, cost
from mapper.search.descent import descend, promising, sensitivities, undominated
from mapper.search.factors import are_alike, column_table
from mapper.search.flows import Flows, compacted, decisive, flows
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import StageOrder

#: dim -> the number of its tiling, one per row
Picked = dict[str, IntArray]

#: Tilings that coordinate descent looks at, of a dimension alone and of one that is counted
#: together with others; what it misses the search finds.
_SAMPLE_ALONE, _SAMPLE = 1024, 48

#: So many tilings of a dimension are first bounded in blocks.
_MANY = 500

#: With how many rows a row is compared to see whether it is dominated.
_FRONT = 128

#: Which dimensions are unrolled is decided first: until then all bounds are loose.
_SPLIT_FIRST = {"used": 1e3}
#: What a volume that costs nothing counts when boxes are split.
_LEAST_WEIGHT = 1e-3


@dataclass(slots=True)
class Tables:
    """Per group, rows of factors and which tilings they stand for."""

    rows: list[FloatArray]
    picked: list[Picked]

    @property
    def is_empty(self) -> bool:
        """Is there a group of which nothing is left?"""
        return not all(map(len, self.rows))

    def keep(self, group: int, which: IntArray | NDArray[np.bool_]) -> None:
        self.rows[group] = np.ascontiguousarray(self.rows[group][which])
        self.picked[group] = {dim: chosen[which] for dim, chosen in self.picked[group].items()}

    def copy(self) -> Tables:
        return Tables(list(self.rows), list(self.picked))


class Problem:
    """One order of stages and the cost of its mappings.

    Tilings that cannot be part of a better mapping are left out once and for all: ``best`` in
    the calls below never gets worse.
    """

    def __init__(self, order: StageOrder, model: pricing.Model) -> None:
        self.order = order
        self.groups = order.run.counts.groups
        self._whole = flows(model)
        deciding = decisive(self._whole)
        columns, self.flows = compacted(self._whole, deciding)
        self._every = column_table(order.run, order.columns)
        self._columns = self._every[columns]
        self._decisive = np.searchsorted(columns, deciding)
        used = [order.columns[c].kind for c in columns]
        self._first = np.array([_SPLIT_FIRST.get(kind, 0.0) for kind in used])
        self._held = [i for i, kind in enumerate(used) if kind == "held"]
        self._twins = self._find_twins()
        self._weights = np.maximum(self._first, 1.0)
        self._sampled: Tables | None = None
        self._dims = [dim for group in self.groups for dim in group]
        self._alone: Tables | None = None
        self._kept: Tables | None = None
        self._forest: tuple[Tree, IntArray] | None = None
        self._filtered_at = np.full(ANSWERS, np.inf)

    def _find_twins(self) -> list[int]:
        """Per group the first one with the same tilings and factors (height and width)."""
        shapes = [self.order.shape(group, frozenset(group)) for group in self.groups]
        tilings = [[self.order.tilings(dim) for dim in group] for group in self.groups]
        return [
            next(
                h
                for h in range(g + 1)
                if h == g or (tilings[h] == tilings[g] and are_alike(shapes[h], shapes[g]))
            )
            for g in range(len(self.groups))
        ]

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
            self._drop_dominated(tables)
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
            return _sample(len(self.order.tilings(dim)), most)
        numbers = self._alone.picked[self._dims.index(dim)][dim]
        return numbers[_sample(len(numbers), most)]

    @property
    def is_done(self) -> bool:
        """Has a dimension no tiling left that may be part of something better?"""
        return self._alone is not None and self._alone.is_empty

    def narrow(self, best: FloatArray) -> int:
        """Leave out tilings that cannot be part of a better mapping, each dimension on its own."""
        if self._alone is not None:
            return self._filter(self._alone, 0.0, best)
        alone = [(group, dim) for group in self.groups for dim in group]
        bounds = [self._blocks(group, dim) for group, dim in alone]
        rows = [
            self._every_tiling(group, dim) if bound is None else bound
            for (group, dim), bound in zip(alone, bounds, strict=True)
        ]
        self._alone = Tables(
            rows, [{d: np.arange(len(r))} for (_, d), r in zip(alone, rows, strict=True)]
        )
        calls = self._filter(self._alone, 0.0, best)
        if self.is_done or not any(bound is not None for bound in bounds):
            return calls
        for i, (group, dim) in enumerate(alone):
            if bounds[i] is not None:
                numbers = self.order.tilings(dim).blocks.rows(self._alone.picked[i][dim])
                self._alone.picked[i] = {dim: numbers}
                self._alone.rows[i] = self.order.factors_of(self._columns, group, {dim: numbers})
        return calls + self._filter(self._alone, 0.0, best)

    def _blocks(self, group: tuple[str, ...], dim: str) -> FloatArray | None:
        """Bounds of many tilings, block by block; ``None`` if they had better be looked at."""
        if len(self.order.tilings(dim)) < _MANY:
            return None
        return self.order.blocks_of(self._columns, group, dim)

    def _every_tiling(self, group: tuple[str, ...], dim: str) -> FloatArray:
        every = np.arange(len(self.order.tilings(dim)))
        return self.order.factors_of(self._columns, group, {dim: every})

    def polish(self, chosen: dict[str, int]) -> tuple[int, dict[str, int]]:
        """Coordinate descent from an optimum: as good, and less time is exposed."""
        picked = []
        for group in self.groups:
            sampled = {d: _sample(len(self.order.tilings(d)), _most(group)) for d in group}
            options = {d: np.union1d(some, chosen[d]) for d, some in sampled.items()}
            picked.append(_combinations(options))
        rows = [
            self.order.factors_of(self._every, group, one)
            for group, one in zip(self.groups, picked, strict=True)
        ]
        start = [
            int(np.flatnonzero(np.all([one[d] == chosen[d] for d in one], axis=0))[0])
            for one in picked
        ]
        best = np.empty(ANSWERS)
        volumes = np.prod([table[row] for table, row in zip(rows, start, strict=True)], axis=0)
        cost(volumes, self._whole, np.empty(len(self._whole.ports)), best)
        calls, at = _descend(rows, start, self._whole, best)
        return calls, _chosen(at, picked)

    def explore(self, best: FloatArray, slack: float) -> tuple[int, dict[str, int] | None]:
        """As ``search``, in the sample that coordinate descent looked at, if it was one."""
        if self._kept is not None:
            return 0, None
        assert self._sampled is not None
        tables = self._sampled.copy()
        calls = self._filter(tables, slack, best)
        if tables.is_empty:
            return calls, None
        more, found = self._branch(tables, self._grown(tables), slack, best)
        return calls + more, found

    def search(self, best: FloatArray, slack: float) -> tuple[int, dict[str, int] | None]:
        """Improve ``best`` until nothing here is better by more than ``slack``."""
        tables, calls = self._narrowed(best)
        if tables.is_empty:
            return calls, None
        if self._forest is None:
            self._forest = self._grown(tables)
        more, found = self._branch(tables, self._forest, slack, best)
        return calls + more, found

    def _grown(self, tables: Tables) -> tuple[Tree, IntArray]:
        trees: list[tuple[FloatArray, Tree]] = []
        for rows in _joined_constants(tables.rows):
            # Height and width of an image often have the same tilings.
            grown = (tree for others, tree in trees if np.array_equal(others, rows))
            trees.append((rows, next(grown, None) or grow_tree(rows, self._weights)))
        return join_trees([tree for _, tree in trees])

    def _branch(
        self, tables: Tables, forest: tuple[Tree, IntArray], slack: float, best: FloatArray
    ) -> tuple[int, dict[str, int] | None]:
        chosen = np.full(len(forest[1]), -1, dtype=np.int64)
        calls = search(*forest, self.flows, slack, best, chosen)
        if chosen[0] < 0:
            return calls, None
        many = [i for i, rows in enumerate(tables.rows) if len(rows) > 1]
        at = np.zeros(len(tables.rows), dtype=np.int64)
        at[many] = chosen[: len(many)]
        return calls, _chosen(at, tables.picked)

    def _narrowed(self, best: FloatArray) -> tuple[Tables, int]:
        """What may still be better than ``best``, and evaluations."""
        calls = 0
        if self._kept is None:
            calls = self.narrow(best)
            self._kept = self._combined()
        elif np.array_equal(self._filtered_at, best):
            return self._kept, 0
        self._filtered_at = best.copy()
        before = [len(rows) for rows in self._kept.rows]
        if all(before):
            calls += self._filter(self._kept, 0.0, best)
        if [len(rows) for rows in self._kept.rows] != before:
            self._forest = None
        return self._kept, calls

    def _combined(self) -> Tables:
        """Per group the combinations of those tilings that are promising on their own.

        Empty if a dimension has none: nothing can be better.
        """
        assert self._alone is not None
        if self._alone.is_empty:
            return self._alone
        kept = {d: one[d] for d, one in zip(self._dims, self._alone.picked, strict=True)}
        single = dict(zip(self._dims, self._alone.rows, strict=True))
        found = self._tables(
            [_combinations({d: kept[d] for d in group}) for group in self.groups], single
        )
        self._drop_dominated(found)
        return found

    def _tables(self, picked: list[Picked], known: dict[str, FloatArray] | None = None) -> Tables:
        """The factors of what is picked; those of a single dimension may be known already."""
        rows: list[FloatArray] = []
        for g, (group, one) in enumerate(zip(self.groups, picked, strict=True)):
            twin = self._twins[g]
            if known and len(group) == 1:
                rows.append(known[group[0]])
            elif twin < g and _are_equal(picked[twin], one):
                rows.append(rows[twin])
            else:
                rows.append(self.order.factors_of(self._columns, group, one))
        return Tables(rows, picked)

    def _drop_dominated(self, tables: Tables) -> None:
        """Leave out rows that another row of the group is better than whatever the others are."""
        seen: dict[int, tuple[FloatArray, IntArray]] = {}
        for g, rows in enumerate(tables.rows):
            if id(rows) not in seen:
                narrow = rows[:, self._decisive]
                order = np.argsort(np.log1p(narrow).sum(axis=1), kind="stable")
                kept = order[undominated(np.ascontiguousarray(narrow[order]), _FRONT)]
                seen[id(rows)] = rows, np.sort(kept)
            tables.keep(g, seen[id(rows)][1])

    def _filter(self, tables: Tables, slack: float, best: FloatArray) -> int:
        """Drop rows that cannot be part of a better mapping, until nothing changes.

        Shortens ``tables`` in place; returns evaluations.
        """
        calls, changed = 0, True
        smallest = np.array([rows.min(axis=0) for rows in tables.rows])
        while changed:
            changed = False
            for g, rows in enumerate(tables.rows):
                others = np.prod(np.delete(smallest, g, axis=0), axis=0)
                mask = promising(rows, others, self.flows, slack, best)
                calls += len(rows)
                if mask.all():
                    continue
                changed = True
                tables.keep(g, mask)
                if not mask.any():
                    return calls
                smallest[g] = tables.rows[g].min(axis=0)
        return calls


def _descend(
    rows: list[FloatArray], start: list[int], model: Flows, best: FloatArray
) -> tuple[int, IntArray]:
    first = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    chosen = first[:-1] + np.array(start, dtype=np.int64)
    calls = descend(np.concatenate(rows), first, chosen, model, best)
    return calls, chosen - first[:-1]


def _are_equal(one: Picked, other: Picked) -> bool:
    """Are the same tilings picked, dimension by dimension?"""
    pairs = zip(one.values(), other.values(), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def _joined_constants(rows: list[FloatArray]) -> list[FloatArray]:
    """The tables, those of a single row multiplied into another: there is nothing to choose."""
    constant = np.prod([table[0] for table in rows if len(table) == 1], axis=0)
    many = [table for table in rows if len(table) > 1]
    if not many:
        return [np.reshape(constant, (1, -1)).copy()]
    return [many[0] * constant, *many[1:]]


def _combinations(options: Picked) -> Picked:
    """Every combination of the dimensions' options, one per row."""
    grids = np.meshgrid(*options.values(), indexing="ij")
    return {dim: grid.ravel() for dim, grid in zip(options, grids, strict=True)}


def _most(group: tuple[str, ...]) -> int:
    """Tilings of each dimension of the group: combinations grow with the number of dimensions."""
    return _SAMPLE_ALONE if len(group) == 1 else int(_SAMPLE ** (2 / len(group)))


def _sample(count: int, most: int) -> IntArray:
    """All of a few options, evenly spaced ones of many."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _chosen(rows: IntArray, picked: list[Picked]) -> dict[str, int]:
    """Which tiling of each dimension the chosen rows stand for."""
    return {
        dim: int(options[row])
        for row, one in zip(rows, picked, strict=True)
        for dim, options in one.items()
    }

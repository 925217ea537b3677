"""What orders of the same stages have in common: what volumes cost, and tables of factors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from mapper.search import pricing
from mapper.search.coefficients import Coefficients
from mapper.search.factors import (
    are_alike,
    block_factors,
    column_table,
    group_factors,
)
from mapper.search.fill import LEVEL
from mapper.search.flows import Flows, compacted, decisive, flows
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import StageOrder
from mapper.search.tilings import Tilings

#: dim -> the number of its tiling, one per row
Picked = dict[str, IntArray]

#: So many tilings of a dimension are first bounded in blocks.
_MANY = 500


@dataclass(frozen=True, eq=False, kw_only=True)
class Terms:
    """``whole`` are all terms of the cost and ``every`` their columns (stages by their numbers in
    ``StageOrder.listed``); ``flows`` and ``columns`` those that decide which mapping is best.

    ``deciding`` are the columns that none may be smaller in than what is dominated, ``kinds`` say
    what columns are, ``late_loads`` are the stages of which each visit takes time if it is waited
    for. ``twins`` are per group the first one that counts alike.
    """

    groups: tuple[tuple[str, ...], ...]
    whole: Flows
    every: IntArray
    flows: Flows
    columns: IntArray
    deciding: IntArray
    kinds: tuple[str, ...]
    late_loads: frozenset[int]
    twins: tuple[int, ...]
    _alone: dict[tuple[str, Tilings], FloatArray] = field(default_factory=dict)
    _blocks: dict[tuple[str, Tilings], FloatArray | None] = field(default_factory=dict)

    def alone(self, order: StageOrder, group: tuple[str, ...], dim: str) -> FloatArray:
        """What every tiling of a dimension contributes at least."""
        some = order.listed_tilings(dim)
        if (dim, some) not in self._alone:
            numbers = np.arange(len(some))
            self._alone[dim, some] = self.factors(order, group, {dim: numbers})
        return self._alone[dim, some]

    def blocks(self, order: StageOrder, group: tuple[str, ...], dim: str) -> FloatArray | None:
        """What blocks of many tilings contribute at least; ``None`` if there are few, or if the
        dimension is on an axis that others share, where there are no such bounds."""
        some = order.listed_tilings(dim)
        if len(some) < _MANY:
            return None
        if (dim, some) not in self._blocks:
            shape = order.shape(group, frozenset((dim,)))
            is_shared = len(group) > 1 or len(shape.axis_operand) > 0
            found = None if is_shared else block_factors(shape, self.columns, some.blocks)
            self._blocks[dim, some] = found
        return self._blocks[dim, some]

    def factors(
        self, order: StageOrder, group: tuple[str, ...], picked: Picked, *, every: bool = False
    ) -> FloatArray:
        """As ``StageOrder.factors``, of the columns that decide or of ``every`` one."""
        options = [(order.listed_tilings(d), picked[d]) if d in picked else None for d in group]
        columns = self.every if every else self.columns
        return group_factors(order.shape(group, frozenset(picked)), columns, options)


def terms(order: StageOrder, coefficients: Coefficients) -> Terms:
    """Of an order of stages and all others of the same stages."""
    model = coefficients.model(order)
    whole = flows(model)
    deciding = decisive(whole)
    columns, compact = compacted(whole, deciding)
    every = column_table(order.run, order.columns)
    number = {position: i for i, position in enumerate(order.listed)}
    every[:, LEVEL] = [number.get(position, -1) for position in every[:, LEVEL].tolist()]
    groups = order.run.counts.groups
    shapes = [order.shape(group, frozenset(group)) for group in groups]
    return Terms(
        groups=groups,
        whole=whole,
        every=every,
        flows=compact,
        columns=every[columns],
        deciding=np.searchsorted(columns, deciding),
        kinds=tuple(order.columns[c].kind for c in columns),
        late_loads=frozenset(
            stage for stage, row in enumerate(model.stages) if row[pricing.LATENCY_PS] > 0
        ),
        twins=tuple(
            next(h for h in range(g + 1) if h == g or are_alike(shapes[h], shapes[g]))
            for g in range(len(groups))
        ),
    )


def with_terms(
    orders: Iterable[StageOrder], coefficients: Coefficients
) -> Iterator[tuple[StageOrder, Terms]]:
    """Each order with its terms, which orders of the same stages share if they wait for the same
    ones; tables are shared by all that look at the same columns."""
    known: dict[tuple[int, frozenset[int], bool], tuple[StageOrder, Terms]] = {}
    tables: dict[tuple[int, bytes], Terms] = {}
    for order in orders:
        key = id(order.run), order.held, order.is_by_level
        if key not in known:
            made = terms(order, coefficients)
            first = tables.setdefault((id(order.run), made.columns.tobytes()), made)
            shared = replace(made, _alone=first._alone, _blocks=first._blocks)
            known[key] = order, shared
        yield order, known[key][1]

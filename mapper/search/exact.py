"""The optimal mapping of one operator: exhaustive over the mapspace, with sound pruning."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from arch.spec import Architecture, Memory
from mapper.cost import InfeasibleError, Price, PriceList
from mapper.hierarchy import Execution, execution
from mapper.mapping import Mapping
from mapper.search import kernel
from mapper.search.factors import Column
from mapper.search.kernel import FloatArray
from mapper.search.space import StageOrder, stage_orders
from mapper.search.tilings import IntArray
from mapper.search.tree import Tree, grow_tree
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator

OBJECTIVES = {"latency": kernel.LATENCY, "energy": kernel.ENERGY, "edp": kernel.EDP}


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
    prices = _Prices(run, architecture.leakage_w, price, OBJECTIVES[objective])
    problems = [_Problem(order, prices) for order in stage_orders(run)]
    best, winner, calls = _descend_all(problems, OBJECTIVES[objective])
    for problem in problems:
        more, chosen = problem.search(best)
        calls += more
        if chosen is not None:
            winner = (problem, chosen)
    if winner is None:
        raise _does_not_fit(run)
    problem, chosen = winner
    value = _value(best, OBJECTIVES[objective])
    return SearchResult(
        mapping=problem.order.mapping(chosen, made_by="exact"),
        calls=calls,
        optimal=True,
        objective_value=value,
        lower_bound=value,
    )


def _descend_all(
    problems: list[_Problem], objective: int
) -> tuple[FloatArray, tuple[_Problem, dict[str, int]] | None, int]:
    """Coordinate descent under every order of stages; sorts ``problems``, promising ones first.

    A good mapping found early lets the search drop almost everything else.
    """
    best = np.full(4, np.inf)
    winner = None
    calls = 0
    reached = {}
    for problem in problems:
        here = np.full(4, np.inf)
        more, chosen = problem.descend(here)
        calls += more
        reached[problem] = _value(here, objective)
        if chosen is not None and kernel.better(objective, here, best):
            best, winner = here, (problem, chosen)
    problems.sort(key=reached.__getitem__)
    return best, winner, calls


def _value(costs: FloatArray, objective: int) -> float:
    return float([costs[1], costs[2], costs[1] * costs[2]][objective])


@dataclass(frozen=True, slots=True)
class _Prices:
    """What the cost function needs to know beyond volumes."""

    run: Execution
    leakage_w: float
    price: PriceList
    objective: int

    def memory_index(self, memory: Memory) -> int:
        return self.run.memories.index(memory)

    def model(self, order: StageOrder) -> kernel.Model:
        at = {column: i for i, column in enumerate(order.columns)}
        compute = self.price(self.run.compute)
        axes = {axis.name: axis.size for axis in self.run.intrinsic.axes}
        return kernel.Model(
            stages=self._stages(order, at),
            datapaths=self._datapaths(order, at),
            memories=np.array([_memory_row(m, self.price(m)) for m in self.run.memories]),
            axis_columns=np.array(
                [at[Column("used", over=(axis,))] for axis in order.contended], dtype=np.int64
            ),
            axis_sizes=np.array([axes[axis] for axis in order.contended], dtype=np.float64),
            lanes=float(math.prod(axes[axis] for axis in order.contended)),
            steps_column=at[Column("steps")],
            lifted_steps_column=at[order.lifted(Column("steps"))],
            unit_revisits_column=at[Column("revisits", stage=-1)],
            step_ps=float(compute.step_ps),
            compute_pj=float(compute.operation_pj * self.run.operator.operations),
            leakage_w=float(self.leakage_w),
            objective=self.objective,
        )

    def _stages(self, order: StageOrder, at: dict[Column, int]) -> IntArray:
        run = self.run
        table = np.zeros((len(order.stages), kernel.STAGE_FIELDS), dtype=np.int64)
        for s, (operand, memory) in enumerate(order.stages):
            is_output = operand == run.output
            row = {
                kernel.PARENT: self.memory_index(order.parent(s)),
                kernel.CHILD: self.memory_index(memory),
                kernel.IS_OUTPUT: is_output,
                kernel.IS_INNERMOST: memory is run.paths[operand][-1],
                kernel.COL_PARENT: at[order.at_parent(s)],
                kernel.COL_CHILD: at[order.at_child(s)],
                kernel.COL_HELD: at[Column("held", operand, s, memory.replicated_over)],
                kernel.COL_VISITS: at[Column("visits", stage=s)],
                kernel.COL_REVISITS: at[order.revisits_below(s)] if is_output else 0,
                kernel.FINAL_BITS: run.bits[operand],
                kernel.PARTIAL_BITS: run.partial_bits,
                kernel.DOUBLE_BUFFERED: memory.double_buffered,
                kernel.OUTPUTS: run.counts.operands[operand].elements,
                kernel.IS_SHARED: not memory.replicated_over,
                kernel.LATENCY_PS: self._latency_ps(order, s),
                kernel.COL_FRESH: at[order.fresh(s)] if is_output else 0,
                kernel.COL_OWN_REVISITS: at[Column("revisits", stage=s)] if is_output else 0,
            }
            for field, value in row.items():
                table[s, field] = value
        return table

    def _latency_ps(self, order: StageOrder, stage: int) -> int:
        _, memory = order.stages[stage]
        return max(self.price(m).latency_ps for m in (memory, order.parent(stage)))

    def _datapaths(self, order: StageOrder, at: dict[Column, int]) -> IntArray:
        run = self.run
        table = np.zeros((len(run.paths), kernel.DATAPATH_FIELDS), dtype=np.int64)
        for operand, path in enumerate(run.paths):
            row = {
                kernel.MEMORY: self.memory_index(path[-1]),
                kernel.D_IS_OUTPUT: operand == run.output,
                kernel.COL_MOVED: at[order.at_datapath(operand)],
                kernel.COL_LIFTED: at[order.lifted(order.at_datapath(operand))],
                kernel.D_FINAL_BITS: run.bits[operand],
                kernel.D_PARTIAL_BITS: run.partial_bits,
                kernel.D_OUTPUTS: run.counts.operands[operand].elements,
            }
            for field, value in row.items():
                table[operand, field] = value
        return table


def _memory_row(memory: Memory, price: Price) -> list[float]:
    return [
        float(price.read_ps_per_bit),
        float(price.write_ps_per_bit),
        float(price.shared_port),
        price.read_pj_per_bit,
        price.write_pj_per_bit,
        float(memory.size_bytes * 8),
    ]


#: dim -> the number of its tiling, one per row
Picked = dict[str, IntArray]

#: Tilings per dimension that coordinate descent looks at; what it misses the search finds.
_SAMPLE = 48

#: Which dimensions are unrolled is decided first: until then all bounds are loose.
_SPLIT_FIRST = {"used": 1e3}


class _Problem:
    """One order of stages: its mapspace and what is still worth looking at."""

    def __init__(self, order: StageOrder, prices: _Prices) -> None:
        self.order = order
        self.model = prices.model(order)
        self.groups = prices.run.counts.groups

    def descend(self, best: FloatArray) -> tuple[int, dict[str, int] | None]:
        """Improve ``best`` by coordinate descent from the smallest tiles, on a sample."""
        picked = [
            _combinations({dim: _sample(len(self.order.tilings(dim))) for dim in group})
            for group in self.groups
        ]
        rows = self._factors(picked)
        held = [i for i, c in enumerate(self.order.columns) if c.kind == "held"]
        start = [int(np.argmin(table[:, held].sum(axis=1))) for table in rows]
        first = np.cumsum([0, *(len(table) for table in rows)], dtype=np.int64)
        begin = first[:-1] + np.array(start, dtype=np.int64)
        chosen = np.full(len(rows), -1, dtype=np.int64)
        calls = kernel.descend(np.concatenate(rows), first, begin, self.model, best, chosen)
        return calls, _chosen(chosen - first[:-1], picked) if chosen[0] >= 0 else None

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
        forest, root = _forest([grow_tree(table, weights) for table in rows])
        chosen = np.full(len(rows), -1, dtype=np.int64)
        calls += more + kernel.search(forest, root, self.model, best, chosen)
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
                mask = kernel.promising(table, others, self.model, best)
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


def _forest(trees: list[Tree]) -> tuple[Tree, IntArray]:
    """All trees as one (children renumbered) and the node number of each root."""
    root = np.cumsum([0, *(len(tree.row) for tree in trees[:-1])], dtype=np.int64)
    return Tree(
        smallest=np.concatenate([tree.smallest for tree in trees]),
        spread=np.concatenate([tree.spread for tree in trees]),
        left=np.concatenate([tree.left + at for tree, at in zip(trees, root, strict=True)]),
        right=np.concatenate([tree.right + at for tree, at in zip(trees, root, strict=True)]),
        row=np.concatenate([tree.row for tree in trees]),
    ), root


def _does_not_fit(run: Execution) -> InfeasibleError:
    """Which memory is too small even for one step's operands."""
    least: dict[str, int] = {}
    for operand, path in enumerate(run.paths):
        for memory in path[1:]:
            least[memory.name] = least.get(memory.name, 0) + run.bits[operand]
    worst = max(least, key=lambda name: least[name] / _size_bits(run, name))
    return InfeasibleError(
        limit=f"capacity of {worst} in bytes",
        needed=max(-(-least[worst] // 8), _size_bits(run, worst) // 8 + 1),
        allowed=_size_bits(run, worst) // 8,
        detail=f"no tiling of {run.operator.name} fits",
    )


def _size_bits(run: Execution, name: str) -> int:
    return next(m.size_bytes * 8 for m in run.memories if m.name == name)

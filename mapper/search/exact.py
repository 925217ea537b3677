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
from mapper.search.kernel import FloatArray
from mapper.search.space import Column, IntArray, StageOrder, stage_orders
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
    best = np.array([np.inf, np.inf])
    winner: tuple[_Problem, dict[str, int]] | None = None
    calls = 0
    for sweep in (_Problem.descend, _Problem.search):
        for problem in problems:
            more, chosen = sweep(problem, best)
            calls += more
            if chosen is not None:
                winner = (problem, chosen)
    if winner is None:
        raise _does_not_fit(run)
    problem, chosen = winner
    value = float([best[0], best[1], best[0] * best[1]][OBJECTIVES[objective]])
    return SearchResult(
        mapping=problem.order.mapping(chosen, made_by="exact"),
        calls=calls,
        optimal=True,
        objective_value=value,
        lower_bound=value,
    )


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
            }
            for field, value in row.items():
                table[s, field] = value
        return table

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


#: Which dimensions are unrolled is decided first: until then all bounds are loose.
_SPLIT_FIRST = {"used": 1e3}


class _Problem:
    """One order of stages: the rows still worth looking at, per group of dimensions."""

    def __init__(self, order: StageOrder, prices: _Prices) -> None:
        self.order = order
        self.model = prices.model(order)
        self.groups = prices.run.counts.groups
        tables = [order.group_table(group) for group in self.groups]
        self.rows: list[FloatArray] = [factors.astype(np.float64) for factors, _ in tables]
        self.choices = [choice for _, choice in tables]

    def descend(self, best: FloatArray) -> tuple[int, dict[str, int] | None]:
        """Improve ``best`` by coordinate descent from the smallest tiles."""
        held = [i for i, c in enumerate(self.order.columns) if c.kind == "held"]
        start = [int(np.argmin(rows[:, held].sum(axis=1))) for rows in self.rows]
        table, first = self._stacked()
        chosen = np.full(len(self.groups), -1, dtype=np.int64)
        begin = first[:-1] + np.array(start, dtype=np.int64)
        calls = kernel.descend(table, first, begin, self.model, best, chosen)
        return calls, self._picked(chosen, first)

    def search(self, best: FloatArray) -> tuple[int, dict[str, int] | None]:
        """Improve ``best`` to the optimum of this order of stages."""
        calls = self._filter(best)
        if any(len(rows) == 0 for rows in self.rows):
            return calls, None
        weights = np.array([_SPLIT_FIRST.get(c.kind, 1.0) for c in self.order.columns])
        trees = [kernel.grow_tree(rows, weights) for rows in self.rows]
        forest, root = _forest(trees)
        chosen = np.full(len(self.groups), -1, dtype=np.int64)
        calls += kernel.search(forest, root, self.model, best, chosen)
        return calls, self._picked(chosen, np.zeros(len(self.groups), dtype=np.int64))

    def _filter(self, best: FloatArray) -> int:
        """Drop rows that cannot be part of a better mapping, until nothing changes."""
        calls, changed = 0, True
        while changed and all(len(rows) for rows in self.rows):
            changed = False
            for g, rows in enumerate(self.rows):
                smallest = [r.min(axis=0) for h, r in enumerate(self.rows) if h != g]
                others = np.prod(np.array([*smallest, np.ones(rows.shape[1])]), axis=0)
                mask = kernel.promising(rows, others, self.model, best)
                calls += len(rows)
                if not mask.all():
                    self._keep(g, np.flatnonzero(mask))
                    changed = True
                    if not mask.any():
                        return calls
        return calls

    def _keep(self, group: int, rows: IntArray) -> None:
        self.rows[group] = np.ascontiguousarray(self.rows[group][rows])
        self.choices[group] = self.choices[group][rows]

    def _stacked(self) -> tuple[FloatArray, IntArray]:
        first = np.cumsum([0, *(len(rows) for rows in self.rows)], dtype=np.int64)
        return np.concatenate(self.rows), first

    def _picked(self, chosen: IntArray, first: IntArray) -> dict[str, int] | None:
        """Which tiling of each dimension was chosen; ``None`` if nothing was."""
        if chosen[0] < 0:
            return None
        return {
            dim: int(self.choices[g][chosen[g] - first[g], i])
            for g, group in enumerate(self.groups)
            for i, dim in enumerate(group)
        }


def _forest(trees: list[kernel.Tree]) -> tuple[kernel.Tree, IntArray]:
    """All trees as one (children renumbered) and the node number of each root."""
    root = np.cumsum([0, *(len(tree.row) for tree in trees[:-1])], dtype=np.int64)
    return kernel.Tree(
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

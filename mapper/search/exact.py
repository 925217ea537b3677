"""The optimal mapping of one operator: exhaustive over the mapspace, with sound pruning."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arch.spec import Architecture, Memory
from mapper.cost import InfeasibleError, Price, PriceList
from mapper.hierarchy import Execution, execution
from mapper.mapping import Mapping
from mapper.search import kernel
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
    model = _Model(run, architecture.leakage_w, price)
    problems = [_Problem(order, model) for order in stage_orders(run)]
    best = np.array([np.inf, np.inf])
    winner: tuple[_Problem, IntArray] | None = None
    calls = 0
    for sweep in (_Problem.descend, _Problem.search):
        for problem in problems:
            before = best.copy()
            more, chosen = sweep(problem, OBJECTIVES[objective], best)
            calls += more
            if not np.array_equal(before, best):
                winner = (problem, chosen)
    if winner is None:
        raise _does_not_fit(run)
    problem, chosen = winner
    value = float([best[0], best[1], best[0] * best[1]][OBJECTIVES[objective]])
    return SearchResult(
        mapping=problem.mapping(chosen),
        calls=calls,
        optimal=True,
        objective_value=value,
        lower_bound=value,
    )


class _Model:
    """The price list and the operator as the arrays that the kernel reads."""

    def __init__(self, run: Execution, leakage_w: float, price: PriceList) -> None:
        self.run = run
        self.memories = list(run.memories)
        self.memory_table = np.array([_memory_row(m, price(m)) for m in self.memories])
        compute = price(run.compute)
        self.prices = np.array(
            [
                float(compute.step_ps),
                compute.operation_pj * run.operator.operations,
                leakage_w,
            ]
        )
        self.axis_sizes = np.array([axis.size for axis in run.intrinsic.axes], dtype=np.int64)

    def memory_index(self, memory: Memory) -> int:
        return self.memories.index(memory)


def _memory_row(memory: Memory, price: Price) -> list[float]:
    return [
        float(price.read_ps_per_bit),
        float(price.write_ps_per_bit),
        float(price.shared_port),
        price.read_pj_per_bit,
        price.write_pj_per_bit,
        float(memory.size_bytes * 8),
    ]


class _Problem:
    """One order of stages, ready for the kernel."""

    def __init__(self, order: StageOrder, model: _Model) -> None:
        self.order = order
        self.model = model
        self._position = {column: i for i, column in enumerate(order.columns)}
        tables, self._choices = [], []
        groups = []
        for group in model.run.counts.groups:
            factors, choice = order.group_table(group)
            kept = _undominated(factors)
            tables.append(factors[kept])
            self._choices.append(choice[kept])
            groups.append(group)
        by_size = sorted(range(len(groups)), key=lambda g: (len(tables[g]), g))
        self._groups = [groups[g] for g in by_size]
        self._choices = [self._choices[g] for g in by_size]
        tables = [tables[g] for g in by_size]
        self.table = np.concatenate(tables)
        self.first = np.cumsum([0, *(len(t) for t in tables)], dtype=np.int64)
        self.smallest = _suffix_products([t.min(axis=0) for t in tables])
        extents = model.run.operator.extents
        self.remaining = _suffix_products(
            [np.array([math.prod(extents[d] for d in group)]) for group in self._groups]
        )[:, 0]
        self.stages = self._stage_table()
        self.datapaths = self._datapath_table()
        self.numbers = self._numbers()

    def descend(self, objective: int, best: NDArray[np.float64]) -> tuple[int, IntArray]:
        chosen = np.zeros(len(self._groups), dtype=np.int64)
        held = [self._position[c] for c in self._position if c.kind == "held"]
        start = np.array(
            [
                a + int(np.argmin(self.table[a:b, held].sum(axis=1)))
                for a, b in zip(self.first, self.first[1:], strict=False)
            ],
            dtype=np.int64,
        )
        calls = kernel.descend(
            self.table, self.first, start, *self._arrays(), objective, best, chosen
        )
        return calls, chosen

    def search(self, objective: int, best: NDArray[np.float64]) -> tuple[int, IntArray]:
        chosen = np.zeros(len(self._groups), dtype=np.int64)
        calls = kernel.search(
            self.table,
            self.first,
            self.smallest,
            self.remaining,
            *self._arrays(),
            objective,
            best,
            chosen,
        )
        return calls, chosen

    def mapping(self, chosen: IntArray) -> Mapping:
        picked: dict[str, tuple[IntArray, IntArray]] = {}
        for g, group in enumerate(self._groups):
            row = chosen[g] - self.first[g]
            for i, dim in enumerate(group):
                option = self.order.group_tilings(dim)
                at = self._choices[g][row, i]
                picked[dim] = (option.spatial[at], option.tiles[at])
        ordered = {dim: picked[dim] for dim in self.model.run.operator.extents}
        return self.order.mapping(ordered, made_by="exact")

    def _arrays(self) -> tuple[NDArray[np.generic], ...]:
        return (
            self.stages,
            self.datapaths,
            self.model.memory_table,
            self.model.axis_sizes,
            self.numbers,
            self.model.prices,
        )

    def _stage_table(self) -> IntArray:
        run, at = self.model.run, self._position
        table = np.zeros((len(self.order.stages), kernel.STAGE_FIELDS), dtype=np.int64)
        for s, (operand, memory) in enumerate(self.order.stages):
            is_output = operand == run.output
            row = {
                kernel.PARENT: self.model.memory_index(self.order.parent(s)),
                kernel.CHILD: self.model.memory_index(memory),
                kernel.IS_OUTPUT: is_output,
                kernel.IS_INNERMOST: memory is run.paths[operand][-1],
                kernel.COL_PARENT: at[self.order.at_parent(s)],
                kernel.COL_CHILD: at[self.order.at_child(s)],
                kernel.COL_HELD: at[Column("held", operand, s, memory.replicated_over)],
                kernel.COL_VISITS: at[Column("visits", stage=s)],
                kernel.COL_REVISITS: at[self.order.revisits_below(s)] if is_output else 0,
                kernel.FINAL_BITS: run.bits[operand],
                kernel.PARTIAL_BITS: run.partial_bits,
                kernel.DOUBLE_BUFFERED: memory.double_buffered,
                kernel.OUTPUTS: run.counts.operands[operand].elements,
            }
            for field, value in row.items():
                table[s, field] = value
        return table

    def _datapath_table(self) -> IntArray:
        run = self.model.run
        table = np.zeros((len(run.paths), kernel.DATAPATH_FIELDS), dtype=np.int64)
        for operand, path in enumerate(run.paths):
            table[operand, kernel.MEMORY] = self.model.memory_index(path[-1])
            table[operand, kernel.D_IS_OUTPUT] = operand == run.output
            table[operand, kernel.COL_MOVED] = self._position[self.order.at_datapath(operand)]
            table[operand, kernel.D_FINAL_BITS] = run.bits[operand]
            table[operand, kernel.D_PARTIAL_BITS] = run.partial_bits
            table[operand, kernel.D_OUTPUTS] = run.counts.operands[operand].elements
        return table

    def _numbers(self) -> IntArray:
        first_axis = self.model.run.intrinsic.axes[0].name
        return np.array(
            [
                self._position[Column("steps")],
                self._position[Column("revisits", stage=-1)],
                self._position[Column("used", over=(first_axis,))],
            ],
            dtype=np.int64,
        )


def _undominated(factors: IntArray) -> IntArray:
    order = np.argsort(factors.astype(np.float64).sum(axis=1), kind="stable")
    keep = kernel.undominated(np.ascontiguousarray(factors[order]))
    return np.sort(order[keep])


def _suffix_products(rows: list[IntArray]) -> IntArray:
    """``result[g]`` is the product of ``rows[g:]``; the last is all ones."""
    result = np.ones((len(rows) + 1, len(rows[0])), dtype=np.int64)
    for g in range(len(rows) - 1, -1, -1):
        result[g] = result[g + 1] * rows[g]
    return result


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

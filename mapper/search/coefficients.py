"""The coefficients of the compiled cost function, from an execution and a price list."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from arch.datatypes import Bits
from arch.spec import Memory
from mapper.cost import Price, PriceList
from mapper.hierarchy import Aside, Execution
from mapper.lower import aside_work
from mapper.program import Work
from mapper.search import pricing
from mapper.search.factors import Column
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import StageOrder


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """What the cost function needs to know beyond volumes; orders of stages have most of it in
    common."""

    run: Execution
    leakage_w: float
    price: PriceList
    objective: int

    def model(self, order: StageOrder) -> pricing.Model:
        at = {column: i for i, column in enumerate(order.columns)}
        run = self.run
        issue_ps, aside_ps = self._issue_ps
        ticks = math.lcm(issue_ps.denominator, aside_ps.denominator)
        compute = self._prices[run.compute.name]
        axes = {axis.name: axis.size for axis in self.run.intrinsic.axes}
        return pricing.Model(
            stages=self._stages(order, at),
            datapaths=self._datapaths(order, at),
            memories=self._memories,
            axis_columns=np.array(
                [at[Column("used", over=(axis,))] for axis in order.contended], dtype=np.int64
            ),
            axis_sizes=np.array([axes[axis] for axis in order.contended], dtype=np.float64),
            lanes=float(math.prod(axes[axis] for axis in order.contended)),
            steps_column=at[Column("steps")],
            lifted_steps_column=at[order.lifted(Column("steps"))],
            unit_revisits_column=at[Column("revisits", stage=-1)],
            step_ticks=float(issue_ps * ticks),
            aside_ticks=float(aside_ps * ticks),
            step_ticks_per_ps=float(ticks),
            compute_pj=self._compute_pj,
            least_ps=float(self._least_ps),
            leakage_w=float(self.leakage_w),
            objective=self.objective,
            fold_column=at[self._fold_column(order)],
            fold_ticks=float(compute.fold_ps * ticks),
        )

    def _fold_column(self, order: StageOrder) -> Column:
        """Visits of the innermost stage of the operand that stays in the unit.

        Any column if there is none: folds are free. Nothing is staged where all operands are at
        home in the memory that feeds the unit.
        """
        stages = [s for s, (o, _) in enumerate(order.stages) if o == self.run.stationary]
        return Column("visits", stage=max(stages, default=0)) if order.stages else Column("steps")

    @cached_property
    def _prices(self) -> Mapping[str, Price]:
        run = self.run
        components = (*run.memories, run.compute, *(aside.compute for aside in run.asides))
        return {component.name: self.price(component) for component in components}

    @cached_property
    def _memories(self) -> FloatArray:
        rows = (_memory_row(m, self._prices[m.name], self._parts) for m in self.run.memories)
        return np.array(list(rows))

    @cached_property
    def _compute_pj(self) -> float:
        run = self.run
        operations = run.operator.points * run.ops_per_point
        return float(self._prices[run.compute.name].operation_pj * operations) + sum(
            self._prices[aside.compute.name].energy_pj(work) for aside, work in self._asides()
        )

    @cached_property
    def _parts(self) -> int:
        """Traffic is counted in parts of a bit, so that it stays whole (see ``Price``)."""
        return math.lcm(*(bits.denominator for bits in (*self.run.bits, self.run.partial_bits)))

    def _asides(self) -> Iterator[tuple[Aside, Work]]:
        for aside in self.run.asides:
            yield aside, aside_work(aside, self.run.operator.extents)

    @cached_property
    def _issue_ps(self) -> tuple[Bits, Bits]:
        """Of the operator's own unit: time of a step, and time of side work done there."""
        name = self.run.compute.name
        step_ps = self._prices[name].step_ps
        aside = sum(work.steps for a, work in self._asides() if a.compute.name == name)
        return step_ps * self.run.issues_per_point, step_ps * aside

    @cached_property
    def _least_ps(self) -> int:
        """How long the busiest of the other units needs, whatever the mapping."""
        works: dict[str, Work] = {}
        for aside, work in self._asides():
            if aside.compute.name != self.run.compute.name:
                works[aside.compute.name] = works.get(aside.compute.name, Work()) + work
        busy = (self._prices[name].occupancy(work) for name, work in works.items())
        return max((ps for ports in busy for ps in ports.values()), default=0)

    def _final_bits(self, operand: int, memory: Memory) -> int:
        run = self.run
        bits = run.final_bits(memory) if operand == run.output else run.bits[operand]
        return int(bits * self._parts)

    def _stages(self, order: StageOrder, at: dict[Column, int]) -> IntArray:
        table = np.zeros((len(order.stages), pricing.STAGE_FIELDS), dtype=np.int64)
        for number, (row, s) in enumerate(zip(table, order.listed, strict=True)):
            operand, memory = order.stages[s]
            is_output = operand == order.run.output
            row[:] = self._stage(order.run, operand, memory.name, order.parent(s).name)
            row[pricing.IS_HELD] = number in order.held
            row[pricing.VISIT_PS] = self._visit_ps(order) if number in order.held else 0
            row[pricing.COL_PARENT] = at[order.at_parent(s)]
            row[pricing.COL_CHILD] = at[order.at_child(s)]
            row[pricing.COL_HELD] = at[Column("held", operand, s, memory.replicated_over)]
            row[pricing.COL_VISITS] = at[Column("visits", stage=s)]
            if is_output:
                row[pricing.COL_REVISITS] = at[order.revisits_below(s)]
                row[pricing.COL_FRESH] = at[order.fresh(s)]
                row[pricing.COL_OWN_REVISITS] = at[Column("revisits", stage=s)]
        return table

    def _visit_ps(self, order: StageOrder) -> int:
        """What a tile costs between mappings that cost the same: where tiles of elements stay while
        shared ones change, the array empties after each of these."""
        return 1 if order.is_by_level else max(1, self._prices[self.run.compute.name].latency_ps)

    @cached_property
    def _known_stages(self) -> dict[tuple[int, str, str, bool], IntArray]:
        return {}

    def _stage(self, run: Execution, operand: int, name: str, parent_name: str) -> IntArray:
        """The fields of a stage that are the same wherever it stands in the order."""
        is_innermost = name == run.paths[operand][-1].name
        key = operand, name, parent_name, is_innermost
        if key not in self._known_stages:
            child, parent = self._positions[name], self._positions[parent_name]
            memory = run.memories[child]
            row = {
                pricing.PARENT: parent,
                pricing.CHILD: child,
                pricing.IS_OUTPUT: int(operand == run.output),
                pricing.IS_INNERMOST: int(is_innermost),
                pricing.FINAL_BITS: self._final_bits(operand, memory),
                pricing.PARENT_FINAL_BITS: self._final_bits(operand, run.memories[parent]),
                pricing.PARTIAL_BITS: int(run.partial_bits * self._parts),
                pricing.DOUBLE_BUFFERED: int(memory.double_buffered),
                pricing.OUTPUTS: run.counts.operands[operand].elements,
                pricing.IS_SHARED: int(not memory.replicated_over),
                pricing.LATENCY_PS: self._prices[parent_name].latency_ps,
            }
            self._known_stages[key] = _table([row], pricing.STAGE_FIELDS)[0]
        return self._known_stages[key]

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return {memory.name: i for i, memory in enumerate(self.run.memories)}

    def _datapaths(self, order: StageOrder, at: dict[Column, int]) -> IntArray:
        run = order.run
        rows = []
        for operand, path in enumerate(run.paths):
            row = {
                pricing.MEMORY: self._positions[path[-1].name],
                pricing.D_IS_OUTPUT: int(operand == run.output),
                pricing.COL_MOVED: at[order.at_datapath(operand)],
                pricing.COL_LIFTED: at[order.lifted(order.at_datapath(operand))],
                pricing.D_FINAL_BITS: self._final_bits(operand, path[-1]),
                pricing.D_PARTIAL_BITS: int(run.partial_bits * self._parts),
                pricing.D_OUTPUTS: run.counts.operands[operand].elements,
            }
            rows.append(row)
        return _table(rows, pricing.DATAPATH_FIELDS)


def _table(rows: list[dict[int, int]], fields: int) -> IntArray:
    table = np.zeros((len(rows), fields), dtype=np.int64)
    for r, row in enumerate(rows):
        for field, value in row.items():
            table[r, field] = value
    return table


def _memory_row(memory: Memory, price: Price, parts: int) -> FloatArray:
    """Prices of traffic that is counted in ``parts`` of a bit."""
    ticks = math.lcm(price.read_ps_per_bit.denominator, price.write_ps_per_bit.denominator)
    row: Mapping[int, Fraction | float] = {
        pricing.READ_TICKS: price.read_ps_per_bit * ticks,
        pricing.WRITE_TICKS: price.write_ps_per_bit * ticks,
        pricing.TICKS_PER_PS: ticks * parts,
        pricing.SHARED_PORT: price.shared_port,
        pricing.READ_PJ: price.read_pj_per_bit / parts,
        pricing.WRITE_PJ: price.write_pj_per_bit / parts,
        pricing.CAPACITY_BITS: memory.size_bytes * 8 * parts,
    }
    values = np.zeros(pricing.MEMORY_FIELDS)
    for field, value in row.items():
        values[field] = float(value)
    return values

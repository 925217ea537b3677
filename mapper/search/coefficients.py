"""The coefficients of the compiled cost function, from an execution and a price list."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from arch.spec import Memory
from mapper.cost import Price, PriceList
from mapper.hierarchy import Execution
from mapper.search import pricing
from mapper.search.factors import Column
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import StageOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """What the cost function needs to know beyond volumes."""

    run: Execution
    leakage_w: float
    price: PriceList
    objective: int

    def model(self, order: StageOrder) -> pricing.Model:
        at = {column: i for i, column in enumerate(order.columns)}
        compute = self.price(self.run.compute)
        axes = {axis.name: axis.size for axis in self.run.intrinsic.axes}
        return pricing.Model(
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
        rows = []
        for s, (operand, memory) in enumerate(order.stages):
            is_output = operand == run.output
            row = {
                pricing.PARENT: self._position(order.parent(s)),
                pricing.CHILD: self._position(memory),
                pricing.IS_OUTPUT: int(is_output),
                pricing.IS_INNERMOST: int(memory is run.paths[operand][-1]),
                pricing.COL_PARENT: at[order.at_parent(s)],
                pricing.COL_CHILD: at[order.at_child(s)],
                pricing.COL_HELD: at[Column("held", operand, s, memory.replicated_over)],
                pricing.COL_VISITS: at[Column("visits", stage=s)],
                pricing.COL_REVISITS: at[order.revisits_below(s)] if is_output else 0,
                pricing.FINAL_BITS: run.bits[operand],
                pricing.PARTIAL_BITS: run.partial_bits,
                pricing.DOUBLE_BUFFERED: int(memory.double_buffered),
                pricing.OUTPUTS: run.counts.operands[operand].elements,
                pricing.IS_SHARED: int(not memory.replicated_over),
                pricing.LATENCY_PS: self._latency_ps(order, s),
                pricing.COL_FRESH: at[order.fresh(s)] if is_output else 0,
                pricing.COL_OWN_REVISITS: at[Column("revisits", stage=s)] if is_output else 0,
            }
            rows.append(row)
        return _table(rows, pricing.STAGE_FIELDS)

    def _position(self, memory: Memory) -> int:
        return self.run.memories.index(memory)

    def _latency_ps(self, order: StageOrder, stage: int) -> int:
        _, memory = order.stages[stage]
        return max(self.price(m).latency_ps for m in (memory, order.parent(stage)))

    def _datapaths(self, order: StageOrder, at: dict[Column, int]) -> IntArray:
        run = self.run
        rows = []
        for operand, path in enumerate(run.paths):
            row = {
                pricing.MEMORY: self._position(path[-1]),
                pricing.D_IS_OUTPUT: int(operand == run.output),
                pricing.COL_MOVED: at[order.at_datapath(operand)],
                pricing.COL_LIFTED: at[order.lifted(order.at_datapath(operand))],
                pricing.D_FINAL_BITS: run.bits[operand],
                pricing.D_PARTIAL_BITS: run.partial_bits,
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


def _memory_row(memory: Memory, price: Price) -> FloatArray:
    ticks = math.lcm(price.read_ps_per_bit.denominator, price.write_ps_per_bit.denominator)
    row: Mapping[int, Fraction | float] = {
        pricing.READ_TICKS: price.read_ps_per_bit * ticks,
        pricing.WRITE_TICKS: price.write_ps_per_bit * ticks,
        pricing.TICKS_PER_PS: ticks,
        pricing.SHARED_PORT: price.shared_port,
        pricing.READ_PJ: price.read_pj_per_bit,
        pricing.WRITE_PJ: price.write_pj_per_bit,
        pricing.CAPACITY_BITS: memory.size_bytes * 8,
    }
    values = np.zeros(pricing.MEMORY_FIELDS)
    for field, value in row.items():
        values[field] = float(value)
    return values

"""From the search's tables and coefficients to the sums of a batch model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from arch.spec import Compute, Memory
from mapper.batch import BatchModel, Limit, Traffic
from mapper.search import pricing
from mapper.search.pricing import FloatArray, IntArray, Model
from mapper.search.space import StageOrder
from mapper.sums import Array, Product, Sum, Terms, times


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Where batches are priced: ``module`` is numpy or torch, ``place`` puts an array there."""

    module: ModuleType
    place: Callable[[Array], Array]


def _as_it_is(array: Array) -> Array:
    return array


#: Batches on the CPU, without torch.
NUMPY = Backend(module=np, place=_as_it_is)


def torch_backend(device: str) -> Backend:
    """Batches on a device of torch: ``cpu``, ``cuda``."""
    import torch

    def place(array: Array) -> Array:
        return torch.as_tensor(array, device=device)

    return Backend(module=torch, place=place)


def batch_model(
    order: StageOrder, model: Model, tables: Sequence[FloatArray], backend: Backend = NUMPY
) -> BatchModel:
    """Prices combinations of rows of ``tables`` (one per group, columns as in ``order``)."""
    run = order.run
    volumes = _Volumes(model, tables)
    limits = (*_axis_limits(order, volumes), *_capacity_limits(order, volumes))
    dtype = np.int8 if len(limits) < 8 else np.int64

    def placed(total: Sum) -> Sum:
        return total.placed(backend.place)

    return BatchModel(
        xp=backend.module,
        memories=tuple(
            _traffic(model.memories[m], placed(read), placed(written))
            for m, (read, written) in enumerate(volumes.traffic(len(run.memories)))
        ),
        waits_ps=tuple(placed(wait) for wait in volumes.waits()),
        floor_ps=max(volumes.round_trip_ps(), volumes.model.least_ps),
        compute_pj=model.compute_pj,
        leakage_w=model.leakage_w,
        limits=tuple(Limit(n, placed(needed), allowed) for n, needed, allowed in limits),
        bits=backend.place(np.array([1 << i for i in range(len(limits))], dtype=dtype)),
    )


def _axis_limits(order: StageOrder, volumes: _Volumes) -> list[tuple[str, Sum, float]]:
    model, unit = volumes.model, order.run.compute
    return [
        (axis_limit(axis, unit), volumes.alone(int(column)), float(size))
        for axis, column, size in zip(
            order.contended, model.axis_columns, model.axis_sizes, strict=True
        )
    ]


def _capacity_limits(order: StageOrder, volumes: _Volumes) -> list[tuple[str, Sum, float]]:
    """Of the memories in the order in which stages fill them."""
    memories = order.run.memories
    names = [memory.name for memory in memories]
    filled = list(dict.fromkeys(names.index(memory.name) for _, memory in order.stages))
    return [
        (
            capacity_limit(memories[m]),
            volumes.held(m),
            float(volumes.model.memories[m, pricing.CAPACITY_BITS]),
        )
        for m in filled
    ]


def axis_limit(axis: str, unit: Compute) -> str:
    """As legality names it."""
    return f"axis {axis} of {unit.name}"


def capacity_limit(memory: Memory) -> str:
    """As legality names it."""
    return f"capacity of {memory.name} in bytes"


def _traffic(memory: FloatArray, read: Sum, written: Sum) -> Traffic:
    return Traffic(
        read=read,
        written=written,
        read_pj=float(memory[pricing.READ_PJ]),
        write_pj=float(memory[pricing.WRITE_PJ]),
        read_ticks=float(memory[pricing.READ_TICKS]),
        write_ticks=float(memory[pricing.WRITE_TICKS]),
        ticks_per_ps=float(memory[pricing.TICKS_PER_PS]),
        shared_port=bool(memory[pricing.SHARED_PORT]),
    )


class _Volumes:
    """The cost function's sums; see ``pricing.cost`` for what they mean."""

    def __init__(self, model: Model, tables: Sequence[FloatArray]) -> None:
        self.model = model
        self._columns = [
            tuple(np.ascontiguousarray(table[:, c]) for table in tables)
            for c in range(tables[0].shape[1])
        ]

    def alone(self, column: int) -> Sum:
        terms = Terms()
        terms.add(1.0, self._columns[column])
        return terms.sum()

    def _never(self, column: int) -> Product:
        """1 for mappings whose count in the column is 1, otherwise 0."""
        return tuple((entries == 1.0).astype(np.float64) for entries in self._columns[column])

    def traffic(self, memories: int) -> list[tuple[Sum, Sum]]:
        """Bits read and written, per memory."""
        read = [Terms() for _ in range(memories)]
        written = [Terms() for _ in range(memories)]
        for stage in self.model.stages:
            add = self._add_output if stage[pricing.IS_OUTPUT] else self._add_input
            add(stage, read, written)
        for path in self.model.datapaths:
            self._add_datapath(path, read, written)
        return [(r.sum(), w.sum()) for r, w in zip(read, written, strict=True)]

    def _add_input(self, stage: IntArray, read: list[Terms], written: list[Terms]) -> None:
        bits = float(stage[pricing.FINAL_BITS])
        read[stage[pricing.PARENT]].add(bits, self._columns[stage[pricing.COL_PARENT]])
        written[stage[pricing.CHILD]].add(bits, self._columns[stage[pricing.COL_CHILD]])

    def _add_output(self, stage: IntArray, read: list[Terms], written: list[Terms]) -> None:
        parent, child = stage[pricing.PARENT], stage[pricing.CHILD]
        at_parent = self._columns[stage[pricing.COL_PARENT]]
        at_child = self._columns[stage[pricing.COL_CHILD]]
        final, partial = float(stage[pricing.FINAL_BITS]), float(stage[pricing.PARTIAL_BITS])
        outputs = float(stage[pricing.OUTPUTS])
        for terms in (read[parent], written[child], written[parent]):
            terms.add(partial, at_parent)
            terms.add_constant(-outputs * partial)
        written[parent].add_constant(outputs * float(stage[pricing.PARENT_FINAL_BITS]))
        read[child].add(partial, at_child)
        if stage[pricing.IS_INNERMOST]:
            never = self._never(stage[pricing.COL_REVISITS])
            read[child].add(final - partial, times(at_child, never))
        else:
            read[child].add_constant(outputs * (final - partial))

    def _add_datapath(self, path: IntArray, read: list[Terms], written: list[Terms]) -> None:
        memory, final = path[pricing.MEMORY], float(path[pricing.D_FINAL_BITS])
        moved = self._columns[path[pricing.COL_MOVED]]
        if not path[pricing.D_IS_OUTPUT]:
            read[memory].add(final, moved)
            return
        partial, outputs = float(path[pricing.D_PARTIAL_BITS]), float(path[pricing.D_OUTPUTS])
        never = self._never(self.model.unit_revisits_column)
        for terms in (read[memory], written[memory]):
            terms.add(partial, moved)
            terms.add(final - partial, times(moved, never))
        read[memory].add_constant(-outputs * partial)
        read[memory].add(outputs * (partial - final), never)

    def held(self, memory: int) -> Sum:
        """Bits that one instance must have room for."""
        terms = Terms()
        for stage in self.model.stages:
            if stage[pricing.CHILD] == memory:
                self._add_held(terms, stage)
        return terms.sum()

    def _add_held(self, terms: Terms, stage: IntArray) -> None:
        """Twice a tile unless it is the only one, and as wide as what arrives at it."""
        held = self._columns[stage[pricing.COL_HELD]]
        final, partial = float(stage[pricing.FINAL_BITS]), float(stage[pricing.PARTIAL_BITS])
        widths = [(final, held)]
        if stage[pricing.IS_OUTPUT]:
            never = self._never(stage[pricing.COL_REVISITS])
            widths = [(partial, held), (final - partial, times(held, never))]
        for bits, elements in widths:
            if stage[pricing.DOUBLE_BUFFERED]:
                only = self._never(stage[pricing.COL_VISITS])
                terms.add(2 * bits, elements)
                terms.add(-bits, times(elements, only))
            else:
                terms.add(bits, elements)

    def waits(self) -> list[Sum]:
        """Time of the compute unit's steps, and of each shared buffer's round trips."""
        steps = Terms()
        model = self.model
        step_ps = model.step_ticks / model.step_ticks_per_ps
        steps.add(step_ps, self._columns[model.steps_column])
        if model.fold_ticks:
            fold_ps = model.fold_ticks / model.step_ticks_per_ps
            steps.add(fold_ps, self._columns[model.fold_column])
        if model.aside_ticks:
            steps.add_constant(model.aside_ticks / model.step_ticks_per_ps)
        found = [steps.sum()]
        for stage in self.model.stages:
            latency = _per_slot_ps(stage)
            if stage[pricing.IS_HELD] and latency:
                found.append(self._round_trips(stage, latency))
        return found

    def _round_trips(self, stage: IntArray, latency_ps: float) -> Sum:
        terms = Terms()
        if stage[pricing.IS_OUTPUT]:
            fresh = self._columns[stage[pricing.COL_FRESH]]
            visits = self._columns[stage[pricing.COL_OWN_REVISITS]]
            terms.add(latency_ps, times(fresh, visits))
            terms.add(-latency_ps, fresh)
        else:
            terms.add(latency_ps, self._columns[stage[pricing.COL_VISITS]])
        return terms.sum()

    def round_trip_ps(self) -> float:
        """The longest single load: what a buffer waits that gets one tile only."""
        return max(
            (
                float(stage[pricing.LATENCY_PS])
                for stage in self.model.stages
                if stage[pricing.IS_HELD] and not stage[pricing.IS_OUTPUT]
            ),
            default=0.0,
        )


def _per_slot_ps(stage: IntArray) -> float:
    """A second slot halves the wait (of several tiles; a single one waits all of it)."""
    slots = 2 if stage[pricing.DOUBLE_BUFFERED] else 1
    return float(stage[pricing.LATENCY_PS]) / slots


def combinations(tables: Sequence[FloatArray]) -> int:
    """How many mappings the tables hold."""
    return math.prod(len(table) for table in tables)

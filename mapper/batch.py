"""Many mappings of one operator on one architecture, priced at once.

The same cost as ``mapper.search.pricing.cost`` (the analytical model), as array code: written
once, it runs on numpy and torch, on CPU and GPU. All mappings of a batch have one order of
stages; each is given by one row of every group's table (see ``mapper.search.space``).

Rows are arrays of indices, one array per group, that broadcast against each other: arrays of
the same shape are mappings drawn independently; shapes ``(n, 1)`` and ``(1, m)`` are all
``n * m`` combinations, for which what depends on one group alone is looked up only once.

Volumes and times are integers in 64-bit floats, exact below 2**53 (``BatchModel.exact`` says
whether all are). The choices that the cost makes are turned into sums as well: a width is
``partial`` unless nothing is revisited, and "nothing is revisited" is a product over groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from mapper.sums import EXACT, Array, Column, Sum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchCost:
    """One entry per mapping.

    Bit ``i`` of ``broken`` is set if the mapping breaks limit ``i`` of ``BatchModel.limits``: 0 is
    a mapping that the hardware can run, and the costs of any other mean nothing. Latency is an
    integer, equal to the scalar model's. Energy is a sum over components which the scalar model
    rounds once; here each addition rounds, so that it differs by at most 2**-53 of it for each
    component.
    """

    latency_ps: Array
    energy_pj: Array
    broken: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traffic:
    """A memory's traffic in bits, what a bit costs, and how long it takes."""

    read: Sum
    written: Sum
    read_pj: float
    write_pj: float
    read_ticks: float
    write_ticks: float
    ticks_per_ps: float
    shared_port: bool


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """What a mapping needs must not be more than is allowed."""

    name: str
    needed: Sum
    allowed: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchModel:
    """The cost of mappings with one order of stages (made by ``mapper.batch_model``).

    ``waits_ps`` and ``floor_ps`` are times that an operator takes at least: steps of the compute
    unit and round trips. ``bits[i]`` is bit ``i`` of ``BatchCost.broken``. ``xp`` is numpy or
    torch, and all entries of sums are arrays of it.
    """

    xp: ModuleType
    memories: tuple[Traffic, ...]
    waits_ps: tuple[Sum, ...]
    floor_ps: float
    compute_pj: float
    leakage_w: float
    limits: tuple[Limit, ...]
    bits: Array

    @property
    def exact(self) -> bool:
        """Are volumes and times of all mappings integers below 2**53?"""
        most = [wait.most for wait in self.waits_ps]
        most += [limit.needed.most for limit in self.limits]
        for memory in self.memories:
            read, written = memory.read.most, memory.written.most
            most += [read, written, read * memory.read_ticks + written * memory.write_ticks]
        return max(most) < EXACT

    def costs(self, rows: Sequence[Array]) -> BatchCost:
        """Prices the mappings given by one row of each group; the arrays are broadcast."""

        def look_up(column: Column) -> Array:
            return self.xp.take(column.entries, rows[column.group])

        shape = self.xp.broadcast_shapes(*(tuple(each.shape) for each in rows))

        def whole(values: Array, dtype: str) -> Array:
            if isinstance(values, float):
                values = self.xp.full_like(rows[0], values, dtype=getattr(self.xp, dtype))
            return self.xp.broadcast_to(values, shape)

        latency, energy = self._time_and_energy(look_up)
        return BatchCost(
            latency_ps=whole(latency, "float64"),
            energy_pj=whole(energy, "float64"),
            broken=whole(self._broken(look_up), "int8"),
        )

    def _time_and_energy(self, look_up: Callable[[Column], Array]) -> tuple[Array, Array]:
        ps: Array = self.floor_ps
        pj: Array = self.compute_pj
        for wait in self.waits_ps:
            ps = self._larger(ps, wait.value(look_up))
        for memory in self.memories:
            read, written = memory.read.value(look_up), memory.written.value(look_up)
            ps = self._larger(ps, self._busy_ps(memory, read, written))
            pj = pj + (_scaled(read, memory.read_pj) + _scaled(written, memory.write_pj))
        ps = float(np.ceil(ps)) if isinstance(ps, float) else self.xp.ceil(ps)
        return ps, pj + _scaled(ps, self.leakage_w)

    def _busy_ps(self, memory: Traffic, read: Array, written: Array) -> Array:
        reading, writing = _scaled(read, memory.read_ticks), _scaled(written, memory.write_ticks)
        ticks = reading + writing if memory.shared_port else self._larger(reading, writing)
        return ticks if memory.ticks_per_ps == 1.0 else ticks / memory.ticks_per_ps

    def _larger(self, a: Array, b: Array) -> Array:
        """The larger of two numbers that are not negative, each an array or a float."""
        if isinstance(a, float):
            a, b = b, a
        if isinstance(a, float):
            return max(a, b)
        if isinstance(b, float):
            return a if b == 0.0 else a.clip(min=b)
        return self.xp.maximum(a, b)

    def _broken(self, look_up: Callable[[Column], Array]) -> Array:
        broken: Array = 0.0
        for number, limit in enumerate(self.limits):
            exceeded = limit.needed.value(look_up) > limit.allowed
            bit = exceeded * self.bits[number]
            broken = bit if isinstance(broken, float) else broken | bit
        return broken


def best_of(costs: BatchCost, objective: str, xp: ModuleType) -> Array:
    """Index (of the flattened batch) of the best mapping that breaks no limit, if there is one."""
    value = costs.energy_pj if objective == "energy" else costs.latency_ps
    if objective == "edp":
        value = value * costs.energy_pj
    return xp.argmin(xp.where(costs.broken == 0, value, float("inf")))


def _scaled(value: Array, factor: float) -> Array:
    """``value * factor`` without useless work."""
    if factor == 1.0:
        return value
    return value * factor if factor else 0.0

"""Small changes of a mapping, each to a near one of the same mapspace.

Tilings are numbered; what makes two of them near is the ratio of their tiles and of their
spatial factors. A step names what shall grow or shrink (a tile at a stage, the unrolling over an
axis) and leads to the nearest tiling for which it does. After a step, others make room again
or use the room that is left: memories are worth filling, so one dimension grows at the expense
of another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mapper.search.candidates import Candidate
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import StageOrder


@dataclass(frozen=True, slots=True)
class Resize:
    """The tile of a dimension at a stage becomes larger (``sign`` 1) or smaller (-1)."""

    dim: int
    stage: int
    sign: int


@dataclass(frozen=True, slots=True)
class Unroll:
    """A dimension is unrolled more (``sign`` 1) or less (-1) over the axis of that number."""

    dim: int
    axis: int
    sign: int


Step = Resize | Unroll
Option = TypeVar("Option")

#: Steps that make room again after one that needs too much.
_REPAIRS = 8
#: How often what room is left is used for something.
_REFILL = 0.7
#: How often the nearest tiling is taken; else the next, or with this chance the one after it.
_NEAREST = 0.6
#: Tilings that a step may lead to.
_FAR = 32
#: How often the order of the stages changes instead of a tiling.
_REORDER = 0.15


class Moves:
    """All moves in a mapspace. ``fits`` says whether memories and axes are large enough."""

    def __init__(self, orders: Sequence[StageOrder], fits: Callable[[Candidate], bool]) -> None:
        self.orders = orders
        self.dims = tuple(orders[0].run.operator.extents)
        self._fits = fits
        self._number = {order.stages: i for i, order in enumerate(orders)}
        self._logs: dict[int, FloatArray] = {}
        self.steps = tuple(self._all_steps())
        self._signed = {sign: [s for s in self.steps if s.sign == sign] for sign in (1, -1)}
        self._ways: dict[tuple[int, int, Step], IntArray] = {}
        self._reorderings: dict[int, list[int]] = {}
        self._places: dict[tuple[int, int], list[int]] = {}
        self._nearest: dict[tuple[int, int, int, int], int] = {}

    def _all_steps(self) -> list[Step]:
        operator, axes = self.orders[0].run.operator, self.orders[0].run.intrinsic.axes
        stages = max(len(order.stages) for order in self.orders)
        found: list[Step] = []
        for dim, extent in enumerate(operator.extents.values()):
            if extent > 1:
                signs = (1, -1)
                found += [Resize(dim, stage, sign) for stage in range(stages) for sign in signs]
                found += [Unroll(dim, axis, sign) for axis in range(len(axes)) for sign in signs]
        return found

    def near(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """A random near candidate that fits, if the move that is drawn leads to one."""
        others = self.reorderings(candidate.order)
        if others and rng.random() < _REORDER:
            return self.repaired(self.reordered(candidate, _pick(others, rng)), rng)
        return self.taken(candidate, _pick(self.steps, rng), rng)

    def taken(self, candidate: Candidate, step: Step, rng: np.random.Generator) -> Candidate | None:
        """Where a step leads with what makes room for it, and with what uses the room left."""
        moved = self.stepped(candidate, step, _skip(rng))
        if moved is None:
            return None
        moved = self.repaired(moved, rng)
        if moved is None or rng.random() > _REFILL:
            return moved
        return self.refilled(moved, rng)

    def repaired(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """Shrunk until it fits; nothing if that takes too many steps."""
        for _ in range(_REPAIRS):
            if self._fits(candidate):
                return candidate
            shrunk = self.stepped(candidate, _pick(self._signed[-1], rng), _skip(rng))
            candidate = shrunk or candidate
        return candidate if self._fits(candidate) else None

    def refilled(self, candidate: Candidate, rng: np.random.Generator) -> Candidate:
        """With something grown by a step, if anything drawn in some attempts still fits."""
        for _ in range(_REPAIRS):
            grown = self.stepped(candidate, _pick(self._signed[1], rng), _skip(rng))
            if grown is not None and self._fits(grown):
                return grown
        return candidate

    def stepped(self, candidate: Candidate, step: Step, skip: int = 0) -> Candidate | None:
        """The nearest candidate for which the step is true, or the next but ``skip``."""
        order = self.orders[candidate.order]
        if isinstance(step, Resize) and step.stage >= len(order.stages):
            return None
        row = candidate.rows[step.dim]
        key = id(order.tilings(self.dims[step.dim])), row, step
        if key not in self._ways:
            self._ways[key] = self._led_to(order, row, step)
        found = self._ways[key]
        if len(found) == 0:
            return None
        return with_row(candidate, step.dim, int(found[min(skip, len(found) - 1)]))

    def _led_to(self, order: StageOrder, row: int, step: Step) -> IntArray:
        """Tilings for which the step is true, the nearest first."""
        table = order.tilings(self.dims[step.dim])
        if isinstance(step, Resize):
            change = table.tiles[:, step.stage] - table.tiles[row, step.stage]
            able = (step.sign * change > 0) & (table.spatial == table.spatial[row]).all(axis=1)
        else:
            changes = table.spatial - table.spatial[row]
            others = np.arange(changes.shape[1]) != step.axis
            able = (step.sign * changes[:, step.axis] > 0) & (changes[:, others] == 0).all(axis=1)
        rows = np.flatnonzero(able)
        logs = self._logs_of(order, step.dim)
        distance = np.abs(logs[rows] - logs[row]).sum(axis=1)
        return np.asarray(rows[np.argsort(distance, kind="stable")[:_FAR]], dtype=np.int64)

    def _logs_of(self, order: StageOrder, dim: int) -> FloatArray:
        """Logarithms of the tiles and spatial factors of each tiling."""
        table = order.tilings(self.dims[dim])
        if id(table) not in self._logs:
            self._logs[id(table)] = np.log2(np.concatenate([table.tiles, table.spatial], axis=1))
        return self._logs[id(table)]

    def reordered(self, candidate: Candidate, order: int) -> Candidate:
        """Under another order of the stages, each tile as it was or as near as can be."""
        at = candidate.order
        return Candidate(
            order, tuple(self._like(at, order, dim, row) for dim, row in enumerate(candidate.rows))
        )

    def _like(self, at: int, order: int, dim: int, row: int) -> int:
        """The tiling under another order that is nearest to this one."""
        key = at, order, dim, row
        if key not in self._nearest:
            old, new = self.orders[at], self.orders[order]
            if (at, order) not in self._places:
                self._places[at, order] = [old.stages.index(stage) for stage in new.stages]
            before = self._logs_of(old, dim)[row]
            wanted = np.concatenate([before[self._places[at, order]], before[len(old.stages) :]])
            distance = np.abs(self._logs_of(new, dim) - wanted).sum(axis=1)
            self._nearest[key] = int(np.argmin(distance))
        return self._nearest[key]

    def reorderings(self, order: int) -> list[int]:
        """Orders in which two stages that follow each other have changed places."""
        if order not in self._reorderings:
            stages = self.orders[order].stages
            swapped = (
                (*stages[:i], stages[i + 1], stages[i], *stages[i + 2 :])
                for i in range(len(stages) - 1)
            )
            known = self._number
            self._reorderings[order] = [known[each] for each in swapped if each in known]
        return self._reorderings[order]


def with_row(candidate: Candidate, dim: int, row: int) -> Candidate:
    """With another tiling of one dimension."""
    return Candidate(candidate.order, (*candidate.rows[:dim], row, *candidate.rows[dim + 1 :]))


def _pick(options: Sequence[Option], rng: np.random.Generator) -> Option:
    return options[int(rng.integers(len(options)))]


def _skip(rng: np.random.Generator) -> int:
    return int(rng.geometric(_NEAREST)) - 1

"""The best plan of a workload: groups to fuse, tensors to keep on the chip, mappings.

A dynamic program over the operators in the order that keeps the fewest bytes live. A label is a
way to run the operators so far; labels that leave the same tensors on the chip compete. For
latency or energy the better one stays, for their product all that no other beats in both, less
those that cannot end below the best known plan; where more than ``MOST_LABELS`` are left, evenly
spread ones are followed, and what the others could lead to at best is kept (``Thinned``). The plan
that fuses and keeps nothing is one of the ways, so the result is never worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from mapper.cost import InfeasibleError
from mapper.order import Order, best_order, reordered
from mapper.placement import shared_memory, tensor_bits
from mapper.plan import Plan, Unit
from mapper.search.groups import GroupSearch, Walked, WalkKey
from mapper.search.least import least
from mapper.search.units import Cost, Mapped, Setting
from mapper.workload.graph import Workload

#: Labels per position and set of tensors on the chip, for products; more are thinned out.
MOST_LABELS = 64
#: Tensors at home on the chip at once.
MOST_KEPT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``longest`` is how many operators a group may have; ``keep`` lets tensors stay on the
    chip between units. Units have at least ``least_tiles`` tiles where they can (for several
    cores, which overlap units tile by tile)."""

    longest: int = 5
    keep: bool = True
    least_tiles: int = 1

    @property
    def wants_tiles(self) -> bool:
        """Whether tiles are wanted for their own sake, even where the plan costs more."""
        return self.least_tiles > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinned:
    """Ways that were left out because there were too many, and the objective that none of them
    could end below."""

    ways: int
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The best plan found; ``unfused`` is what the plain one costs, ``bound`` what none beats;
    ``thinned`` are the ways to cut and to keep that were not followed to the end."""

    plan: Plan
    order: Order
    cost: Cost
    unfused: Cost
    bound: Cost
    objective: str
    calls: int
    bytes_saved: int
    thinned: Thinned

    @property
    def cut_gap(self) -> float:
        """How far the plan can be from the best way to cut and to keep, given each unit's plan."""
        value = self.cost.value(self.objective)
        return max(0.0, value / self.thinned.bound - 1) if self.thinned.ways else 0.0

    @property
    def lower_bound(self) -> float:
        return self.bound.value(self.objective)

    @property
    def gap(self) -> float:
        """How far the plan can be from the best one of any kind, relative to the bound."""
        low = self.lower_bound
        return self.cost.value(self.objective) / low - 1 if low else 0.0


@dataclass(frozen=True, slots=True)
class _Label:
    """A way to run the first operators: its cost, the last unit and the way before it."""

    cost: Cost
    unit: Unit | None
    kept: str | None
    before: _Label | None

    def way(self) -> list[_Label]:
        """This label and those before it, first to last, without the start."""
        labels: list[_Label] = []
        label: _Label | None = self
        while label is not None and label.before is not None:
            labels.append(label)
            label = label.before
        return labels[::-1]


Kept = frozenset[str]
Item = TypeVar("Item")


def best_schedule(setting: Setting, options: Options | None = None) -> Schedule:
    """Raises ``InfeasibleError`` for the first operator that the hardware cannot run."""
    return Schedules(setting).best(options or Options())


class Schedules:
    """Schedules of one workload under different options. What they share (the order, mappings,
    tiles of groups, the bound) is found once; ``setting`` has the workload in that order."""

    def __init__(self, setting: Setting) -> None:
        self.order = best_order(setting.workload)
        self.setting = replace(setting, workload=reordered(setting.workload, self.order.operators))
        self.mapped = Mapped(self.setting)
        self.memory = shared_memory(setting.architecture)
        self._walks: dict[WalkKey, Walked] = {}
        self._groups: dict[int, GroupSearch] = {}
        self.least = least(self.setting.workload, setting.architecture, setting.price)

    def best(self, options: Options) -> Schedule:
        return _Program(self, options).solve(self.order)

    def groups(self, least_tiles: int) -> GroupSearch | None:
        """Ways to run groups in at least so many tiles, if there is a memory for it."""
        if self.memory is None:
            return None
        if least_tiles not in self._groups:
            search = GroupSearch(self.mapped, self.memory, least_tiles, self._walks)
            self._groups[least_tiles] = search
        return self._groups[least_tiles]


class _Program:
    def __init__(self, shared: Schedules, options: Options) -> None:
        self.setting = shared.setting
        self.options = options
        self.workload = shared.setting.workload
        self.mapped = shared.mapped
        self.memory = shared.memory
        self.groups = shared.groups(options.least_tiles)
        self.last_use = _last_uses(self.workload)
        count = len(self.workload.operators)
        self.rest = [shared.least.from_operator(at) for at in range(count + 1)]
        self.thinned = Thinned(ways=0, bound=math.inf)

    def solve(self, order: Order) -> Schedule:
        plain = self._plain()
        best = self._search(plain)
        is_better = self._value(best.cost) < self._value(plain.cost)
        label = best if is_better or self.options.wants_tiles else plain
        way = label.way()
        memory = self.memory.name if self.memory else ""
        plan = Plan(
            units=tuple(step.unit for step in way if step.unit is not None),
            homes={step.kept: memory for step in way if step.kept is not None},
        )
        return Schedule(
            plan=plan,
            order=order,
            cost=label.cost,
            unfused=plain.cost,
            bound=self.rest[0],
            objective=self.setting.objective,
            calls=self.mapped.calls,
            bytes_saved=plan.bytes_saved(self.workload),
            thinned=self.thinned,
        )

    def _value(self, cost: Cost) -> float:
        return cost.value(self.setting.objective)

    def _plain(self) -> _Label:
        """Every operator on its own, every tensor in the outermost memory."""
        label = _Label(Cost(0, 0.0), None, None, None)
        for operator in self.workload.operators:
            mapping, cost = self.mapped.single(operator, {}, {})
            label = _Label(label.cost.plus(cost), mapping, None, label)
        return label

    def _search(self, plain: _Label) -> _Label:
        count = len(self.workload.operators)
        frontier: list[dict[Kept, list[_Label]]] = [{} for _ in range(count + 1)]
        frontier[0][frozenset()] = [_Label(Cost(0, 0.0), None, None, None)]
        worst = math.inf if self.options.wants_tiles else self._value(plain.cost)
        for at in range(count):
            for kept, labels in frontier[at].items():
                alive = self._alive(labels, at, worst)
                if not alive:
                    continue
                for step in self._steps(at, kept):
                    later = frontier[step.end].setdefault(step.kept, [])
                    later += [
                        _Label(label.cost.plus(step.cost), step.unit, step.keeps, label)
                        for label in alive
                    ]
            frontier[at] = {}
        (labels,) = frontier[count].values() if frontier[count] else ([plain],)
        return min(labels, key=lambda label: (self._value(label.cost), label.cost))

    def _alive(self, labels: list[_Label], at: int, worst: float) -> list[_Label]:
        """Labels that no other beats and that can still end below the plain plan."""
        rest = self.rest[at]
        if self.setting.objective != "edp":
            labels = [min(labels, key=lambda label: (self._value(label.cost), label.cost))]
        front: list[_Label] = []
        for label in sorted(labels, key=lambda label: label.cost):
            if front and label.cost.energy_pj >= front[-1].cost.energy_pj:
                continue
            if self._value(label.cost.plus(rest)) < worst * (1 + 1e-12):
                front.append(label)
        return self._thinned(front, rest)

    def _thinned(self, front: list[_Label], rest: Cost) -> list[_Label]:
        kept, out = spread(front, MOST_LABELS)
        if out:
            least = min(self._value(label.cost.plus(rest)) for label in out)
            self.thinned = Thinned(
                ways=self.thinned.ways + len(out), bound=min(self.thinned.bound, least)
            )
        return kept

    def _steps(self, at: int, kept: Kept) -> Iterator[_Step]:
        """Every unit that can come next."""
        groups = list(self._grouped(at, kept))
        yield from groups
        if self.options.wants_tiles and any(step.end == at + 1 for step in groups):
            return
        operator = self.workload.operators[at]
        for keeps in self._choices(at, at + 1, kept):
            here = kept | ({keeps} if keeps else set())
            homes, occupied = self._around(here)
            try:
                mapping, cost = self.mapped.single(operator, homes, occupied)
            except InfeasibleError:
                continue
            yield self._step(at + 1, mapping, cost, keeps, here)

    def _grouped(self, at: int, kept: Kept) -> Iterator[_Step]:
        """Groups that begin here; a single operator only where tiles are wanted."""
        if self.groups is None:
            return
        first = at + (1 if self.options.wants_tiles else 2)
        last = min(at + self.options.longest, len(self.workload.operators))
        for end in range(first, last + 1):
            names = tuple(o.name for o in self.workload.operators[at:end])
            for keeps in self._choices(at, end, kept):
                here = kept | ({keeps} if keeps else set())
                homes, occupied = self._around(here)
                found = self.groups.best(names, homes, occupied)
                if found is not None:
                    yield self._step(end, found.fused, found.cost, keeps, here)

    def _step(self, end: int, unit: Unit, cost: Cost, keeps: str | None, here: Kept) -> _Step:
        still = frozenset(tensor for tensor in here if self.last_use[tensor] >= end)
        return _Step(end, unit, cost, keeps, still)

    def _around(self, kept: Kept) -> tuple[dict[str, str], dict[str, int]]:
        """Homes of the tensors that are kept and the room that they take."""
        if self.memory is None or not kept:
            return {}, {}
        bits = sum(int(-(-tensor_bits(self.workload.tensor(t)) // 1)) for t in kept)
        return dict.fromkeys(sorted(kept), self.memory.name), {self.memory.name: bits}

    def _choices(self, at: int, end: int, kept: Kept) -> Iterator[str | None]:
        """The result goes to the outermost memory, or stays if it may and could."""
        yield None
        result = self.workload.operators[end - 1].output.tensor
        if not self.options.keep or self.memory is None or len(kept) == MOST_KEPT:
            return
        tensor = self.workload.tensor(result)
        writers = sum(o.output.tensor == result for o in self.workload.operators)
        room = 8 * self.memory.size_bytes
        taken = sum(tensor_bits(self.workload.tensor(t)) for t in kept)
        passes = tensor.kind == "activation" and writers == 1 and self.last_use[result] >= end
        if passes and taken + tensor_bits(tensor) < room and self._readable(result):
            yield result

    def _readable(self, tensor: str) -> bool:
        """Whether every reader takes its input through the memory that it would stay in."""
        assert self.memory is not None
        roles = {
            operator.role(number)
            for operator in self.workload.operators
            for number, access in enumerate(operator.inputs)
            if access.tensor == tensor
        }
        return roles <= set(self.memory.roles)


@dataclass(frozen=True, slots=True)
class _Step:
    """A unit that ends before operator ``end``; ``keeps`` is its result if that stays."""

    end: int
    unit: Unit
    cost: Cost
    keeps: str | None
    kept: Kept


def spread(every: list[Item], most: int) -> tuple[list[Item], list[Item]]:
    """Evenly spread ones of more than ``most``, and those left out."""
    if len(every) <= most:
        return every, []
    step = (len(every) - 1) / (most - 1)
    kept = {round(number * step) for number in range(most)}
    left_out = [item for number, item in enumerate(every) if number not in kept]
    return [every[number] for number in sorted(kept)], left_out


def _last_uses(workload: Workload) -> dict[str, int]:
    """Position of the last operator that touches each tensor."""
    last: dict[str, int] = {}
    for at, operator in enumerate(workload.operators):
        for access in operator.accesses:
            last[access.tensor] = at
    return last

"""A bound that no mapping of an operator beats, in a few evaluations of the cost function.

Latency, energy and room grow with every volume. So the cost of volumes that are each as small as
some mapping makes it is below the cost of all mappings. A volume is as small as can be in one
order of stages as in another (tiles of whole extents move least, tiles of single elements need
least room, whatever the order), so that orders of the same stages that wait for the same ones
share one bound. Where some dimensions stay whole, orders that fill shared memories first, which
come first, leave most freedom.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from arch.spec import Memory
from mapper.search.candidates import objective_value
from mapper.search.costs import ANSWERS, TOTAL_PJ, TOTAL_PS, cost
from mapper.search.flows import flows
from mapper.search.pricing import FloatArray, Model
from mapper.search.space import StageOrder

#: Combinations of a group's tilings that are all looked at; of more, a bound is used.
_ENUMERATED = 20_000


@dataclass(frozen=True, slots=True)
class Bound:
    """The objective that no mapping is below, and how many evaluations it took."""

    value: float
    calls: int


def lower_bound(orders: Sequence[StageOrder], models: Sequence[Model]) -> Bound:
    """The lowest bound of any set of stages that occurs."""
    of_stages = {_alike(order): i for i, order in enumerate(orders)}
    values = [_bound_of(orders[i], models[i]) for i in of_stages.values()]
    return Bound(min(values), len(values))


def least_work(
    orders: Sequence[StageOrder], models: Sequence[Model]
) -> tuple[dict[str, float], float]:
    """Picoseconds that each port is at least busy, and picojoules at least spent."""
    busy: dict[str, float] = {}
    energies = []
    of_stages: dict[frozenset[tuple[int, Memory]], int] = {}
    for i, order in enumerate(orders):
        of_stages.setdefault(frozenset(order.stages), i)
    for first, i in enumerate(of_stages.values()):
        answer, terms = np.empty(ANSWERS), flows(models[i])
        scratch = np.empty(len(terms.ports))
        cost(_smallest_volumes(orders[i]), terms, scratch, answer)
        if math.isinf(answer[TOTAL_PJ]):
            return {}, 0.0
        energies.append(float(answer[TOTAL_PJ] - terms.leakage_w * answer[TOTAL_PS]))
        memories = [memory.name for memory in orders[i].run.memories]
        for number, ps in enumerate(scratch / terms.ports[:, 1]):
            port = f"{memories[number // 2]}.{number % 2}"
            busy[port] = float(ps) if first == 0 else min(busy.get(port, 0.0), float(ps))
    return busy, min(energies)


def _alike(order: StageOrder) -> Hashable:
    """Equal for orders that share a bound."""
    has_latch = any(memory.is_latch for _, memory in order.stages)
    keeps_whole = bool(order.run.operator.whole_dims)
    if has_latch or keeps_whole:
        return order.stages
    return frozenset(order.stages), order.held


def _bound_of(order: StageOrder, model: Model) -> float:
    answer, terms = np.empty(ANSWERS), flows(model)
    cost(_smallest_volumes(order), terms, np.empty(len(terms.ports)), answer)
    return objective_value(answer, model.objective)


def _smallest_volumes(order: StageOrder) -> FloatArray:
    """Each volume for itself."""
    volumes = np.ones(len(order.columns))
    for group in order.run.counts.groups:
        sizes = [len(order.tilings(dim)) for dim in group]
        if math.prod(sizes) <= _ENUMERATED:
            grids = np.indices(sizes).reshape(len(group), -1)
            picked = dict(zip(group, grids, strict=True))
            volumes *= order.factors(group, picked).min(axis=0)
        else:
            volumes *= _least_of_group(order, group)
    return volumes


def _least_of_group(order: StageOrder, group: tuple[str, ...]) -> FloatArray:
    """Where dimensions share an axis of an operand, the one that forces most stands for all."""
    alone = [
        order.factors(group, {dim: np.arange(len(order.tilings(dim)))}).min(axis=0) for dim in group
    ]
    operands = order.run.counts.operands
    shared = [
        column.operand >= 0 and bool(operands[column.operand].coupled_axes(group))
        for column in order.columns
    ]
    least: FloatArray = np.where(shared, np.max(alone, axis=0), np.prod(alone, axis=0))
    return least

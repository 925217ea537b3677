"""Why no mapping of an operator fits: what mappings drawn evenly from the mapspace exceed.

The mapspace is far too large to count, so a sample of it is; by how much the nearest mapping
misses is known exactly (see ``exact``).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mapper.cost import PriceList
from mapper.hierarchy import Execution
from mapper.search import pricing
from mapper.search.coefficients import Coefficients
from mapper.search.flows import Flows, flows
from mapper.search.pricing import FloatArray
from mapper.search.space import StageOrder, stage_orders

#: Mappings drawn.
DRAWS = 20_000
_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A limit that mappings exceed: how many of those drawn, and how many of them nothing else;
    what the nearest of those drawn needs, and what there is."""

    limit: str
    count: int
    alone: int
    nearest: float
    allowed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejections:
    """Of ``mapspace`` mappings ``drawn`` were looked at."""

    mapspace: int
    drawn: int
    causes: tuple[Cause, ...]


def rejections(run: Execution, price: PriceList) -> Rejections:
    """What stands in the way of mappings, the commonest cause first. The same each time."""
    rng = np.random.default_rng(_SEED)
    orders = list(stage_orders(run))
    coefficients = Coefficients(run=run, leakage_w=0.0, price=price, objective=pricing.ROOM)
    sizes = [math.prod(len(order.tilings(dim)) for dim in run.operator.extents) for order in orders]
    shares = np.array([size / sum(sizes) for size in sizes])
    limits = [f"capacity of {memory.name} in bytes" for memory in run.memories]
    axes = [f"axis {name} of {run.compute.name}" for name in orders[0].contended]
    sizes_bytes = [float(memory.size_bytes) for memory in run.memories]
    allowed = np.array([*sizes_bytes, *_axis_sizes(run, orders[0])])
    needed: list[FloatArray] = []
    for order, count in zip(orders, rng.multinomial(DRAWS, shares), strict=True):
        if count:
            terms = flows(coefficients.model(order))
            needed.append(_needed(_volumes(order, int(count), rng), terms))
    shares_needed = np.concatenate(needed)
    shares_needed[:, : len(limits)] *= sizes_bytes
    causes = _causes([*limits, *axes], np.ceil(shares_needed - 1e-6), allowed)
    return Rejections(mapspace=sum(sizes), drawn=DRAWS, causes=causes)


def _axis_sizes(run: Execution, order: StageOrder) -> list[float]:
    sizes = {axis.name: float(axis.size) for axis in run.intrinsic.axes}
    return [sizes[name] for name in order.contended]


def _volumes(order: StageOrder, count: int, rng: np.random.Generator) -> FloatArray:
    volumes = np.ones((count, len(order.columns)))
    for group in order.run.counts.groups:
        picked = {dim: rng.integers(len(order.tilings(dim)), size=count) for dim in group}
        volumes *= order.factors(group, picked)
    return volumes


def _needed(volumes: FloatArray, terms: Flows) -> FloatArray:
    """``[mapping, limit]``: the share of each memory, then elements along each contended axis."""
    held = np.zeros((len(volumes), len(terms.capacity_bits)))
    for t in range(terms.sums, terms.tiles):
        volume, memory, revisits, visits = terms.places[t]
        final, partial, slots = terms.numbers[t, :3]
        bits = np.where(volumes[:, revisits] > 1, partial, final)
        held[:, memory] += volumes[:, volume] * bits * np.where(volumes[:, visits] > 1, slots, 1.0)
    return np.concatenate([held / terms.capacity_bits, volumes[:, terms.axis_columns]], axis=1)


def _causes(
    limits: list[str], needed: FloatArray, allowed: NDArray[np.float64]
) -> tuple[Cause, ...]:
    exceeded = needed > allowed
    alone = exceeded & (exceeded.sum(axis=1, keepdims=True) == 1)
    counts = Counter({i: int(exceeded[:, i].sum()) for i in range(len(limits))})
    return tuple(
        Cause(
            limit=limits[i],
            count=count,
            alone=int(alone[:, i].sum()),
            nearest=float(needed[exceeded[:, i], i].min()),
            allowed=float(allowed[i]),
        )
        for i, count in counts.most_common()
        if count
    )

"""Which dimensions to unroll over which axes: the ways that need the fewest steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mapper.search.space import StageOrder

#: Ways kept for each amount of the axes used, while dimensions are added one by one.
_KEPT = 3


@dataclass(frozen=True, slots=True)
class Unrolling:
    """Spatial factors ``[dim][axis]``, and the steps that the operator then takes."""

    factors: tuple[tuple[int, ...], ...]
    steps: int


def fastest_unrollings(order: StageOrder, count: int) -> list[Unrolling]:
    """The ``count`` unrollings with the fewest steps, those with the fewest loops first.

    Dimensions are added one by one; of those that use the axes alike only a few are kept.
    """
    sizes = [axis.size for axis in order.run.intrinsic.axes]
    kept: dict[tuple[int, ...], list[Unrolling]] = {(1,) * len(sizes): [Unrolling((), 1)]}
    for dim, extent in order.run.operator.extents.items():
        options = [tuple(map(int, row)) for row in np.unique(order.tilings(dim).spatial, axis=0)]
        longer: dict[tuple[int, ...], list[Unrolling]] = {}
        for used, ways in kept.items():
            for option in options:
                now = tuple(u * f for u, f in zip(used, option, strict=True))
                if all(u <= size for u, size in zip(now, sizes, strict=True)):
                    steps = -(-extent // math.prod(option))
                    longer.setdefault(now, []).extend(
                        Unrolling((*way.factors, option), way.steps * steps) for way in ways
                    )
        kept = {used: sorted(ways, key=_merit)[:_KEPT] for used, ways in longer.items()}
    return sorted((way for ways in kept.values() for way in ways), key=_merit)[:count]


def not_unrolled(order: StageOrder) -> Unrolling:
    """One element in each step."""
    nowhere = (1,) * len(order.run.intrinsic.axes)
    return Unrolling((nowhere,) * len(order.run.operator.extents), order.run.operator.points)


def _merit(way: Unrolling) -> tuple[int, int, tuple[tuple[int, ...], ...]]:
    """Fewest steps, then fewest unrolled loops."""
    loops = sum(factor > 1 for factors in way.factors for factor in factors)
    return way.steps, loops, way.factors

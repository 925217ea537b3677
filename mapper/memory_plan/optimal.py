"""The best joint choice of fusion, patches and segments, by dynamic programming over stages.

A network is cut where a single tensor is all that is needed; a plan is a sequence of stages
between such points, so its memory is that of its largest stage and its time the sum. For every
point all trade-offs of memory and time that no other beats are kept, so the plan is optimal
among those with the choices of ``stages``. The order of the layers is part of the choice: layers
come in the one with the least bound for rings, and a block's bound holds for all of its orders.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from mapper.memory_plan.fused import can_fuse, least_fused_bytes
from mapper.memory_plan.layers import Layer
from mapper.memory_plan.stages import Choice, CycleModel, cuts, fused, unfused


@dataclass(frozen=True, slots=True)
class Route:
    """Stages up to some point, what they need and what they take."""

    size_bytes: int
    cycles: float
    before: Route | None = None
    choice: Choice | None = None

    @property
    def choices(self) -> tuple[Choice, ...]:
        found = []
        route: Route | None = self
        while route is not None and route.choice is not None:
            found.append(route.choice)
            route = route.before
        return tuple(reversed(found))


@dataclass(frozen=True, slots=True)
class Routes:
    """All plans that are not beaten in both memory and time, by memory; no plan needs less than
    the bound."""

    found: tuple[Route, ...]
    lower_bound_bytes: int


def routes(layers: Sequence[Layer], cycles: CycleModel) -> Routes:
    """The trade-offs of memory and time, by way of the points where a single tensor is live."""
    points = cuts(layers)
    single = {
        (a, b): list(unfused(tuple(layers[a:b]), cycles)) for a, b in itertools.pairwise(points)
    }
    # What the fastest way without fusion needs: a fused stage must need less to be of use.
    roomy = {ends: min(found, key=_time).size_bytes for ends, found in single.items()}
    largest = max(roomy.values())
    reached: dict[int, list[Route]] = {0: [Route(0, 0.0)]}
    bounds = {0: 0}
    for position, start in enumerate(points[:-1]):
        apart = 0
        for before, end in itertools.pairwise(points[position:]):
            apart = max(apart, roomy[before, end])
            part = tuple(layers[start:end])
            choices = single.get((start, end), [])
            if can_fuse(part) and least_fused_bytes(part) < largest:
                choices = [*choices, *fused(part, cycles, apart - 1)]
            elif before > start:
                break  # longer runs need more line buffers
            _extend(reached, start, end, choices)
            _bound(bounds, start, end, choices)
    return Routes(tuple(reached[len(layers)]), bounds[len(layers)])


def _time(choice: Choice) -> tuple[float, int]:
    return choice.cycles, choice.size_bytes


def _bound(bounds: dict[int, int], start: int, end: int, choices: Sequence[Choice]) -> None:
    for choice in choices if start in bounds else ():
        bound = max(bounds[start], choice.lower_bound_bytes)
        bounds[end] = min(bounds.get(end, bound), bound)


def _extend(
    reached: dict[int, list[Route]], start: int, end: int, choices: Sequence[Choice]
) -> None:
    longer = [
        Route(max(r.size_bytes, c.size_bytes), r.cycles + c.cycles, r, c)
        for r in reached.get(start, [])
        for c in choices
    ]
    reached[end] = _unbeaten([*reached.get(end, []), *longer])


def _unbeaten(found: list[Route]) -> list[Route]:
    kept: list[Route] = []
    for route in sorted(found, key=lambda r: (r.size_bytes, r.cycles)):
        if not kept or route.cycles < kept[-1].cycles:
            kept.append(route)
    return kept

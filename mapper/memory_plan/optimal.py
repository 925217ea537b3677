"""The best joint choice of fusion, patches and segments, by dynamic programming over stages.

A network is cut where a single tensor is all that is needed; a plan is a sequence of stages
between such points, so its memory is that of its largest stage and its time the sum. For every
point all trade-offs of memory and time that no other beats are kept, so the plan is optimal
among those that run the layers in the given order with the choices of ``stages``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from mapper.memory_plan.fused import can_fuse
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


def routes(layers: Sequence[Layer], cycles: CycleModel, *, fusion: bool = True) -> list[Route]:
    """All plans that are not beaten in both memory and time, by memory."""
    points = cuts(layers)
    single = {
        (a, b): list(unfused(tuple(layers[a:b]), cycles)) for a, b in itertools.pairwise(points)
    }
    # What the network needs without fusion: no stage that needs more is of use.
    largest = max(min(c.size_bytes for c in choices) for choices in single.values())
    reached: dict[int, list[Route]] = {0: [Route(0, 0.0)]}
    for position, start in enumerate(points[:-1]):
        for end in points[position + 1 :]:
            choices = single.get((start, end), [])
            part = tuple(layers[start:end])
            joined = list(fused(part, cycles, largest)) if fusion and can_fuse(part) else []
            _extend(reached, start, end, [*choices, *joined])
            if end > points[position + 1] and not joined:
                break  # longer runs need more line buffers
    return reached[len(layers)]


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

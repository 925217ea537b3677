"""Non-dominated sets and the volume they dominate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.trial import Trial

#: The reference point lies this far beyond the worst corner of the front (in units of its
#: extent), so that the extreme points count too.
MARGIN = 0.1


def non_dominated(trials: Sequence[Trial], keys: Sequence[str]) -> tuple[Trial, ...]:
    """Trials that no other one beats (all ``keys`` minimised), in their order.

    Of several with equal objectives the first stays.
    """
    rows = np.array([[t.objectives[k] for k in keys] for t in trials], dtype=float)
    return tuple(t for i, t in enumerate(trials) if not _is_beaten(rows, i))


def _is_beaten(rows: NDArray[np.float64], i: int) -> bool:
    covers = (rows <= rows[i]).all(axis=1)
    equal = (rows == rows[i]).all(axis=1)
    return bool((covers & ~equal).any() or equal[:i].any())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How objectives become comparable numbers: log10, then 0..1 from the best to the worst
    value on a front. Objectives span decades and have different units; ratios are what counts.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def apply(self, row: Sequence[float]) -> tuple[float, ...]:
        """0 is the front's best value, 1 its worst; a flat objective maps to 0 where equal."""
        logs = (math.log10(value) for value in row)
        return tuple(
            (x - a) / (b - a) if b > a else x - a
            for x, a, b in zip(logs, self.low, self.high, strict=True)
        )


def scale_of(front: Sequence[Trial], keys: Sequence[str]) -> Scale:
    """The scale that a front spans."""
    logs = [[math.log10(t.objectives[k]) for k in keys] for t in front]
    columns = list(zip(*logs, strict=True))
    return Scale(low=tuple(map(min, columns)), high=tuple(map(max, columns)))


def dominated_share(trials: Sequence[Trial], keys: Sequence[str], scale: Scale) -> float:
    """Normalised hypervolume of the feasible trials, from 0 to 1.

    The share, in ``scale``, of the box between the ideal point and the reference point (the
    worst corner plus ``MARGIN``) that the trials dominate.
    """
    corner = 1 + MARGIN
    rows = [scale.apply([t.objectives[k] for k in keys]) for t in trials if t.feasible]
    inside = [row for row in rows if all(x < corner for x in row)]
    return hypervolume(inside, [corner] * len(keys)) / corner ** len(keys)


def hypervolume(rows: Sequence[Sequence[float]], reference: Sequence[float]) -> float:
    """Exact volume between the rows and ``reference`` (all minimised), by slicing.

    Cheap up to a few hundred rows in four dimensions.
    """
    kept = sorted({tuple(r) for r in rows if all(x < c for x, c in zip(r, reference, strict=True))})
    if not kept:
        return 0.0
    if len(reference) == 1:
        return reference[0] - kept[0][0]
    volume = 0.0
    slab: list[tuple[float, ...]] = []
    edges = [row[0] for row in kept[1:]] + [reference[0]]
    for row, edge in zip(kept, edges, strict=True):
        slab = _insert(slab, row[1:])
        if edge > row[0]:
            volume += (edge - row[0]) * hypervolume(slab, reference[1:])
    return volume


def _insert(front: list[tuple[float, ...]], row: tuple[float, ...]) -> list[tuple[float, ...]]:
    """``front`` with ``row``, without what is then dominated."""
    if any(all(x <= y for x, y in zip(other, row, strict=True)) for other in front):
        return front
    keep = [o for o in front if not all(x <= y for x, y in zip(row, o, strict=True))]
    return [*keep, row]


def hypervolume_history(
    trials: Sequence[Trial], keys: Sequence[str], scale: Scale
) -> tuple[float, ...]:
    """``dominated_share`` after each trial."""
    front: tuple[Trial, ...] = ()
    share = 0.0
    history: list[float] = []
    for trial in trials:
        extended = non_dominated([*front, trial], keys) if trial.feasible else front
        if extended and extended[-1] is trial:
            front = extended
            share = dominated_share(front, keys, scale)
        history.append(share)
    return tuple(history)

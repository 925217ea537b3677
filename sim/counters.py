"""Counters over time from slices: how many requests wait, what is on its way, the power."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sim.timeline import Slice

BYTES, POWER = "bytes in flight", "dynamic power in W"


@dataclass(frozen=True, slots=True)
class Count:
    """From ``time_ps`` on, ``counter`` is ``value``."""

    counter: str
    time_ps: int
    value: float


def counts(slices: Iterable[Slice]) -> Iterator[Count]:
    """Of slices from one operator, in order of time for each counter.

    ``queue X`` are the requests that wait for port X. A loop in steady state counts with its
    average power; its queues and bytes are not known.
    """
    changes: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for piece in slices:
        for counter, begin, end, amount in _contributions(piece):
            changes[counter][begin] += amount
            changes[counter][end] -= amount
    for counter, steps in changes.items():
        value = 0.0
        for time in sorted(steps):
            value += steps[time]
            yield Count(counter, time, round(value, 9) + 0.0)


def _contributions(piece: Slice) -> Iterator[tuple[str, int, int, float]]:
    """(counter, from, to, how much)"""
    start, end = piece.start_ps, piece.start_ps + piece.duration_ps
    if piece.waited_ps:
        yield f"queue {piece.track}", start - piece.waited_ps, start, 1
    if piece.moved_bytes:
        yield BYTES, start, end, piece.moved_bytes
    if piece.energy_pj and piece.duration_ps:
        yield POWER, start, end, piece.energy_pj / piece.duration_ps

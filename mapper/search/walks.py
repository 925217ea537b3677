"""Walks from mapping to mapping, and which of several goes on.

Several walks begin, each at the best start with another unrolling (another unrolling is too far
for small moves); rounds of a few calls each decide which of them goes on. A mapping that asks
for no less of anything than one that was priced cannot be better, and is mostly passed by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mapper.search.candidates import Candidate, Candidates
from mapper.search.starts import Starts

#: Calls without a new best until a walk goes back to its best.
_PATIENCE = 50
#: Moves tried in vain (they fit nowhere or lead to what is known) until a walk is over.
_VAIN = 2000
#: Walks that begin, calls of each in the first round, and in a round at most; the better half
#: goes on for longer.
_WALKS, _ROUND, _LONGEST = 6, 6, 24
#: How often a mapping that cannot be better is priced all the same: it may lead to a better one.
_DETOURS = 0.1


@dataclass(slots=True)
class Walker:
    """Where a walk is, the best that it found, and calls since then."""

    current: Candidate
    best: Candidate
    stale: int = 0

    def take(self, space: Candidates, found: Candidate, heat: float, chance: float) -> None:
        """Price ``found``, and go there if it is not worse, or by ``chance``.

        What is worse by a factor of e to the ``heat`` is accepted with probability 1/e.
        """
        old, new = space.value(self.current), space.value(found)
        if new <= old or (heat > 0 and chance < math.exp(-math.log(new / old) / heat)):
            self.current = found
        self.stale += 1
        if new < space.value(self.best):
            self.best, self.stale = found, 0
        if self.stale > _PATIENCE:
            self.current, self.stale = self.best, 0


#: Prices one mapping near a walker's and moves it there or not; false if none was found.
Stride = Callable[[Walker], bool]


def walk(space: Candidates, stride: Stride, rng: np.random.Generator) -> None:
    """Round after round, until the budget is spent or no stride leads to anything new.

    After a round that was in vain, other starts are looked for.
    """
    source = Starts(space, rng)
    walkers = [Walker(start, start) for start in _apart(space, source.first())[:_WALKS]]
    calls = _ROUND
    while walkers:
        best = space.best_value
        able = [each for each in walkers if _advance(space, each, calls, stride)]
        ranked = sorted(able, key=lambda each: space.value(each.best))
        walkers, calls = ranked[: (len(ranked) + 1) // 2], min(2 * calls, _LONGEST)
        if space.best_value == best:
            walkers += [Walker(end, end) for end in source.more() if space.value(end) < best]


def is_idle(space: Candidates, found: Candidate, rng: np.random.Generator) -> bool:
    """Known, or known not to be better (and no detour is made)."""
    if space.is_known(found):
        return True
    return space.is_beaten(found) and rng.random() > _DETOURS


def _apart(space: Candidates, starts: list[Candidate]) -> list[Candidate]:
    """The first one with each unrolling."""
    found: dict[tuple[tuple[int, ...], ...], Candidate] = {}
    for start in starts:
        found.setdefault(space.unrolling(start), start)
    return list(found.values())


def _advance(space: Candidates, walker: Walker, calls: int, stride: Stride) -> bool:
    """So many calls of one walk; false if it is over."""
    until = space.calls + calls
    while space.calls < until:
        if not any(stride(walker) for _ in range(_VAIN)):
            return False
    return True

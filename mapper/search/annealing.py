"""Hill climbing and simulated annealing from starts that fill the memories."""

from __future__ import annotations

import math

import numpy as np

from mapper.moves import Moves
from mapper.search.candidates import Candidate, Candidates
from mapper.search.starts import evaluated_starts

#: Temperature at the beginning: a candidate that is worse by this factor of e is accepted
#: with probability 1/e. It falls to zero with the budget.
_TEMPERATURE = 0.1
#: Calls without a new best until the search goes back to the best.
_PATIENCE = 50
#: Moves tried in vain (they fit nowhere or lead to what is known) until the search is over.
_VAIN = 2000


def anneal(space: Candidates, rng: np.random.Generator) -> None:
    """Simulated annealing; each call is one candidate near the current one."""
    _walk(space, rng, _TEMPERATURE)


def climb(space: Candidates, rng: np.random.Generator) -> None:
    """Hill climbing: only what is at least as good is accepted."""
    _walk(space, rng, 0.0)


def _walk(space: Candidates, rng: np.random.Generator, temperature: float) -> None:
    moves = Moves(space.orders, space.fits)
    current = evaluated_starts(space)[0]
    stale = vain = 0
    while vain < _VAIN:
        found = moves.near(current, rng)
        if found is None or space.is_known(found):
            vain += 1
            continue
        vain = 0
        before = space.best
        heat = temperature * (1 - space.calls / space.budget)
        if _accepted(space, current, found, heat, rng):
            current = found
        stale = stale + 1 if space.best is before else 0
        if stale > _PATIENCE and space.best is not None:
            current, stale = space.best, 0


def _accepted(
    space: Candidates,
    current: Candidate,
    found: Candidate,
    heat: float,
    rng: np.random.Generator,
) -> bool:
    """Always if it is not worse, else by chance: the better the more probable."""
    old, new = space.value(current), space.value(found)
    if new <= old:
        return True
    return heat > 0 and bool(rng.random() < math.exp(-math.log(new / old) / heat))

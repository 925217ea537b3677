"""Hill climbing and simulated annealing from starts that fill the memories."""

from __future__ import annotations

import numpy as np

from mapper.moves import Moves
from mapper.search.candidates import Candidates
from mapper.search.walks import Walker, is_idle, walk

#: Temperature at the beginning: a candidate that is worse by this factor of e is accepted
#: with probability 1/e. It falls to zero with the budget.
TEMPERATURE = 0.1


def anneal(space: Candidates, rng: np.random.Generator) -> None:
    """Simulated annealing; each call is one candidate near the current one."""
    _Annealing(space, rng, TEMPERATURE).run()


def climb(space: Candidates, rng: np.random.Generator) -> None:
    """Hill climbing: only what is at least as good is accepted."""
    _Annealing(space, rng, 0.0).run()


class _Annealing:
    def __init__(self, space: Candidates, rng: np.random.Generator, temperature: float) -> None:
        self.space = space
        self.rng = rng
        self.temperature = temperature
        self.moves = Moves(space.orders, space.fits)

    def run(self) -> None:
        walk(self.space, self._stride, self.rng)

    def _stride(self, walker: Walker) -> bool:
        found = self.moves.near(walker.current, self.rng)
        if found is None or is_idle(self.space, found, self.rng):
            return False
        heat = self.temperature * (1 - self.space.calls / self.space.budget)
        walker.take(self.space, found, heat, float(self.rng.random()))
        return True

"""A genetic search with the operators of GAMMA (Kao and Krishna, ICCAD 2020), in our mapspace.

Besides crossover of tilings, mutation and reordering of stages, individuals grow (one more
dimension is unrolled over an axis) and age (an unrolled dimension is rolled up again). Rates are
those of its release (maestro-project/gamma, src/GAMMA/gamma.py).
"""

from __future__ import annotations

import numpy as np

from mapper.moves import Moves, Resize, Step, Unroll, with_row
from mapper.search.candidates import Candidate, Candidates
from mapper.search.starts import Starts

_POPULATION = 20
_ELITE_SHARE, _PARENT_SHARE = 0.05, 0.4
_CROSSOVER, _REORDER, _MUTATION = 0.57, 0.47, 0.53
_GROWTH, _AGEING = 0.57, 0.27
#: Tiles that a mutation changes.
_LOCI = 3
#: Children in a row that fit nowhere or are known until the search is over.
_VAIN = 2000


def evolve(space: Candidates, rng: np.random.Generator) -> None:
    """Generation after generation until the budget is spent."""
    breeding = _Breeding(space, Moves(space.orders, space.fits), rng)
    population = Starts(space, rng).first()[:_POPULATION]
    while True:
        population.sort(key=space.value)
        elite = population[: max(1, round(_ELITE_SHARE * _POPULATION))]
        parents = population[: max(2, round(_PARENT_SHARE * _POPULATION))]
        children = breeding.children(parents, _POPULATION - len(elite))
        if not children:
            return
        population = elite + children


class _Breeding:
    def __init__(self, space: Candidates, moves: Moves, rng: np.random.Generator) -> None:
        self.space = space
        self.moves = moves
        self.rng = rng
        self.grow = [s for s in moves.steps if isinstance(s, Unroll) and s.sign > 0]
        self.age = [s for s in moves.steps if isinstance(s, Unroll) and s.sign < 0]
        self.resize = [s for s in moves.steps if isinstance(s, Resize)]

    def children(self, parents: list[Candidate], count: int) -> list[Candidate]:
        """New individuals that fit, each priced; fewer if no more can be found."""
        found: list[Candidate] = []
        vain = 0
        while len(found) < count and vain < _VAIN:
            child = self.moves.repaired(self._child(parents), self.rng)
            if child is None or self.space.is_known(child):
                vain += 1
                continue
            self.space.value(child)
            found.append(child)
        return found

    def _child(self, parents: list[Candidate]) -> Candidate:
        first, second = (parents[int(i)] for i in self.rng.integers(len(parents), size=2))
        child = first
        if self._happens(_CROSSOVER):
            child = self._crossed(first, second)
        if self._happens(_REORDER):
            others = self.moves.reorderings(child.order)
            if others:
                child = self.moves.reordered(child, others[int(self.rng.integers(len(others)))])
        if self._happens(_MUTATION):
            for _ in range(_LOCI):
                child = self._changed(child, self.resize)
        if self._happens(_GROWTH):
            child = self._changed(child, self.grow)
        if self._happens(_AGEING):
            child = self._changed(child, self.age)
        return child

    def _happens(self, rate: float) -> bool:
        return bool(self.rng.random() < rate)

    def _crossed(self, first: Candidate, second: Candidate) -> Candidate:
        """Each dimension's tiling from either, under the order of the first."""
        other = self.moves.reordered(second, first.order)
        for dim in np.flatnonzero(self.rng.random(len(first.rows)) < 0.5):
            first = with_row(first, int(dim), other.rows[dim])
        return first

    def _changed(
        self, child: Candidate, steps: list[Step] | list[Unroll] | list[Resize]
    ) -> Candidate:
        if not steps:
            return child
        step = steps[int(self.rng.integers(len(steps)))]
        return self.moves.stepped(child, step) or child

"""Where a search begins: mappings that move few words, found without knowing prices.

What a mapping costs depends on what takes the time, and only prices tell: steps of the unit, or
words in or out of one of the memories. So each of these is guessed: simulated annealing over counts
finds mappings with the least product of words moved, each weighted by the level of its memory, and
of what is guessed to take the time. The calls of the cost function then say which guess is right:
round after round the better half of the guesses goes on. Traffic first is how CoSA (ISCA 2021) and
Marvel (TACO 2021) map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from arch.spec import Component, Memory
from mapper.cost import Price
from mapper.search import pricing
from mapper.search.candidates import Candidate, Candidates
from mapper.search.coefficients import Coefficients
from mapper.search.counts import counted
from mapper.search.fewest import anneal, settle
from mapper.search.flows import compacted, decisive, flows
from mapper.search.pricing import IntArray
from mapper.search.space import StageOrder
from mapper.search.terms import terms

#: How much less a word counts at each level inwards, by turns. (Energies per word fall by such
#: factors from DRAM to buffers to registers: Horowitz, ISSCC 2014.)
_WORD_RATIOS = 32.0, 16.0, 64.0
#: Steps of the first annealings of all guesses together, and of each at least; whenever the worse
#: half of the guesses is given up it is twice as many for each, but no more than the last.
_STEPS, _FEWEST_STEPS, _MOST_STEPS = 30_000, 2_000, 80_000
#: Annealings of each guess until then (none is given up whose best is as good as the best of all
#: but for this share), and rounds of them before the search moves on.
_RUNS, _CLOSE, _MOST_ROUNDS = 2, 0.03, 8
#: So many starts that cost the same as the best, but for this share, are enough.
_MET, _SAME = 3, 1e-3
#: Sets of memories (where some may be led past) and tilings that starts are built for; of more,
#: evenly spaced ones.
_MOST_FAMILIES = 12
#: The guess that steps of the unit take the time.
_STEPS_TAKE_IT = ""


class NothingFits(Exception):  # noqa: N818 - a signal to decide otherwise, not an error
    """No start fits, so perhaps no mapping does."""


class Starts:
    """Ends of annealings, each priced, and the guesses that may still be right."""

    def __init__(self, space: Candidates, rng: np.random.Generator) -> None:
        self.space = space
        self.rng = rng
        families = (_Family(space, numbers) for numbers in _families(space.orders))
        self.left = [Guess(family, taking) for family in families for taking in family.flows]
        self._steps = max(_FEWEST_STEPS, _STEPS // len(self.left))

    def first(self) -> list[Candidate]:
        """Starts, best first; ``NothingFits`` if there is none."""
        found: list[Candidate] = []
        for _ in range(_MOST_ROUNDS):
            found += self.more()
            if self._is_met(found):
                break
        if not found:
            raise NothingFits
        return sorted(dict.fromkeys(found), key=self.space.value)

    def more(self) -> list[Candidate]:
        """One of each guess that is left."""
        ends = [self._end(guess) for guess in self.left]
        if self.left[0].runs % _RUNS == 0:
            self.left = self._promising()
            self._steps = min(2 * self._steps, _MOST_STEPS)
        return [end for end in ends if end is not None]

    def _promising(self) -> list[Guess]:
        """The better half, and what is close to the best."""
        ranked = sorted(self.left, key=_best_value)
        half, close = (len(ranked) + 1) // 2, (1.0 + _CLOSE) * ranked[0].best_value
        return ranked[:half] + [guess for guess in ranked[half:] if guess.best_value <= close]

    def _end(self, guess: Guess) -> Candidate | None:
        return guess.start(self.space, self._steps, int(self.rng.integers(1 << 32)))

    def _is_met(self, found: list[Candidate]) -> bool:
        """Did enough annealings end as well as the best?"""
        values = [self.space.value(end) for end in found]
        return sum(value <= (1.0 + _SAME) * min(values) for value in values) >= _MET


@dataclass(slots=True, eq=False)
class Guess:
    """What may take the time, under some orders of stages: a memory, or the unit's steps."""

    family: _Family
    taking: str
    best_value: float = math.inf
    runs: int = 0

    def start(self, space: Candidates, steps: int, seed: int) -> Candidate | None:
        """Another, priced, if annealing meets any mapping that fits."""
        end = self.family.start(self.taking, self.runs, steps, seed)
        self.runs += 1
        if end is not None:
            self.best_value = min(self.best_value, space.value(end))
        return end


def _best_value(guess: Guess) -> float:
    return guess.best_value


def _families(orders: Sequence[StageOrder]) -> list[list[int]]:
    """The numbers of orders of the same stages with the same tilings, for some of these."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for number, order in enumerate(orders):
        chains = (id(order.tilings(dim).chains) for dim in order.run.operator.extents)
        alike.setdefault((id(order.run), *chains), []).append(number)
    families = list(alike.values())
    some = np.linspace(0, len(families) - 1, min(len(families), _MOST_FAMILIES))
    return [families[i] for i in some.astype(int)]


class _Family:
    """Orders of the same stages with the same tilings, and what is counted under them."""

    def __init__(self, space: Candidates, numbers: list[int]) -> None:
        self.run = space.run
        self.numbers = numbers
        energy_alone = space.objective == pricing.ENERGY
        self.objective = pricing.ENERGY if energy_alone else pricing.EDP
        some = [space.orders[number] for number in numbers]
        everything = terms(some[0], self._coefficients(None, 1.0))
        deciding = decisive(everything.whole)
        self.flows = {
            taking: [
                compacted(flows(self._coefficients(taking, ratio).model(some[0])), deciding)[1]
                for ratio in _WORD_RATIOS
            ]
            for taking in self._guesses()
        }
        self.counted = counted(some, everything.columns)

    def _guesses(self) -> tuple[str, ...]:
        shared = [memory.name for memory in self.run.memories if not memory.replicated_over]
        return (_STEPS_TAKE_IT, *(shared if self.objective == pricing.EDP else ()))

    def _coefficients(self, taking: str | None, ratio: float) -> Coefficients:
        words = _Words({m.name: n for n, m in enumerate(self.run.memories)}, taking, ratio)
        return Coefficients(run=self.run, leakage_w=0.0, price=words, objective=self.objective)

    def start(self, taking: str, number: int, steps: int, seed: int) -> Candidate | None:
        """Where an annealing ends, if it meets anything that fits."""
        counts, costs = self.counted.counts, self.flows[taking][number % len(_WORD_RATIOS)]
        rows = self._smallest()
        order, _ = anneal(counts, costs, rows, seed, steps)
        if order < 0:
            return None
        settle(counts, costs, order, rows)
        at = zip(self.counted.tilings, rows - counts.first[:-1], strict=True)
        return Candidate(self.numbers[order], tuple(int(some[row]) for some, row in at))

    def _smallest(self) -> IntArray:
        """The smallest tiles, nothing unrolled."""
        counts = self.counted.counts
        sizes = counts.logs.sum(axis=1)
        parts = np.split(sizes, counts.first[1:-1])
        return np.array([np.argmin(part) for part in parts]) + counts.first[:-1]


@dataclass(frozen=True, slots=True)
class _Words:
    """A price list that counts words, weighted by the level of their memory, as energy, and as
    time what is guessed to take it (everything, if that is ``None``)."""

    levels: dict[str, int]
    taking: str | None
    ratio: float

    def __call__(self, component: Component) -> Price:
        takes_time = Fraction(int(self.taking in (component.name, None)))
        if not isinstance(component, Memory):
            return Price(step_ps=int(self.taking in (_STEPS_TAKE_IT, None)))
        weight = self.ratio ** -self.levels[component.name]
        return Price(
            read_pj_per_bit=weight,
            write_pj_per_bit=weight,
            read_ps_per_bit=takes_time,
            write_ps_per_bit=takes_time,
            shared_port=component.shared_port,
        )

"""Q-learning over moves: the network proposes, the cost function judges.

States, actions and rewards are HASCO's in kind (ISCA 2021): a mapping, a small change of one of
its factors, and what that gained. The reward is the logarithm of the ratio of costs: a gain of
a factor counts the same for every layer, where HASCO's ``tanh(old - new)`` of cycles only says
whether there was one.
"""

from __future__ import annotations

import math

import numpy as np

from mapper.moves import Moves
from mapper.search.annealing import TEMPERATURE
from mapper.search.candidates import Candidate, Candidates
from mapper.search.pricing import FloatArray
from mapper.search.q_features import Encoder, Features
from mapper.search.q_network import Experience, QNetwork
from mapper.search.walks import Walker, is_idle, walk

#: A random step is taken with this probability, at the beginning and at the end of the budget.
_EXPLORE, _EXPLORE_LAST = 0.3, 0.1
#: Differences of values (logarithms of cost) below which steps are chosen about alike.
_EVENNESS = 0.05
#: What the chance of a step falls to each time it leads to nothing new.
_WEARINESS = 0.5
#: Mappings whose features are kept.
_SEEN = 32
#: Rewards are cut off here: a factor of e either way.
_MOST = 1.0


def learn(space: Candidates, rng: np.random.Generator) -> None:
    """From the weights that ship with the tool, which go on learning."""
    Learner(space, QNetwork.trained(), rng).run()


class Learner:
    """One search, and the network that it uses and improves."""

    def __init__(self, space: Candidates, network: QNetwork, rng: np.random.Generator) -> None:
        self.space = space
        self.network = network
        self.rng = rng
        self.moves = Moves(space.orders, space.fits)
        self.encoder = Encoder(space, self.moves)
        self._seen: dict[Candidate, Features] = {}
        #: Of each step from ``_at``, until the network changes.
        self._chances: FloatArray = np.empty(0)
        self._at: Candidate | None = None

    def run(self) -> None:
        """Until the budget is spent (``BudgetSpent``) or no move leads to anything new."""
        walk(self.space, self._stride, self.rng)

    def _stride(self, walker: Walker) -> bool:
        current = walker.current
        number, found = self._proposed(current)
        if found is None or is_idle(self.space, found, self.rng):
            if number is not None:
                self._chances[number] *= _WEARINESS
            return False
        heat = TEMPERATURE * (1 - self.space.calls / self.space.budget)
        walker.take(self.space, found, heat, float(self.rng.random()))
        if number is not None:
            self._learn(current, number, found)
        return True

    def _learn(self, current: Candidate, number: int, found: Candidate) -> None:
        """From what a step gained."""
        gained = math.log(self.space.value(current) / self.space.value(found))
        reward = max(-_MOST, min(_MOST, gained))
        tried = self._rows(current)[number]
        self.network.remember(Experience(tried, reward, self._rows(found)))
        self.network.learn(self.rng)
        self._at = None

    def _rows(self, candidate: Candidate) -> Features:
        """Of a candidate that was priced; kept until another is asked for."""
        if self._seen.get(candidate) is None:
            if len(self._seen) > _SEEN:
                self._seen.clear()
            self._seen[candidate] = self.encoder.rows(candidate)
        return self._seen[candidate]

    def _proposed(self, current: Candidate) -> tuple[int | None, Candidate | None]:
        """A step by its promise, or a random move (which may reorder stages)."""
        spent = self.space.calls / self.space.budget
        if self.rng.random() < _EXPLORE + (_EXPLORE_LAST - _EXPLORE) * spent:
            return None, self.moves.near(current, self.rng)
        if self._at != current:
            values = self.network.values(self._rows(current)) / _EVENNESS
            self._at, self._chances = current, np.exp(values - values.max()).astype(np.float64)
        chances = self._chances
        number = int(self.rng.choice(len(chances), p=chances / chances.sum()))
        return number, self.moves.taken(current, self.moves.steps[number], self.rng)

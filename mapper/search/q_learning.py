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
from mapper.search.candidates import Candidate, Candidates
from mapper.search.q_features import Encoder, Features
from mapper.search.q_network import Experience, QNetwork
from mapper.search.starts import evaluated_starts

#: A random step is taken with this probability, at the beginning and at the end of the budget.
_EXPLORE, _EXPLORE_LAST = 0.3, 0.1
#: Differences of values (logarithms of cost) below which steps are chosen about alike.
_EVENNESS = 0.05
#: As in annealing: how much worse is accepted, falling to zero with the budget.
_TEMPERATURE = 0.1
_PATIENCE, _VAIN = 40, 2000
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

    def run(self) -> None:
        """Until the budget is spent (``BudgetSpent``) or no move leads to anything new."""
        current = evaluated_starts(self.space)[0]
        rows = self.encoder.rows(current)
        stale = vain = 0
        while vain < _VAIN:
            number, found = self._proposed(current, rows)
            if found is None or self.space.is_known(found):
                vain += 1
                continue
            vain, before = 0, self.space.best
            reward, following = self._tried(current, found)
            if number is not None:
                self.network.remember(Experience(rows[number], reward, following))
                self.network.learn(self.rng)
            if self._accepted(reward):
                current, rows = found, following
            stale = stale + 1 if self.space.best is before else 0
            if stale > _PATIENCE and self.space.best is not None:
                current, stale = self.space.best, 0
                rows = self.encoder.rows(current)

    def _proposed(self, current: Candidate, rows: Features) -> tuple[int | None, Candidate | None]:
        """A step by its promise, or a random move (which may reorder stages)."""
        spent = self.space.calls / self.space.budget
        if self.rng.random() < _EXPLORE + (_EXPLORE_LAST - _EXPLORE) * spent:
            return None, self.moves.near(current, self.rng)
        values = self.network.values(rows) / _EVENNESS
        chances = np.exp(values - values.max()).astype(np.float64)
        number = int(self.rng.choice(len(chances), p=chances / chances.sum()))
        return number, self.moves.taken(current, self.moves.steps[number], self.rng)

    def _tried(self, current: Candidate, found: Candidate) -> tuple[float, Features]:
        old, new = self.space.value(current), self.space.value(found)
        reward = max(-_MOST, min(_MOST, math.log(old / new)))
        return reward, self.encoder.rows(found)

    def _accepted(self, reward: float) -> bool:
        heat = _TEMPERATURE * (1 - self.space.calls / self.space.budget)
        return reward >= 0 or (heat > 0 and bool(self.rng.random() < math.exp(reward / heat)))

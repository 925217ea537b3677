"""Uniform sampling without replacement: the baseline of every comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arch.schema import StrictModel
from dse.samplers.base import Observation, Suggestion
from dse.space import Space

#: Draws for one suggestion before the nearest new point is taken instead (the space is then
#: all but exhausted).
DRAWS = 100


class RandomOptions(StrictModel):
    """Takes no options."""


class RandomSampler:
    def __init__(self, space: Space, objectives: int, options: RandomOptions) -> None:
        self._space = space

    def suggest(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
        generator = np.random.default_rng(seed)
        taken = {o.point for o in history}
        found = []
        for _ in range(count):
            draws = (self._space.sample(generator) for _ in range(DRAWS))
            point = next((p for p in draws if p not in taken), self._space.sample(generator))
            taken.add(point)
            found.append(Suggestion(point=point))
        return found

"""Samplers that fit a model, once there are points to fit it to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from pydantic import Field

from arch.schema import StrictModel
from dse.samplers.base import Observation, Suggestion
from dse.samplers.design import halton
from dse.space import Space


class ModelledOptions(StrictModel):
    """``startup``: how many points cover the space evenly before the first model."""

    startup: int = Field(default=10, ge=2)


Options = TypeVar("Options", bound=ModelledOptions)


class ModelledSampler(ABC, Generic[Options]):
    """Covers the space evenly first, then asks its model."""

    def __init__(self, space: Space, objectives: int, options: Options) -> None:
        self._space = space
        self._objectives = objectives
        self._options = options

    def suggest(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
        if len(history) < self._options.startup:
            return halton(self._space, len(history), count, seed)
        return self._ask(count, history, seed)

    @abstractmethod
    def _ask(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
        """Suggestions of a model of the history."""

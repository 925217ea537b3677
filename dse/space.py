"""The declared design space: every parameter has finitely many values.

So the space can be counted, enumerated, and searched without ever evaluating a point twice.
A point is one index per free parameter; tied parameters follow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Point = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A free parameter: ``values`` as they would stand in the architecture's YAML.

    ``ordered`` values have a direction (sizes, counts, rates); unordered ones are labels.
    ``ties`` are the paths that always take the same value.
    """

    path: str
    values: tuple[Any, ...]
    ordered: bool
    ties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The product of the parameters' values."""

    parameters: tuple[Parameter, ...]

    @property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(len(p.values) for p in self.parameters)

    def overrides(self, point: Point) -> dict[str, Any]:
        """Parameter path -> value, ties included."""
        chosen: dict[str, Any] = {}
        for parameter, index in zip(self.parameters, point, strict=True):
            for path in (parameter.path, *parameter.ties):
                chosen[path] = parameter.values[index]
        return chosen

    def point(self, overrides: Mapping[str, Any]) -> Point:
        """The inverse of ``overrides``; ``KeyError`` or ``ValueError`` for a foreign point."""
        return tuple(p.values.index(overrides[p.path]) for p in self.parameters)

    def contains(self, overrides: Mapping[str, Any]) -> bool:
        """Whether ``overrides`` is one of the points."""
        return all(p.path in overrides and overrides[p.path] in p.values for p in self.parameters)

    def points(self) -> Iterator[Point]:
        """All of them, the last parameter fastest."""
        return itertools.product(*(range(len(p.values)) for p in self.parameters))

    def sample(self, generator: np.random.Generator) -> Point:
        """One point, uniformly."""
        return tuple(int(generator.integers(len(p.values))) for p in self.parameters)

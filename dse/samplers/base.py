"""The sampler interface, and the one rule all samplers share: no point is suggested twice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dse.space import Point, Space
from dse.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A finished trial as samplers see it.

    ``objectives`` are natural logarithms: quantities span decades, and what matters is ratios.
    ``constraints`` are violations, met when <= 0, as log(1 + relative violation).
    """

    point: Point
    objectives: tuple[float, ...]
    constraints: Mapping[str, float]
    sampler_state: Mapping[str, Any]

    @property
    def feasible(self) -> bool:
        return all(violation <= 0 for violation in self.constraints.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A point to evaluate; ``state`` comes back with the observation."""

    point: Point
    state: Mapping[str, Any] = field(default_factory=dict)


class Sampler(Protocol):
    """Suggests points from what is known. It keeps nothing between calls.

    The answer depends only on the arguments: a resumed search therefore goes on exactly as
    an uninterrupted one.
    """

    def suggest(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
        """Up to ``count`` suggestions; repetitions are allowed, ``propose`` replaces them."""
        ...


#: What a trial that never met a limit is taken to have in reserve, on the scale of
#: ``Observation.constraints``: clearly met, without stretching a surrogate model's range.
CLEARLY_MET = -1.0


def observations(
    space: Space, trials: Sequence[Trial], keys: Sequence[str]
) -> tuple[Observation, ...]:
    """Trials in the space that have objectives, with the same constraint names in each."""
    inside = [t for t in trials if t.objectives and space.contains(t.overrides)]
    names = sorted({name for t in inside for name in t.constraints})
    return tuple(_observation(space, t, keys, names) for t in inside)


def known_points(space: Space, trials: Sequence[Trial]) -> frozenset[Point]:
    """Points that were evaluated, whatever came of them."""
    return frozenset(space.point(t.overrides) for t in trials if space.contains(t.overrides))


def _observation(
    space: Space, trial: Trial, keys: Sequence[str], names: Sequence[str]
) -> Observation:
    return Observation(
        point=space.point(trial.overrides),
        objectives=tuple(math.log(trial.objectives[k]) for k in keys),
        constraints={name: _violation(trial.constraints.get(name)) for name in names},
        sampler_state=trial.sampler_state,
    )


def _violation(relative: float | None) -> float:
    if relative is None or relative <= -1:
        return CLEARLY_MET
    return math.log1p(relative)


def round_seed(seed: int, round_number: int) -> int:
    """An independent seed for each round of suggestions."""
    return int(np.random.SeedSequence([seed, round_number]).generate_state(1)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a round of suggestions follows from, beside the sampler.

    ``known`` are all points evaluated so far; ``history`` those that a model can learn from.
    """

    space: Space
    count: int
    history: Sequence[Observation]
    known: frozenset[Point]
    seed: int


def propose(sampler: Sampler, task: Round) -> list[Suggestion]:
    """``count`` suggestions that are new and distinct; fewer when the space is exhausted.

    A suggestion that was evaluated before is replaced by the nearest point that was not
    (fewest steps: one place up or down for an ordered parameter, any other label for an
    unordered one), ties drawn at random.
    """
    known = set(task.known)
    count = min(task.count, task.space.size - len(known))
    if count == 0:
        return []
    generator = np.random.default_rng([task.seed, 1])
    fresh: list[Suggestion] = []
    for suggestion in sampler.suggest(count, task.history, task.seed)[:count]:
        point = nearest_new(task.space, suggestion.point, known, generator)
        known.add(point)
        fresh.append(Suggestion(point=point, state=suggestion.state))
    return fresh


def nearest_new(
    space: Space, point: Point, known: set[Point], generator: np.random.Generator
) -> Point:
    """``point`` itself if unknown, else the nearest unknown one; there must be one."""
    ring, seen = [point], {point}
    while True:
        candidates = [p for p in ring if p not in known]
        if candidates:
            return candidates[int(generator.integers(len(candidates)))]
        outer: dict[Point, None] = {}
        for inner in ring:
            outer.update(dict.fromkeys(p for p in neighbours(space, inner) if p not in seen))
        seen.update(outer)
        ring = list(outer)


def neighbours(space: Space, point: Point) -> Iterator[Point]:
    """Points one step away."""
    for axis, (parameter, index) in enumerate(zip(space.parameters, point, strict=True)):
        places = range(len(parameter.values))
        if parameter.ordered:
            places = range(max(index - 1, 0), min(index + 2, len(parameter.values)))
        for place in places:
            if place != index:
                yield (*point[:axis], place, *point[axis + 1 :])

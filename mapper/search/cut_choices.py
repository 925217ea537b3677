"""Ways to run neighbouring operators as a unit, and which tiles wait for which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mapper.search.units import Cost

#: When each tile of a unit ends.
Ends = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Operators ``start`` to ``end`` - 1 as one unit."""

    start: int
    end: int
    tiles: int
    tile_ps: int
    shared_ps: int
    dynamic_pj: float

    @property
    def busy_ps(self) -> int:
        return self.tiles * self.tile_ps

    def overlaps(self, other: Choice) -> bool:
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """What can be chosen. ``waits[a, b]`` has for each tile of choice ``b`` the number of the last
    tile of ``a`` that must be done before it (-1: none), for all that reads from ``a``."""

    operators: int
    choices: tuple[Choice, ...]
    waits: Mapping[tuple[int, int], tuple[int, ...]]
    cores: int
    leakage_w: float
    objective: str

    def value(self, latency_ps: int, dynamic_pj: float) -> float:
        return self.cost(latency_ps, dynamic_pj).value(self.objective)

    def cost(self, latency_ps: int, dynamic_pj: float) -> Cost:
        return Cost(latency_ps, dynamic_pj + self.leakage_w * latency_ps)

    @cached_property
    def starting(self) -> dict[int, list[int]]:
        """Choices by their first operator."""
        found: dict[int, list[int]] = {at: [] for at in range(self.operators)}
        for number, choice in enumerate(self.choices):
            found[choice.start].append(number)
        return found

    def span(self, choice: int) -> range:
        return range(self.choices[choice].start, self.choices[choice].end)

    @cached_property
    def covering(self) -> list[list[int]]:
        """For each operator the choices that it can be part of."""
        found: list[list[int]] = [[] for _ in range(self.operators)]
        for number in range(len(self.choices)):
            for at in self.span(number):
                found[at].append(number)
        return found

    @cached_property
    def sources(self) -> list[list[int]]:
        """For each choice those that it may have to wait for."""
        found: list[list[int]] = [[] for _ in self.choices]
        for before, after in self.waits:
            found[after].append(before)
        return found

    @cached_property
    def readers(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.choices]
        for before, after in self.waits:
            found[before].append(after)
        return found

    @cached_property
    def last_read(self) -> list[int]:
        """Position up to which each choice's tiles may be waited for."""
        return [max((self.choices[r].start for r in each), default=-1) for each in self.readers]

    def ready(self, choice: int, done: Mapping[int, Ends]) -> list[int]:
        """When what each tile waits for is done."""
        ready = [0] * self.choices[choice].tiles
        for source in self.sources[choice]:
            if source in done:
                ends = done[source]
                for tile, last in enumerate(self.waits[source, choice]):
                    if last >= 0 and ends[last] > ready[tile]:
                        ready[tile] = ends[last]
        return ready

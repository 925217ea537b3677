"""Which search, how long and with which random numbers; the searches are in ``methods``."""

from __future__ import annotations

from dataclasses import dataclass

from arch.errors import InputError, Problem, unknown

#: ``heuristic`` stands for ``annealing``.
METHODS = ("exact", "heuristic", "annealing", "climbing", "genetic", "q_learning", "random")

#: Dataflows by name (see ``presets``); here so that naming them loads nothing.
PRESET_NAMES = ("weight_stationary", "output_stationary", "row_stationary")

#: Calls per operator: those of HASCO's release for a layer (64 to begin with, then 10 times 36).
BUDGET = 424


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A search by name. ``budget`` (calls per operator) and ``seed`` are not for ``exact``;
    ``threads`` search different operators at the same time."""

    name: str = "exact"
    budget: int = BUDGET
    seed: int = 1
    threads: int = 1

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise InputError(Problem(unknown("search", self.name, METHODS), where="search"))


EXACT = Method()

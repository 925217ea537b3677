"""A study: what was asked, every trial, and the answers that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse.config import SearchConfig
from dse.pareto import non_dominated
from dse.space import Space
from dse.trial import Trial

#: Why a search ended: every point of the space was evaluated.
EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A finished, interrupted or running search, as read from its run directory.

    ``start`` is the base architecture as it is (trial 0; its overrides are empty when the base
    lies outside the space). ``trials`` are the search's own, numbered from 1. ``stopped`` says
    why the search ended: ``budget``, ``exhausted`` (every point of the space was evaluated),
    ``interrupted`` or ``running``. ``workloads`` are the networks' fingerprints then, by
    specification.
    """

    config: SearchConfig
    start: Trial
    trials: tuple[Trial, ...]
    run_dir: Path
    stopped: str
    workloads: Mapping[str, str]

    @property
    def space(self) -> Space:
        return self.config.space

    @property
    def feasible(self) -> tuple[Trial, ...]:
        """Trials that meet every constraint, the start included."""
        return tuple(t for t in (self.start, *self.trials) if t.feasible)

    @property
    def objective_keys(self) -> tuple[str, ...]:
        """Keys of ``Trial.objectives`` that the search minimises, in the configured order."""
        return self.config.objective_keys

    @property
    def cost_model_calls(self) -> int:
        """All calls, mapping searches and infeasible trials included."""
        return sum(t.cost_model_calls for t in (self.start, *self.trials))

    @property
    def seconds(self) -> float:
        """Evaluation time summed over trials (more than wall time with several workers)."""
        return sum(t.seconds for t in (self.start, *self.trials))

    @property
    def engines(self) -> tuple[str, ...]:
        """What simulated the trials: each engine that did, none where nothing was simulated."""
        documents = (d for t in (self.start, *self.trials) for d in (t.metrics or {}).values())
        return tuple(sorted({engine for d in documents if (engine := d.get("engine"))}))

    def pareto(self) -> tuple[Trial, ...]:
        """Feasible trials that no other beats in every objective, by the first objective.

        Of trials with equal objectives the earliest stands for all.
        """
        front = non_dominated(self.feasible, self.objective_keys)
        return tuple(
            sorted(front, key=lambda t: tuple(t.objectives[k] for k in self.objective_keys))
        )

    def best(self, objective: str) -> Trial | None:
        """The feasible trial with the least ``objective`` (a key such as ``latency_ps``).

        Ties go to the one that is better in the other objectives; ``None`` without any.
        """
        order = (objective, *(k for k in self.objective_keys if k != objective))
        return min(self.feasible, key=lambda t: tuple(t.objectives[k] for k in order), default=None)

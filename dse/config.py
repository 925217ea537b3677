"""The search configuration: what to search, over what, towards what, within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dse.quantities import Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedWorkload:
    """``spec`` as ``load_workload`` takes it. Latency and energy are weighted sums."""

    spec: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """``quantity <= limit`` (in the unit of the quantity's key); ``text`` as it was written."""

    quantity: Quantity
    limit: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingSettings:
    """What the mapping search minimises for each operator, and how hard it tries."""

    objective: str
    effort: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerSettings:
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """A checked search configuration.

    ``text`` is the YAML it came from; ``hash`` identifies everything that decides the results
    (not ``trials``: a budget may be extended, and not ``name`` or ``description``).
    """

    name: str
    description: str
    workloads: tuple[WeightedWorkload, ...]
    arch: str
    mapping: MappingSettings
    objectives: tuple[Quantity, ...]
    constraints: tuple[Constraint, ...]
    fidelity: str
    sampler: SamplerSettings
    trials: int
    batch: int
    seed: int
    path: Path
    text: str = field(repr=False)
    hash: str

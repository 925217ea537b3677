"""The search configuration: what to search, over what, towards what, within which limits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from arch.registry import family_named
from arch.spec import Architecture
from dse.quantities import QUANTITIES, Quantity
from dse.space import Parameter, Space

#: Keys that do not decide what a trial is: a budget may be extended, a study renamed.
NOT_DECISIVE = ("name", "description", "trials", "text")

#: The parameter that chooses one of the workloads.
WORKLOAD = "workload"


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
    """What the mapping search minimises for each operator, and how it searches.

    ``budget`` is calls per operator; the exact search takes as many as it needs. With ``fusion``
    the whole schedule is searched: groups of operators over tiles, and tensors that stay on the
    chip.
    """

    objective: str
    method: str
    budget: int
    fusion: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerSettings:
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """A checked search configuration.

    ``base`` is the checked document of the architecture ``arch``, so that a finished study
    does not depend on a file that may change. ``text`` is the YAML the configuration came from.
    """

    name: str
    description: str
    workloads: tuple[WeightedWorkload, ...]
    arch: str
    base: Mapping[str, Any] = field(repr=False)
    space: Space
    mapping: MappingSettings
    objectives: tuple[Quantity, ...]
    constraints: tuple[Constraint, ...]
    fidelity: str
    sampler: SamplerSettings
    trials: int
    batch: int
    seed: int
    text: str = field(repr=False)

    @property
    def hash(self) -> str:
        """Identifies everything that decides the results of a trial, the base included."""
        decisive = {k: v for k, v in to_plain(self).items() if k not in NOT_DECISIVE}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def objective_keys(self) -> tuple[str, ...]:
        return tuple(o.key for o in self.objectives)

    def architecture(self, overrides: Mapping[str, Any]) -> Architecture:
        """The base architecture with ``overrides``, but for the choice of a workload."""
        hardware = {path: value for path, value in overrides.items() if path != WORKLOAD}
        architecture: Architecture = family_named(self.base["family"]).rebuild(self.base, hardware)
        return architecture

    @property
    def chooses_workload(self) -> bool:
        """Whether each design runs one of the workloads, instead of all of them."""
        return any(parameter.path == WORKLOAD for parameter in self.space.parameters)

    def workloads_of(self, overrides: Mapping[str, Any]) -> tuple[WeightedWorkload, ...]:
        """What a design runs; the first workload where none was chosen yet."""
        if not self.chooses_workload:
            return self.workloads
        chosen = overrides.get(WORKLOAD, self.workloads[0].spec)
        return tuple(w for w in self.workloads if w.spec == chosen)


def to_plain(config: SearchConfig) -> dict[str, Any]:
    """The configuration as JSON data; ``from_plain`` is its inverse."""
    return {
        "name": config.name,
        "description": config.description,
        "workloads": [{"workload": w.spec, "weight": w.weight} for w in config.workloads],
        "arch": config.arch,
        "base": config.base,
        "parameters": [
            {"path": p.path, "values": list(p.values), "ordered": p.ordered, "ties": list(p.ties)}
            for p in config.space.parameters
        ],
        "mapping": {
            "objective": config.mapping.objective,
            "method": config.mapping.method,
            "budget": config.mapping.budget,
            "fusion": config.mapping.fusion,
        },
        "objectives": [o.name for o in config.objectives],
        "constraints": [
            {"quantity": c.quantity.name, "limit": c.limit, "text": c.text}
            for c in config.constraints
        ],
        "fidelity": config.fidelity,
        "sampler": {"name": config.sampler.name, **config.sampler.options},
        "trials": config.trials,
        "batch": config.batch,
        "seed": config.seed,
        "text": config.text,
    }


def from_plain(data: Mapping[str, Any]) -> SearchConfig:
    """The configuration of a study read back; it was checked when it was made."""
    options = {k: v for k, v in data["sampler"].items() if k != "name"}
    return SearchConfig(
        name=data["name"],
        description=data["description"],
        workloads=tuple(
            WeightedWorkload(spec=w["workload"], weight=w["weight"]) for w in data["workloads"]
        ),
        arch=data["arch"],
        base=data["base"],
        space=Space(parameters=tuple(_parameter(p) for p in data["parameters"])),
        mapping=MappingSettings(**data["mapping"]),
        objectives=tuple(QUANTITIES[name] for name in data["objectives"]),
        constraints=tuple(
            Constraint(quantity=QUANTITIES[c["quantity"]], limit=c["limit"], text=c["text"])
            for c in data["constraints"]
        ),
        fidelity=data["fidelity"],
        sampler=SamplerSettings(name=data["sampler"]["name"], options=options),
        trials=data["trials"],
        batch=data["batch"],
        seed=data["seed"],
        text=data["text"],
    )


def _parameter(data: Mapping[str, Any]) -> Parameter:
    return Parameter(
        path=data["path"],
        values=tuple(data["values"]),
        ordered=data["ordered"],
        ties=tuple(data["ties"]),
    )

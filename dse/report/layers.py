"""Layer by layer and component by component: where time, energy and area go.

A study over several workloads is shown as one list of layers; latency and energy of each are
multiplied by its workload's weight, so that they add up to the objectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dse.config import SearchConfig, WeightedWorkload
from dse.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One operator of one workload in one design."""

    name: str
    latency_ps: float
    energy_pj: float
    bound_by: str
    mapping: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPair:
    """The same operator in the starting and in the chosen design."""

    start: Layer
    chosen: Layer

    @property
    def name(self) -> str:
        return self.start.name

    @property
    def saved_ps(self) -> float:
        """Positive where the chosen design is faster."""
        return self.start.latency_ps - self.chosen.latency_ps


def layers(config: SearchConfig, trial: Trial) -> tuple[Layer, ...]:
    """All operators in execution order; empty where nothing was simulated."""
    several = len(config.workloads) > 1
    return tuple(
        Layer(
            name=f"{workload.spec} {operator['name']}" if several else operator["name"],
            latency_ps=operator["latency_ps"] * workload.weight,
            energy_pj=operator["energy_pj"] * workload.weight,
            bound_by=operator["bound_by"],
            mapping=operator.get("mapping"),
        )
        for workload, document in _documents(config, trial)
        for operator in document["operators"]
    )


def _documents(
    config: SearchConfig, trial: Trial
) -> Iterator[tuple[WeightedWorkload, Mapping[str, Any]]]:
    for workload in config.workloads_of(trial.overrides):
        if trial.metrics is not None:
            yield workload, trial.metrics[workload.spec]


def pairs(config: SearchConfig, start: Trial, chosen: Trial) -> tuple[LayerPair, ...]:
    """Layers of both designs side by side; empty unless both were simulated, and alike (designs
    that fuse different operators have no common layers)."""
    before, after = layers(config, start), layers(config, chosen)
    if [layer.name for layer in before] != [layer.name for layer in after]:
        return ()
    return tuple(LayerPair(start=a, chosen=b) for a, b in zip(before, after, strict=True))


def time_by_bound(config: SearchConfig, trial: Trial) -> dict[str, float]:
    """Latency by the component that limits it, in picoseconds."""
    times: dict[str, float] = {}
    for layer in layers(config, trial):
        times[layer.bound_by] = times.get(layer.bound_by, 0.0) + layer.latency_ps
    return times


def component_sum(config: SearchConfig, trial: Trial, field: str) -> dict[str, float]:
    """A field of the component records (``energy_pj``, ``read_bytes`` ...), weighted and summed.

    Components' energies include their leakage, so they add up to the energy of the run.
    """
    sums: dict[str, float] = {}
    for workload, document in _documents(config, trial):
        for name, record in document["components"].items():
            sums[name] = sums.get(name, 0.0) + record[field] * workload.weight
    return sums


def traffic_by_component(config: SearchConfig, trial: Trial) -> dict[str, float]:
    """Bytes read and written by each component."""
    reads = component_sum(config, trial, "read_bytes")
    writes = component_sum(config, trial, "write_bytes")
    return {name: reads[name] + writes[name] for name in reads}


def utilization(config: SearchConfig, trial: Trial) -> dict[str, float]:
    """Busy share of each component, over all workloads' time."""
    busy = component_sum(config, trial, "busy_ps")
    total = sum(layer.latency_ps for layer in layers(config, trial))
    return {name: time / total for name, time in busy.items()} if total else {}

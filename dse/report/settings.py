"""Parameter values of designs: what a path such as ``gbuf.size`` is set to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from arch.errors import InputError
from arch.registry import family_named
from arch.spec import Architecture
from dse.config import WORKLOAD, SearchConfig
from dse.space import Space
from dse.trial import Trial


def with_workload(config: SearchConfig, trial: Trial, architecture: Architecture) -> Architecture:
    """Where the workload is a parameter, a document that says which one the trial ran."""
    if not config.chooses_workload:
        return architecture
    chosen = config.workloads_of(trial.overrides)[0].spec
    return replace(architecture, document={**architecture.document, WORKLOAD: chosen})


def setting(architecture: Architecture, path: str) -> Any:
    """The value at an override path: the architecture's own, or the default."""
    return family_named(architecture.family).value(architecture.document, path)


def all_paths(space: Space) -> tuple[str, ...]:
    """Free and tied parameters, each tie behind the parameter that it follows."""
    return tuple(path for p in space.parameters for path in (p.path, *p.ties))


def changed_paths(before: Architecture, after: Architecture, space: Space) -> frozenset[str]:
    """Parameters whose values make a difference to the hardware.

    ``16 GB/s`` where the other design has ``16 B/cycle`` at 1 GHz makes none.
    """
    values = ((p, setting(before, p), setting(after, p)) for p in all_paths(space))
    return frozenset(p for p, old, new in values if old != new and _matters(after, p, old))


def _matters(architecture: Architecture, path: str, other: Any) -> bool:
    """Whether the architecture would be another (or impossible) with the other value."""
    if other is None:
        return True
    try:
        return architecture.with_overrides({path: other}) != architecture
    except InputError:
        return True

"""Parameter values of designs: what a path such as ``gbuf.size`` is set to."""

from __future__ import annotations

from typing import Any

from arch.spec import Architecture
from dse.space import Space
from dse.study import Study


def setting(architecture: Architecture, path: str) -> Any:
    """The value at an override path in the architecture's own document."""
    component, dot, key = path.partition(".")
    document = architecture.document
    return document["components"][component].get(key) if dot else document.get(path)


def all_paths(space: Space) -> tuple[str, ...]:
    """Free and tied parameters, each tie behind the parameter that it follows."""
    return tuple(path for p in space.parameters for path in (p.path, *p.ties))


def changed_settings(
    before: Architecture, after: Architecture, study: Study
) -> tuple[tuple[str, Any, Any], ...]:
    """Path, value before, value after, for each parameter that differs."""
    values = ((p, setting(before, p), setting(after, p)) for p in all_paths(study.space))
    return tuple((path, old, new) for path, old, new in values if old != new)

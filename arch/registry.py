"""Hardware families by name. Each module in ``arch/families`` registers its own.

A family that fails to import, or two of one name, stop the program: a study must never run
silently with another model than the one it names.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from arch.errors import InputError, Problem, unknown

_FAMILIES: dict[str, Any] = {}
_Family = TypeVar("_Family")


def register_family(name: str) -> Callable[[type[_Family]], type[_Family]]:
    """Class decorator: makes one instance of the class the family ``name``."""

    def register(family: type[_Family]) -> type[_Family]:
        if name in _FAMILIES:
            raise RuntimeError(
                f"family '{name}' is registered twice: {type(_FAMILIES[name])} and {family}"
            )
        _FAMILIES[name] = family()
        return family

    return register


@cache
def _import_families() -> None:
    package = importlib.import_module("arch.families")
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"arch.families.{module}")


def family_names() -> tuple[str, ...]:
    _import_families()
    return tuple(sorted(_FAMILIES))


def family_named(name: str) -> Any:
    """The ``arch.family.Family`` of that name (typed loosely: records do not know families)."""
    names = family_names()
    if name not in names:
        raise InputError(Problem(unknown("family", name, names), where="family"))
    return _FAMILIES[name]

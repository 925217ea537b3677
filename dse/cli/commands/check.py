"""``dse check``: are these files sound?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from arch.errors import InputError, Problem
from arch.load import load_architecture
from arch.registry import family_named, family_names
from arch.strict_yaml import read
from dse.cli.console import results
from dse.load_config import load_search
from dse.search_schema import SearchModel
from mapper.workload.load import WorkloadFile, check_workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of file: the keys that only it has, and its check."""

    title: str
    keys: frozenset[str]
    check: Callable[[Path], Any]


def kinds() -> tuple[Kind, ...]:
    schemas = [family_named(name).schema for name in family_names()]
    fields = {
        "an architecture": {key for schema in schemas for key in schema.model_fields},
        "a search": set(SearchModel.model_fields),
        "a workload": set(WorkloadFile.model_fields),
    }
    checks: tuple[Callable[[Path], Any], ...] = (load_architecture, load_search, _check_workload)
    common = set.intersection(*fields.values())
    return tuple(
        Kind(title=title, keys=frozenset(keys - common), check=check)
        for (title, keys), check in zip(fields.items(), checks, strict=True)
    )


def _check_workload(path: Path) -> None:
    check_workload(str(path))


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", show_default=False)],
) -> None:
    """Check configuration files without running anything.

    Architectures, searches and workloads are told apart by their keys. Every problem of every
    file is reported.
    """
    problems: list[Problem] = []
    sound: list[str] = []
    for path in files:
        try:
            kind = kind_of(path)
            kind.check(path)
            sound.append(f"{path}: sound, {kind.title}")
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    results().print("\n".join(sound))


def kind_of(path: Path) -> Kind:
    """The kind whose own keys the file has most of."""
    if not path.exists():
        raise InputError(Problem("no such file", file=path))
    document = read(path)
    keys = set(document.data) if isinstance(document.data, Mapping) else set()
    likely = max(kinds(), key=lambda kind: len(kind.keys & keys))
    if not likely.keys & keys:
        told = "; ".join(f"{kind.title} has {', '.join(sorted(kind.keys))}" for kind in kinds())
        raise InputError(document.problem((), f"has no key that says what it is: {told}"))
    return likely

"""``dse list``: what ships with the tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from arch import catalog
from arch.strict_yaml import read
from dse.cli import arguments, inputs
from dse.cli.console import print_json, results, table
from mapper.workload import zoo
from mapper.workload.parameters import usage
from mapper.workload.single import SINGLE_OPERATORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the list. ``parameters`` as they may follow ``name:``, with their defaults."""

    name: str
    description: str
    parameters: str = ""


def run(
    kind: Annotated[str, typer.Argument(metavar="archs|workloads|searches")],
    as_json: arguments.Json = False,
) -> None:
    """List shipped architectures, workloads or searches."""
    entries = list(LISTS[inputs.choice("KIND", kind, tuple(LISTS))]())
    fields = Entry.__slots__
    if as_json:
        print_json({kind: [{f: getattr(entry, f) for f in fields} for entry in entries]})
    else:
        columns = [f for f in fields if any(getattr(entry, f) for entry in entries)]
        rows = [[getattr(entry, column) for column in columns] for entry in entries]
        results().print(table("", columns, rows))


def files(kind: str) -> Iterator[Entry]:
    """Shipped files of a kind, with the description that each has."""
    for name in catalog.names(kind):
        data = read(catalog.find(kind, name)).data
        yield Entry(name=name, description=str(data["description"]))


def workloads() -> Iterator[Entry]:
    """Networks and single operators with their parameters, then shipped files."""
    named = (*map(zoo.describe, zoo.names()), *SINGLE_OPERATORS.values())
    for entry in named:
        parameters = usage(entry.name, entry.parameters).removeprefix(f"{entry.name}:")
        yield Entry(name=entry.name, description=entry.description, parameters=parameters)
    yield from files("workload")


LISTS: dict[str, Callable[[], Iterator[Entry]]] = {
    "archs": lambda: files("arch"),
    "workloads": workloads,
    "searches": lambda: files("search"),
}

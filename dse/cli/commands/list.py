"""``dse list``: what ships with the tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from arch import catalog
from arch.strict_yaml import read
from dse import stream_workload
from dse.cli import arguments, inputs
from dse.cli.console import print_json, results, table
from mapper.workload.load import listings


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the list; ``parameters`` as they may follow ``name:``."""

    name: str
    description: str
    parameters: str = ""


def run(
    kind: Annotated[str, typer.Argument(metavar="archs|workloads|searches")],
    as_json: arguments.Json = False,
) -> None:
    """List shipped architectures, workloads or searches."""
    entries = list(LISTS[inputs.choice("KIND", kind, tuple(LISTS))]())
    if as_json:
        print_json({kind: [asdict(entry) for entry in entries]})
    else:
        rows = [(entry.name, entry.description, entry.parameters) for entry in entries]
        columns = ("name", "description", "parameters, with their defaults")
        used = len(columns) if any(parameters for *_, parameters in rows) else 2
        results().print(table("", columns[:used], [row[:used] for row in rows]))


def files(kind: str) -> Iterator[Entry]:
    """Shipped files of a kind, with the description that each has."""
    for name in catalog.names(kind):
        data = read(catalog.find(kind, name)).data
        yield Entry(name=name, description=str(data["description"]))


def workloads() -> Iterator[Entry]:
    for entry in listings():
        parameters = entry.usage.removeprefix(entry.name).removeprefix(":")
        yield Entry(name=entry.name, description=entry.description, parameters=parameters)
    yield Entry(
        name=stream_workload.NAME,
        description=stream_workload.DESCRIPTION,
        parameters=stream_workload.USAGE,
    )


LISTS: dict[str, Callable[[], Iterator[Entry]]] = {
    "archs": lambda: files("arch"),
    "workloads": workloads,
    "searches": lambda: files("search"),
}

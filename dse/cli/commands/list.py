"""``dse list``: what ships with the tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

import typer

from arch import catalog
from arch.errors import InputError, Problem, unknown
from arch.strict_yaml import read
from dse import stream_workload
from dse.cli import arguments, inputs
from dse.cli.console import print_json, results, table
from mapper.workload.load import FILES, OPERATORS, listings, other_names, public_name
from mapper.workload.parameters import Parameter

#: Columns of a terminal, whatever is wider is wrapped.
WIDEST = 100

#: Of what is allowed: more characters are printed once.
LONG = 40

#: Groups of workloads that come last, in this order; networks are before them.
LAST = (OPERATORS, "memory traffic", FILES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the list; ``usage`` as it may follow ``name:``."""

    name: str
    description: str
    group: str = ""
    usage: str = ""
    parameters: tuple[Parameter, ...] = ()

    def document(self) -> dict[str, str]:
        grouped = {"group": self.group, "parameters": self.usage} if self.group else {}
        return {"name": self.name, "description": self.description, **grouped}


def run(
    kind: Annotated[str | None, typer.Argument(metavar="archs|workloads|searches")] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A workload: its parameters.")
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """List shipped architectures, workloads or searches.

    Alone it says what can be listed; with the name of a workload, what its parameters are.
    """
    if kind is None:
        _print_overview(as_json=as_json)
        return
    entries = list(LISTS[inputs.choice("KIND", kind, tuple(LISTS))]())
    if name is not None:
        entries = [_chosen(kind, name, entries)]
    if as_json:
        print_json({kind: [entry.document() for entry in entries]})
    elif name is not None:
        _print_parameters(entries[0])
    else:
        _print_groups(entries)


def _chosen(kind: str, name: str, entries: Sequence[Entry]) -> Entry:
    if kind != "workloads":
        message = f"only workloads have parameters; see dse show {name}"
        raise InputError(Problem(message, where="NAME"))
    wanted = public_name(name) or name
    for entry in entries:
        if entry.name == wanted:
            return entry
    names = [entry.name for entry in entries]
    raise InputError(Problem(unknown("workload", name, names), where="NAME"))


def _print_overview(*, as_json: bool) -> None:
    counted = {kind: list(entries()) for kind, entries in LISTS.items()}
    if as_json:
        print_json({kind: len(entries) for kind, entries in counted.items()})
        return
    rows = [
        (f"dse list {kind}", f"{len(entries)}", _kinds(entries))
        for kind, entries in counted.items()
    ]
    _print_table(("command", ">entries", "of which"), rows)


def _kinds(entries: Sequence[Entry]) -> str:
    groups = [(group, len(list(each))) for group, each in groupby(entries, lambda e: e.group)]
    return ", ".join(f"{count} {group}" for group, count in groups if group)


def _print_groups(entries: Sequence[Entry]) -> None:
    """A table for each group, with names in one column; in files, an entry is one line."""
    console = results()
    widest = WIDEST if console.is_terminal else console.width
    width = max(len(entry.name) for entry in entries)
    for group, each in groupby(entries, lambda entry: entry.group):
        rows = [(entry.name.ljust(width), entry.description) for entry in each]
        heading = f"{group} ({len(rows)})" if group else "name"
        _print_table((heading, "description"), rows, widest)
    if entries[0].group:
        console.print("Parameters of one of them: dse list workloads NAME")


def _print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], widest: int = WIDEST
) -> None:
    console = results()
    console.print(table("", columns, rows), width=min(console.width, widest))


def _print_parameters(entry: Entry) -> None:
    console = results()
    console.print(f"{entry.name}: {entry.description}", soft_wrap=True)
    others = other_names(entry.name)
    if others:
        console.print(f"other names: {', '.join(others)}", soft_wrap=True)
    if entry.parameters:
        first: dict[str, str] = {}
        rows = [(p.name, _default(p), _allowed(p, first), p.help) for p in entry.parameters]
        _print_table(("parameter", "default", "allowed", "meaning"), rows)
    elif entry.usage:
        console.print(f"{entry.name}:{entry.usage}", soft_wrap=True)
    else:
        console.print(f"no parameters: its file fixes them (dse show {entry.name})")


def _allowed(parameter: Parameter, first: dict[str, str]) -> str:
    """In full at the ``first`` parameter that it is allowed for, if it is long."""
    text = parameter.allowed
    same = first.setdefault(text, parameter.name)
    return text if same == parameter.name or len(text) <= LONG else f"as {same}"


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "must be given"
    return str(parameter.default_text if parameter.default is None else parameter.default)


def files(kind: str) -> Iterator[Entry]:
    """Shipped files of a kind, with the description that each has."""
    for name in catalog.names(kind):
        data = read(catalog.find(kind, name)).data
        yield Entry(name=name, description=str(data["description"]))


def workloads() -> Iterator[Entry]:
    """By groups: networks as they are defined, then what is no network."""
    found = [
        Entry(
            name=entry.name,
            description=entry.description,
            group=entry.group,
            usage=entry.usage.removeprefix(entry.name).removeprefix(":"),
            parameters=entry.parameters,
        )
        for entry in listings()
    ]
    found.append(
        Entry(
            name=stream_workload.NAME,
            description=stream_workload.DESCRIPTION,
            group=LAST[1],
            usage=stream_workload.USAGE,
        )
    )
    networks = dict.fromkeys(entry.group for entry in found if entry.group not in LAST)
    order = {group: number for number, group in enumerate((*networks, *LAST))}
    yield from sorted(found, key=lambda entry: order[entry.group])


LISTS: dict[str, Callable[[], Iterator[Entry]]] = {
    "archs": lambda: files("arch"),
    "workloads": workloads,
    "searches": lambda: files("search"),
}

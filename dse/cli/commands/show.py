"""``dse show``: a shipped configuration, or what is in a workload."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from arch import catalog
from arch.errors import InputError, Problem, unknown
from dse.cli.console import results, table
from dse.cli.folded import folded_lines
from dse.stream_workload import check_no_stream
from mapper.workload.graph import Workload
from mapper.workload.load import listings, load_workload, public_name
from mapper.workload.operators import Operator

COLUMNS = ("operator", "kind", "loops", ">MACs", "data")


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As dse list prints it.")],
) -> None:
    """Show a shipped configuration or a workload.

    Architectures and searches are printed as files, ready to be copied and changed; of a
    workload, every operator with its loops is listed.
    """
    for kind in ("arch", "search"):
        if name in catalog.names(kind):
            sys.stdout.write(catalog.find(kind, name).read_text(encoding="utf-8"))
            return
    print_workload(load_workload(checked(name)))


def checked(spec: str) -> str:
    """A workload's specification, if that is what it can be."""
    check_no_stream(spec)
    name, _, parameters = spec.partition(":")
    known = [listing.name for listing in listings()]
    is_path = bool(Path(name).suffix) or "/" in name
    is_known = name in known or public_name(name) is not None
    if not (is_known or parameters or is_path):
        choices = [*catalog.names("arch"), *catalog.names("search"), *known]
        raise InputError(Problem(unknown("configuration or workload", name, choices)))
    return spec


def print_workload(workload: Workload) -> None:
    console = results()
    console.print(workload.name)
    console.print(f"  {workload.macs:,} MACs, {workload.parameters:,} parameters")
    console.print(table("", COLUMNS, (operator_row(workload, o) for o in workload.operators)))
    if workload.folded:
        console.print("Merged into neighbours, or without work of their own:")
        for line in folded_lines(workload):
            console.print(f"  {line}", soft_wrap=True)


def operator_row(workload: Workload, operator: Operator) -> tuple[str, ...]:
    loops = " ".join(f"{dim}={extent}" for dim, extent in operator.extents.items())
    macs = f"{operator.macs:,}" if operator.macs else ""
    dtypes = dict.fromkeys(workload.tensor(a.tensor).dtype for a in operator.accesses)
    return operator.name, operator.kind, loops, macs, ", ".join(dtypes)

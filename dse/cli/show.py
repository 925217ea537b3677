"""``dse show``: a shipped configuration, or what is in a workload."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from arch import catalog
from arch.errors import InputError, Problem, unknown
from dse.cli.console import results, table
from mapper.workload import zoo
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.operators import Operator
from mapper.workload.single import SINGLE_OPERATORS

COLUMNS = ("operator", "kind", "loops", ">MACs", "data")


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As dse list prints it.")],
) -> None:
    """Show a shipped configuration or a workload.

    Architectures and searches are printed as files, ready to be copied and changed; of a
    workload, every operator with its loops is listed.
    """
    for kind in catalog.KINDS:
        if name in catalog.names(kind):
            sys.stdout.write(catalog.find(kind, name).read_text(encoding="utf-8"))
            return
    if is_workload(name):
        print_workload(load_workload(name))
        return
    known = [n for kind in catalog.KINDS for n in catalog.names(kind)]
    choices = [*known, *zoo.names(), *SINGLE_OPERATORS]
    raise InputError(Problem(unknown("configuration or workload", name, choices)))


def is_workload(spec: str) -> bool:
    """Whether the part before the parameters names a workload, or a function or file does."""
    name = spec.partition(":")[0]
    return zoo.is_network(name) or name in SINGLE_OPERATORS or name.endswith((".py", ".yaml"))


def print_workload(workload: Workload) -> None:
    console = results()
    console.print(f"{workload.name}")
    console.print(f"  {workload.macs:,} MACs, {workload.parameters:,} parameters")
    console.print(table("", COLUMNS, (operator_row(workload, o) for o in workload.operators)))
    if workload.folded:
        console.print("Merged into neighbours:")
        for line in workload.folded:
            console.print(f"  {line}")


def operator_row(workload: Workload, operator: Operator) -> tuple[str, ...]:
    loops = " ".join(f"{dim}={extent}" for dim, extent in operator.extents.items())
    macs = f"{operator.macs:,}" if operator.macs else ""
    return operator.name, operator.kind, loops, macs, ", ".join(dtypes(workload, operator))


def dtypes(workload: Workload, operator: Operator) -> Iterator[str]:
    """The distinct data types of the operands, in order."""
    yield from dict.fromkeys(workload.tensor(a.tensor).dtype for a in operator.accesses)

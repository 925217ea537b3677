"""``dse list``: what ships with the tool."""

from __future__ import annotations

from typing import Annotated

import typer

from arch import catalog
from arch.strict_yaml import read
from dse.cli import arguments, inputs
from dse.cli.console import print_json, results, table

KINDS = {"archs": "arch", "workloads": "workload", "searches": "search"}


def run(
    kind: Annotated[str, typer.Argument(metavar="archs|workloads|searches")],
    as_json: arguments.Json = False,
) -> None:
    """List shipped architectures, workloads or searches."""
    entries = descriptions(KINDS[inputs.choice("KIND", kind, tuple(KINDS))])
    if as_json:
        print_json({kind: [{"name": name, "description": text} for name, text in entries.items()]})
    else:
        results().print(table("", ("name", "description"), entries.items()))


def descriptions(kind: str) -> dict[str, str]:
    """Name -> the description in its file."""
    data = {name: read(catalog.find(kind, name)).data for name in catalog.names(kind)}
    return {name: str(document["description"]) for name, document in data.items()}

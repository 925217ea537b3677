"""``dse schema``: JSON Schema for editors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from arch.schema_json import json_schema
from dse.cli import inputs
from dse.cli.console import print_json
from dse.search_schema import SearchModel
from mapper.workload.load import WorkloadFile

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "arch": json_schema,
    "workload": WorkloadFile.model_json_schema,
    "search": SearchModel.model_json_schema,
}


def run(
    kind: Annotated[str, typer.Argument(metavar="arch|workload|search")] = "arch",
) -> None:
    """Print the JSON Schema of configuration files, for editors.

    Editors with YAML support complete and check files against it.
    """
    print_json(SCHEMAS[inputs.choice("KIND", kind, tuple(SCHEMAS))]())

"""``dse schema``: JSON Schema for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import inputs
from dse.cli.console import print_json
from dse.schemas import SCHEMAS


def run(
    kind: Annotated[str, typer.Argument(metavar="arch|workload|search")] = "arch",
) -> None:
    """Print the JSON Schema of configuration files, for editors.

    Editors with YAML support complete and check files against it.
    """
    print_json(SCHEMAS[inputs.choice("KIND", kind, tuple(SCHEMAS))]())

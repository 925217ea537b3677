"""``dse map``: the best mapping of each operator, and how good it is known to be."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from arch.errors import InputError, Problem, unknown
from arch.load import load_architecture
from dse.cli import arguments, inputs, views
from dse.cli.console import print_json, results
from mapper.search.network import OBJECTIVES
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload


def run(
    arch: arguments.Arch,
    workload: arguments.Workload,
    op: Annotated[str | None, typer.Option(metavar="NAME", help="Only this operator.")] = None,
    objective: arguments.Objective = "edp",
    assignments: arguments.Assignments = None,
    as_json: arguments.Json = False,
) -> None:
    """Find the best mapping of each operator.

    Says how many mappings were priced, whether the result is proven optimal, and the gap to a
    bound that no mapping can beat.
    """

"""``dse export-optuna``: a search for Optuna's dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dse.cli import inputs
from dse.cli.console import messages, results
from dse.export import FILE, export_optuna
from dse.store import load_study


def run(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Run directory of a search.")],
) -> None:
    """Copy a search into a database for Optuna's dashboard.

    An earlier copy in the run directory is replaced.
    """
    study = load_study(directory)
    target = inputs.output_file("DIR", directory.resolve() / FILE)
    target.unlink(missing_ok=True)
    results().print(export_optuna(study, target), soft_wrap=True)
    messages().print("to look at it: pip install optuna-dashboard, then optuna-dashboard URL")

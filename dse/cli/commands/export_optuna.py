"""``dse export-optuna``: a search for Optuna's dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dse.cli.console import messages, results
from dse.export_optuna import export
from dse.store import load_study


def run(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Run directory of a search.")],
) -> None:
    """Copy a search into a database for Optuna's dashboard.

    Infeasible designs are shown with their constraint values and the best that could be
    expected of them.
    """
    target = export(load_study(directory))
    results().print(f"sqlite:///{target.resolve()}", soft_wrap=True)
    messages().print("to look at it: pip install optuna-dashboard, then optuna-dashboard URL")

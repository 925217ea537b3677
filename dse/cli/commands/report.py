"""``dse report``: the report of a search, written again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dse.cli import inputs
from dse.cli.console import results
from dse.report.files import write
from dse.report.models import collect
from dse.store import load_study
from dse.study import Study


def run(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Run directory of a search.")],
) -> None:
    """Write the report of a search again.

    Also of a search that is still running, or was interrupted.
    """
    study = load_study(directory)
    inputs.output_folder("DIR", directory)
    results().print(f"report: {write_report(study)}", soft_wrap=True)


def write_report(study: Study) -> Path:
    """The page, the plots and the designs, beside the study; returns the page."""
    return write(study, collect(study), study.run_dir)

"""The report of a search: what to build, why, and how sure that is."""

from __future__ import annotations

from pathlib import Path

from dse.report.files import write
from dse.report.models import collect
from dse.study import Study


def write_report(study: Study, directory: Path) -> Path:
    """Writes ``report.html``, ``plots/``, ``pareto.csv`` and ``designs/`` into the directory.

    Asks the models for the recommended designs again; equal studies give equal files.
    """
    return write(study, collect(study), directory)

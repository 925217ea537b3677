"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

#: Width of tables when the output is a file or a pipe.
FILE_WIDTH = 110


def results() -> Console:
    """The console for results that people read."""
    return _console(stderr=False)


def messages() -> Console:
    """The console for progress and remarks."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else FILE_WIDTH
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """A plain table: the first column left, numbers (columns marked ``>``) right."""
    built = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        built.add_column(column.lstrip(">"), justify="right" if right else "left", overflow="fold")
    for row in rows:
        built.add_row(*row)
    return built


def print_json(document: Mapping[str, Any]) -> None:
    """The one document that ``--json`` promises."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")

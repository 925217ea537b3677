"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table

#: Width of text when the output is a file or a pipe; tables are as wide as they are.
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


@dataclass(frozen=True, slots=True)
class Rows:
    """A plain table: the first column left, numbers (columns marked ``>``) right.

    Where it fits, or goes to a file, lines are put together here: that takes a tenth of the time
    that ``rich`` takes, which folds what does not fit on a terminal.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        heads = tuple(column.lstrip(">") for column in self.columns)
        widths = [max(map(cell_len, cells)) for cells in zip(heads, *self.rows, strict=True)]
        total = sum(widths) + 3 * len(widths) - 1
        wraps = console.is_terminal and total > options.max_width
        if self.title or wraps or any("\n" in "".join(r) for r in (heads, *self.rows)):
            yield self.folded()
            return
        lines = ["", " " + "─" * (total - 2) + " "]
        lines += [self._line(row, widths) for row in self.rows]
        lines += [" " * total, ""]
        yield Segment(" " * total + "\n")
        yield Segment(self._line(heads, widths), Style(bold=True))
        yield Segment("\n".join(lines))

    def _line(self, cells: tuple[str, ...], widths: list[int]) -> str:
        padded = [
            " " * (width - cell_len(cell)) + cell
            if column.startswith(">")
            else cell + " " * (width - cell_len(cell))
            for cell, column, width in zip(cells, self.columns, widths, strict=True)
        ]
        return " " + "   ".join(padded) + " "

    def folded(self) -> Table:
        title = self.title or None
        built = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for column in self.columns:
            side: Literal["left", "right"] = "right" if column.startswith(">") else "left"
            built.add_column(column.lstrip(">"), justify=side, overflow="fold")
        for row in self.rows:
            built.add_row(*row)
        return built


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Rows:
    """The first column left, numbers (columns marked ``>``) right."""
    return Rows(title, tuple(columns), tuple(tuple(row) for row in rows))


def print_json(document: Mapping[str, Any]) -> None:
    """The one document that ``--json`` promises."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")

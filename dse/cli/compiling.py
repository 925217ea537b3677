"""A word of patience before the first search on a machine."""

from __future__ import annotations

from dse.cli.console import messages
from mapper.compiled import is_cold


def say_if_compiling() -> None:
    """The first search after an installation looks stuck otherwise."""
    if is_cold():
        messages().print("Compiling the mapper (once; up to a minute) ...")

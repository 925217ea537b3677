"""``dse check``: are these files sound?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from arch.errors import InputError, Problem
from arch.load import load_architecture
from dse.cli.console import results

CHECKS: dict[str, Callable[[Path], Any]] = {"arch": load_architecture}


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...")],
) -> None:
    """Check configuration files without running anything.

    Reports every problem of every file.
    """
    problems: list[Problem] = []
    sound: list[str] = []
    for path in files:
        try:
            load_architecture(path)
            sound.append(f"{path}: sound")
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    results().print("\n".join(sound))

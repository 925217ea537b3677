"""``dse check``: are these files sound?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arch.errors import InputError
from dse.cli.console import results


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...")],
) -> None:
    """Check configuration files without running anything.

    Reports every problem of every file.
    """

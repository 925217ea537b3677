"""What a search runs on: compiled code, and as many threads as there are processors."""

from __future__ import annotations

import os

from dse.cli.console import messages
from mapper.compiled import is_cold


def say_if_compiling() -> None:
    """The first search after an installation looks stuck otherwise."""
    if is_cold():
        messages().print("Compiling the mapper (once; up to a minute) ...")


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

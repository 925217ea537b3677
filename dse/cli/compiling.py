"""What a search runs on: compiled code, and as many threads as there are processors."""

from __future__ import annotations

import os

from dse.cli.console import messages
from mapper.compiled import is_cold, load_quickly

#: package -> what a compiled module of it does that no other has made compile before
WORK = {
    "mapper": ("mapper", ""),
    "sim": ("mapper and the simulator", "kernel"),
    "stream": ("simulator of memories", "dram_stream"),
}


def say_if_compiling(what: str = "mapper") -> None:
    """The first use after an installation looks stuck otherwise. Later ones load what it left."""
    text, module = WORK[what]
    if is_cold("mapper" if what == "mapper" else "sim", module):
        messages().print(f"Compiling the {text} (once; up to a minute) ...")
    load_quickly()


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

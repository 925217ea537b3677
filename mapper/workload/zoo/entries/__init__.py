"""Lists of networks, one module per kind. A new module here is found by itself.

Each has a tuple ``ENTRIES``; none imports torch.
"""

from __future__ import annotations

import importlib
import pkgutil

from mapper.workload.zoo.entry import ZooEntry


def load_all() -> tuple[ZooEntry, ...]:
    """The entries of every module of this package, in the order of the modules' names."""
    found: list[ZooEntry] = []
    for module in pkgutil.iter_modules(__path__):
        found += importlib.import_module(f"{__name__}.{module.name}").ENTRIES
    return tuple(found)

"""Networks of our own writing, by name: plain torch modules with checked parameters.

This module knows names and parameters only; the family's module (and torch) is imported when a
network is built. Unless ``dtype`` says otherwise, a network is taken as quantized to int8:
activations and weights are int8, sums int32, embedding indices int32.
"""

from __future__ import annotations

from arch.errors import InputError, Problem, unknown
from mapper.workload.zoo.entries import load_all
from mapper.workload.zoo.entry import ZooEntry

_ENTRIES = load_all()


def _by_name() -> dict[str, ZooEntry]:
    found: dict[str, ZooEntry] = {}
    for entry in _ENTRIES:
        for name in (entry.name, *entry.aliases):
            if name in found:
                raise ValueError(f"two networks are named {name}")
            found[name] = entry
    return found


_BY_NAME = _by_name()


def names() -> tuple[str, ...]:
    """Names of all networks, without aliases."""
    return tuple(entry.name for entry in _ENTRIES)


def is_network(name: str) -> bool:
    return name in _BY_NAME


def describe(name: str) -> ZooEntry:
    """What the network is and which parameters it takes, with their defaults."""
    if name not in _BY_NAME:
        raise InputError(Problem(unknown("network", name, list(_BY_NAME))))
    return _BY_NAME[name]

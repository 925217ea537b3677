"""Networks of our own writing, by name: plain torch modules with checked parameters.

This module knows names and parameters only; the family's module (and torch) is imported when a
network is built. Unless ``dtype`` says otherwise, a network is taken as quantized to int8:
activations and weights are int8, sums int32, embedding indices int32.
"""

from __future__ import annotations

from arch.errors import InputError, Problem, unknown
from mapper.workload.zoo.entries import load_all
from mapper.workload.zoo.entry import ZooEntry

_BY_NAME = {entry.name: entry for entry in load_all()}


def names() -> tuple[str, ...]:
    """Names of all networks."""
    return tuple(_BY_NAME)


def is_network(name: str) -> bool:
    return name in _BY_NAME


def describe(name: str) -> ZooEntry:
    """What the network is and which parameters it takes, with their defaults."""
    if name not in _BY_NAME:
        raise InputError(Problem(unknown("network", name, list(_BY_NAME))))
    return _BY_NAME[name]

"""Workloads by name: a zoo network, a single operator, a user's function or a YAML file."""

from __future__ import annotations

from arch.errors import InputError, Problem, unknown
from mapper.workload.graph import Workload
from mapper.workload.parameters import parse_parameters, split_spec
from mapper.workload.single import SINGLE_OPERATORS, single_workload


def load_workload(spec: str) -> Workload:
    """The workload that ``spec`` names; ``InputError`` if there is none."""
    name, given = split_spec(spec)
    if name in SINGLE_OPERATORS:
        entry = SINGLE_OPERATORS[name]
        return single_workload(entry, parse_parameters(name, entry.parameters, given))
    raise InputError(Problem(unknown("workload", name, [*SINGLE_OPERATORS])))

"""Workloads by name: a zoo network, a single operator, a user's function or a YAML file."""

from __future__ import annotations

from functools import lru_cache

from arch.errors import InputError, Problem, unknown
from mapper.workload import zoo
from mapper.workload.graph import Workload
from mapper.workload.parameters import Value, parse_parameters, split_spec
from mapper.workload.single import SINGLE_OPERATORS, single_workload
from mapper.workload.torch_import.export import import_built


def load_workload(spec: str) -> Workload:
    """The workload that ``spec`` names; ``InputError`` if there is none."""
    name, given = split_spec(spec)
    if name in SINGLE_OPERATORS:
        entry = SINGLE_OPERATORS[name]
        return single_workload(entry, parse_parameters(name, entry.parameters, given))
    if zoo.is_network(name):
        network = zoo.describe(name)
        values = parse_parameters(network.name, network.parameters, given)
        return _network(network.name, tuple(values.items()))
    raise InputError(Problem(unknown("workload", name, [*zoo.names(), *SINGLE_OPERATORS])))


@lru_cache(maxsize=32)
def _network(name: str, values: tuple[tuple[str, Value], ...]) -> Workload:
    """Imported once per process: workloads are immutable, so all callers may share one."""
    chosen = dict(values)
    title = f"{name}:{','.join(f'{key}={value}' for key, value in values)}"
    return import_built(zoo.describe(name).builder(chosen), name=title, dtype=str(chosen["dtype"]))

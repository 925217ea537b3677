"""Families whose programs are kernels of a library, not loop nests that the mapper arranges.

Such a family (a GPU, a microcontroller) registers one function that runs a whole workload. It
replaces mapping, lowering and the three generic models for this family, and keeps their
promises: roofline <= analytical <= event in latency, equal dynamic energy, parts that sum to
the totals, and ``InfeasibleError`` for what the hardware cannot run.
"""

from __future__ import annotations

from collections.abc import Callable

from arch.errors import InputError, Problem, unknown
from arch.spec import Architecture
from mapper.cost import Mappings, Metrics
from mapper.workload.graph import Workload
from sim.engines import DEFAULT
from sim.models import FIDELITIES, cost_model
from sim.prices import import_devices

#: Runs a workload on an architecture of its family, at a fidelity.
KernelModel = Callable[[Workload, Architecture, str], Metrics]

_MODELS: dict[str, KernelModel] = {}


def kernel_model(family: str) -> Callable[[KernelModel], KernelModel]:
    """Decorator: the function is the model of that family."""

    def register(function: KernelModel) -> KernelModel:
        if family in _MODELS:
            first, second = _MODELS[family].__module__, function.__module__
            raise RuntimeError(f"family {family!r} is modelled by both {first} and {second}")
        _MODELS[family] = function
        return function

    return register


def runs_kernels(architecture: Architecture) -> bool:
    """Whether the family of the architecture brings its own kernels, so that nothing is mapped."""
    import_devices()
    return architecture.family in _MODELS


def evaluate(
    workload: Workload,
    architecture: Architecture,
    mappings: Mappings,
    fidelity: str,
    engine: str = DEFAULT,
) -> Metrics:
    """The metrics of a workload; ``mappings`` is empty for a family that runs kernels."""
    if not runs_kernels(architecture):
        model = cost_model(fidelity, engine=engine)
        return model.evaluate(workload, architecture, mappings)
    if fidelity not in FIDELITIES:
        raise InputError(Problem(unknown("fidelity", fidelity, list(FIDELITIES)), "fidelity"))
    return _MODELS[architecture.family](workload, architecture, fidelity)

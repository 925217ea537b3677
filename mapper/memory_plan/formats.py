"""Number formats of a microcontroller's kernels, and networks in others."""

from __future__ import annotations

from arch.datatypes import datatype
from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.memory_plan.mcu import core_of, is_planned
from mapper.workload.graph import Workload, is_trained

#: Formats of files whose memory is worth planning although their kernels' cycles are not known.
PLANNED_ONLY = frozenset({"fp32", "int16"})


def refusal(workload: Workload, architecture: Architecture) -> InfeasibleError | None:
    """Why the kernels of a microcontroller cannot run a network, whatever its size."""
    if not is_planned(architecture):
        return None
    if is_trained(workload):
        why = "training is not simulated on microcontrollers; dse recompute plans its memory"
        return _refused(architecture, why)
    others = _others(workload, architecture)
    if others <= PLANNED_ONLY:
        return None
    return _refused(
        architecture,
        f"the network computes in {', '.join(sorted(others))}; their format is "
        f"{', '.join(_offered(architecture))} (where a workload has the parameter: dtype=int8)",
    )


def _refused(architecture: Architecture, why: str) -> InfeasibleError:
    limit = f"kernels of {architecture.name}"
    return InfeasibleError(limit=limit, needed=1, allowed=0, detail=why)


def latency_note(workload: Workload, architecture: Architecture) -> str | None:
    """What is to be known about the latency of a network in a format without kernels here."""
    others = _others(workload, architecture) if is_planned(architecture) else None
    if not others:
        return None
    return (
        f"cycles are those of {', '.join(_offered(architecture))} kernels; the network computes in "
        f"{', '.join(sorted(others))}, of which only the memory is modelled"
    )


def _others(workload: Workload, architecture: Architecture) -> set[str]:
    """Formats of multiply-accumulates that do not fit into those of the kernels."""
    used = {
        workload.tensor(access.tensor).dtype
        for operator in workload.operators
        if operator.operation == "mac"
        for access in operator.inputs
    }
    offered = [datatype(name) for name in _offered(architecture)]
    return {name for name in used if not any(datatype(name).fits_in(o) for o in offered)}


def _offered(architecture: Architecture) -> tuple[str, ...]:
    return core_of(architecture).intrinsics[0].dtypes

"""Which memories an operator's operands pass through on a given compute unit."""

from __future__ import annotations

from dataclasses import dataclass

from arch.datatypes import BITS
from arch.spec import Architecture, Compute, Intrinsic, Memory
from mapper.cost import InfeasibleError
from mapper.footprint import Footprints, footprints
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One operator on one intrinsic: counting rules, operand widths and memory paths.

    ``paths[operand]`` lists the memories that keep the operand, outermost first; the last one
    feeds the compute unit. ``bits[operand]`` is the operand's width at rest, ``partial_bits``
    the width of a partial sum. ``memories`` are those of all paths, outermost first.
    """

    operator: Operator
    compute: Compute
    intrinsic: Intrinsic
    counts: Footprints
    paths: tuple[tuple[Memory, ...], ...]
    memories: tuple[Memory, ...]
    bits: tuple[int, ...]
    partial_bits: int

    @property
    def output(self) -> int:
        """The number of the output operand."""
        return len(self.operator.inputs)


def execution(workload: Workload, operator: Operator, architecture: Architecture) -> Execution:
    """The execution of ``operator`` on the first intrinsic that can do it.

    Raises ``InfeasibleError`` if no unit of the architecture supports the operation and the
    data types of its inputs.
    """
    dtypes = {workload.tensor(a.tensor).dtype for a in operator.inputs}
    if operator.operation == "copy":
        dtypes = set()
    compute, intrinsic = _unit(operator, dtypes, architecture)
    shapes = {a.tensor: workload.tensor(a.tensor).shape for a in operator.accesses}
    paths = tuple(
        _path(architecture, operator.role(i), compute) for i in range(len(operator.accesses))
    )
    kept_in = {memory.name for path in paths for memory in path}
    return Execution(
        operator=operator,
        compute=compute,
        intrinsic=intrinsic,
        counts=footprints(operator, shapes),
        paths=paths,
        memories=tuple(m for m in architecture.memories if m.name in kept_in),
        bits=tuple(BITS[workload.tensor(a.tensor).dtype] for a in operator.accesses),
        partial_bits=BITS[operator.accumulator_dtype],
    )


def _unit(
    operator: Operator, dtypes: set[str], architecture: Architecture
) -> tuple[Compute, Intrinsic]:
    able = [
        (compute, intrinsic)
        for compute in architecture.computes
        for intrinsic in compute.intrinsics
        if operator.operation in intrinsic.operations
    ]
    if not able:
        known = sorted(
            {o for c in architecture.computes for i in c.intrinsics for o in i.operations}
        )
        raise InfeasibleError(
            limit=f"operation {operator.operation!r} of {operator.name}",
            needed=1,
            allowed=0,
            detail=f"{architecture.name} has no unit for it; its units do {', '.join(known)}",
        )
    for compute, intrinsic in able:
        if dtypes <= set(intrinsic.dtypes):
            return compute, intrinsic
    offered = sorted({dtype for _, intrinsic in able for dtype in intrinsic.dtypes})
    raise InfeasibleError(
        limit=f"data type of {operator.name!r}",
        needed=1,
        allowed=0,
        detail=f"it computes in {', '.join(sorted(dtypes))}; {architecture.name} offers "
        f"{', '.join(offered)}: set the workload's dtype, as in 'resnet18:dtype={offered[0]}'",
    )


def _path(architecture: Architecture, role: str, compute: Compute) -> tuple[Memory, ...]:
    return tuple(
        memory
        for memory in architecture.memories
        if role in memory.roles and memory.serves in (None, compute.name)
    )

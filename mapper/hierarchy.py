"""Which memories an operator's operands pass through on a given compute unit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from arch import catalog
from arch.datatypes import Bits, bits_of, datatype, whole
from arch.load import load_architecture
from arch.spec import Architecture, Compute, Intrinsic, Memory, NocLink
from mapper.cost import InfeasibleError
from mapper.footprint import Footprints, footprints
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator, SideWork, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Side work on the unit that does it; ``lanes`` points at a time."""

    compute: Compute
    lanes: int
    work: SideWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One operator on one intrinsic: counting rules, operand widths and memory paths.

    ``paths[operand]`` lists the memories that keep the operand, outermost first; the last one
    feeds the compute unit. ``bits[operand]`` is the operand's width at rest, ``partial_bits``
    the width of a partial sum. ``memories`` are those of all paths, outermost first.
    ``issues_per_point`` and ``ops_per_point`` are what is left of the operator's where the unit
    skips zeros; ``asides`` what other units do meanwhile, ``links`` a network on the way to
    the compute unit.
    """

    operator: Operator
    compute: Compute
    intrinsic: Intrinsic
    counts: Footprints
    paths: tuple[tuple[Memory, ...], ...]
    memories: tuple[Memory, ...]
    bits: tuple[Bits, ...]
    partial_bits: Bits
    issues_per_point: Bits = 1
    ops_per_point: Bits = 1
    asides: tuple[Aside, ...] = ()
    links: tuple[NocLink, ...] = ()

    @property
    def stationary(self) -> int | None:
        """The operand whose tiles stay in the compute unit, if changing them takes time."""
        if self.compute.fold is None:
            return None
        roles = [self.operator.role(i) for i in range(len(self.paths))]
        return roles.index(self.compute.fold.role)

    def final_bits(self, memory: Memory) -> Bits:
        """Width of a final output that is kept in ``memory``."""
        return self.partial_bits if memory.wide_outputs else self.bits[self.output]

    def bypassing(self, kept: Sequence[Sequence[str]]) -> Execution:
        """With only these memories on each operand's path, where the others may be bypassed."""
        paths = tuple(
            tuple(
                memory
                for memory in path
                if memory.name in names or self.operator.role(operand) not in memory.may_bypass
            )
            for operand, (path, names) in enumerate(zip(self.paths, kept, strict=True))
        )
        return self if paths == self.paths else replace(self, paths=paths)

    @property
    def output(self) -> int:
        """The number of the output operand."""
        return len(self.operator.inputs)


def execution(workload: Workload, operator: Operator, architecture: Architecture) -> Execution:
    """The execution of ``operator`` on the first intrinsic that can do it.

    Raises ``InfeasibleError`` if no unit of the architecture supports the operation and the
    data types of its inputs.
    """
    tensors = {a.tensor: workload.tensor(a.tensor) for a in operator.accesses}
    dtypes = {tensors[a.tensor].dtype for a in operator.inputs}
    if operator.operation == "copy":
        dtypes = set()
    compute, intrinsic = _unit(operator, dtypes, architecture)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    share = _executed([tensors[a.tensor] for a in operator.inputs], operator, intrinsic)
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
        bits=tuple(tensors[a.tensor].bits for a in operator.accesses),
        partial_bits=bits_of(operator.accumulator_dtype),
        issues_per_point=whole(operator.issues_per_point * share),
        ops_per_point=whole(operator.ops_per_point * share),
        asides=tuple(_asides(operator, architecture)),
        links=tuple(c for c in architecture.components if isinstance(c, NocLink)),
    )


def _executed(inputs: list[Tensor], operator: Operator, intrinsic: Intrinsic) -> Fraction:
    """The share of the points that the unit does not skip, zeros being independent."""
    if operator.operation != "mac":
        return Fraction(1)
    return math.prod(
        (
            tensor.sparsity.density
            for tensor in inputs
            if tensor.sparsity is not None
            and {tensor.sparsity.structure, "unstructured"} & set(intrinsic.skips)
        ),
        start=Fraction(1),
    )


def _asides(operator: Operator, architecture: Architecture) -> Iterator[Aside]:
    for work in operator.side:
        found = _able(architecture, work.operation)
        if not found:
            raise _no_unit(operator.name, work.operation, architecture)
        compute, intrinsic = found[0]
        lanes = math.prod(axis.size for axis in intrinsic.axes)
        yield Aside(compute=compute, lanes=lanes, work=work)


def _unit(
    operator: Operator, dtypes: set[str], architecture: Architecture
) -> tuple[Compute, Intrinsic]:
    able = _able(architecture, operator.operation)
    if not able:
        raise _no_unit(operator.name, operator.operation, architecture)
    for compute, intrinsic in able:
        if dtypes <= set(intrinsic.dtypes):
            return compute, intrinsic
    for compute, intrinsic in able:
        if any(_all_fit(dtypes, offered) for offered in intrinsic.dtypes):
            return compute, intrinsic
    offered = sorted({dtype for _, intrinsic in able for dtype in intrinsic.dtypes})
    raise InfeasibleError(
        limit=f"data type of {operator.name!r}",
        needed=1,
        allowed=0,
        detail=f"it computes in {', '.join(sorted(dtypes))}; {architecture.name} offers "
        f"{', '.join(offered)}: choose formats that fit (dtype and, where a workload has them, "
        f"weights, cache, states; as in 'resnet18:dtype={offered[0]}'), or set the unit's dtypes"
        f"{_elsewhere(operator.operation, frozenset(dtypes))}",
    )


@lru_cache(maxsize=64)
def _elsewhere(operation: str, dtypes: frozenset[str]) -> str:
    """Shipped architectures that compute in such formats, for messages."""
    shipped = (load_architecture(name) for name in catalog.names("arch"))
    able = [
        architecture.name
        for architecture in shipped
        if any(
            _all_fit(set(dtypes), offered)
            for _, intrinsic in _able(architecture, operation)
            for offered in intrinsic.dtypes
        )
    ]
    return f". Shipped architectures that can: {', '.join(able)}" if able else ""


def _able(architecture: Architecture, operation: str) -> list[tuple[Compute, Intrinsic]]:
    return [
        (compute, intrinsic)
        for compute in architecture.computes
        for intrinsic in compute.intrinsics
        if operation in intrinsic.operations
    ]


def _no_unit(operator: str, operation: str, architecture: Architecture) -> InfeasibleError:
    known = sorted({o for c in architecture.computes for i in c.intrinsics for o in i.operations})
    return InfeasibleError(
        limit=f"operation {operation!r} of {operator}",
        needed=1,
        allowed=0,
        detail=f"{architecture.name} has no unit for it; its units do {', '.join(known)}"
        if known
        else f"{architecture.name} is a memory and computes nothing; ask it for a stream "
        "(stream:bytes=64MiB,pattern=sequential) or name it as the 'timing' of a dram",
    )


def _all_fit(dtypes: set[str], offered: str) -> bool:
    """Whether all operands can be widened to what the unit computes in, on their way to it."""
    return all(datatype(dtype).fits_in(datatype(offered)) for dtype in dtypes)


def _path(architecture: Architecture, role: str, compute: Compute) -> tuple[Memory, ...]:
    return tuple(
        memory
        for memory in architecture.memories
        if role in memory.roles and memory.serves in (None, compute.name)
    )

"""What the outermost memory must hold while a workload runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator, Tensor


def peak_live_bytes(
    workload: Workload,
    elsewhere: Collection[str] = (),
    together: Iterable[Sequence[Operator]] | None = None,
) -> int:
    """Weights, plus at the worst moment the activations that are still needed.

    Tensors ``elsewhere`` (at home on the chip) count for nothing. ``together`` are operators that
    run at the same time, in order of execution; each alone if it is not given.

    An input is there from the beginning, a result from the operator that first writes to it; a
    tensor is needed until the last operator that touches it, an output to the end.
    """
    steps = [[operator] for operator in workload.operators] if together is None else together
    lifetimes = _lifetimes(workload, steps)
    changes = [0] * (len(workload.operators) + 1)
    for tensor, (first, last) in lifetimes.items():
        if tensor.name in elsewhere:
            continue
        changes[first] += size_bytes(tensor)
        changes[last + 1] -= size_bytes(tensor)
    peak = live = 0
    for change in changes:
        live += change
        peak = max(peak, live)
    return peak + sum(size_bytes(t) for t in workload.tensors if t.kind == "weight")


def size_bytes(tensor: Tensor) -> int:
    return int(-(-tensor.elements * tensor.bits // 8))


def check_outermost(
    workload: Workload, architecture: Architecture, elsewhere: Collection[str] = ()
) -> int:
    """The peak of the outermost memory; ``InfeasibleError`` if it is too small."""
    memory = architecture.memories[0]
    needed, allowed = peak_live_bytes(workload, elsewhere), memory.size_bytes * memory.count
    if needed > allowed:
        raise InfeasibleError(
            limit=f"capacity of {memory.name} in bytes",
            needed=needed,
            allowed=allowed,
            detail=f"weights and live activations of {workload.name}",
        )
    return needed


def _lifetimes(
    workload: Workload, steps: Iterable[Sequence[Operator]]
) -> dict[Tensor, tuple[int, int]]:
    """First and last step (by position) that need each tensor that is not a weight."""
    end = 0
    touched: dict[str, list[int]] = {tensor.name: [] for tensor in workload.tensors}
    for position, operators in enumerate(steps):
        end = position
        for access in (access for operator in operators for access in operator.accesses):
            touched[access.tensor].append(position)
    return {
        tensor: (
            0 if tensor.kind == "input" else touched[tensor.name][0],
            end if tensor.kind == "output" else touched[tensor.name][-1],
        )
        for tensor in workload.tensors
        if tensor.kind not in ("weight", "host") and touched[tensor.name]
    }

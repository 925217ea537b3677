"""Tensors that do not start in the outermost memory: which they are, and what room they take.

An operand usually begins and ends in the outermost memory. A tensor that one operator leaves in
an on-chip memory and another one takes from there has that memory as its *home*; while it
lives there, everybody else has so much less room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from arch.datatypes import Bits
from arch.spec import Architecture, Memory
from mapper.cost import InfeasibleError
from mapper.hierarchy import Execution, execution
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator, Tensor

#: tensor -> the memory that it is at home in; all others are at home in the outermost one
Homes = Mapping[str, str]
#: memory -> bits that something else occupies
Occupied = Mapping[str, Bits]


def tensor_bits(tensor: Tensor) -> Bits:
    return tensor.elements * tensor.bits


def shared_memory(architecture: Architecture) -> Memory | None:
    """Where tensors can stay between operators: the outermost memory on the chip.

    It must be one for the whole chip and keep both what is read and what is written; ``None``
    if there is no such memory.
    """
    outer, *inner = architecture.memories
    del outer
    if not inner:
        return None
    memory = inner[0]
    keeps = {"input", "output"} <= set(memory.roles)
    shared = not memory.replicated_over and memory.serves is None
    return memory if keeps and shared else None


def placed(
    workload: Workload,
    operator: Operator,
    architecture: Architecture,
    homes: Homes,
    occupied: Occupied,
) -> Execution:
    """The execution of an operator whose tensors are at home where ``homes`` says.

    Raises ``InfeasibleError`` if others occupy all of a memory.
    """
    return at_home(execution(workload, operator, architecture), homes, occupied)


def at_home(run: Execution, homes: Homes, occupied: Occupied) -> Execution:
    """As ``run``, with operands that start at home and memories that others partly fill."""
    smaller = {memory.name: _remaining(memory, occupied) for memory in run.memories}
    paths = tuple(
        tuple(smaller[memory.name] for memory in _from_home(run, operand, homes))
        for operand in range(len(run.paths))
    )
    return replace(run, paths=paths, memories=tuple(smaller.values()))


def _from_home(run: Execution, operand: int, homes: Homes) -> tuple[Memory, ...]:
    path = run.paths[operand]
    home = homes.get(run.operator.accesses[operand].tensor)
    if home is None:
        return path
    names = [memory.name for memory in path]
    if home not in names:
        raise ValueError(f"{run.operator.name}: operand {operand} never passes through {home}")
    return path[names.index(home) :]


def _remaining(memory: Memory, occupied: Occupied) -> Memory:
    taken = int(-(-occupied.get(memory.name, 0) // 8))
    if taken == 0:
        return memory
    if taken >= memory.size_bytes:
        raise InfeasibleError(
            limit=f"capacity of {memory.name} in bytes",
            needed=taken + 1,
            allowed=memory.size_bytes,
            detail="tensors that stay there leave no room for tiles",
        )
    return replace(memory, size_bytes=memory.size_bytes - taken)

"""How the runtime that a file was made for runs it: its calls and the buffers of its arena.

A workload is what is computed; a runtime may need more: a padding that is an operator of its own,
a buffer that a kernel asks for, an order of tensors that decides between equal sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from mapper.workload.tflite_import.model import FileModel


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeCall:
    """A kernel's call and the operators of the workload that it covers; none if it was folded."""

    name: str
    operators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeBuffer:
    """Bytes of the arena from the call ``first`` to the call ``last``, both included.

    ``fixed``: a file may say where it lies (a tensor of the first graph; scratch it may not).
    """

    name: str
    size_bytes: int
    first: int
    last: int
    fixed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeGraph:
    """Calls in order and buffers in the runtime's order: tensors, then scratch of kernels.

    ``persistent_bytes`` are tensors that keep their values between runs, outside the arena's plan.
    ``source`` is what the file says.
    """

    calls: tuple[RuntimeCall, ...]
    buffers: tuple[RuntimeBuffer, ...]
    persistent_bytes: int
    source: FileModel

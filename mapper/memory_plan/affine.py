"""The least offset of any affine loop nest, by integer programs.

``offsets`` has closed forms for the kernels of a library; here a kernel is any single-statement
nest ``output[A i + a] (op)= f(input[B i + b])`` over a box of loops, in the order in which the
loops run. Loops of a reduction that run innermost are summed up in registers, so that the value
is stored once; any other reduction keeps its partial sums in the output's memory.

The program is that of vMCU (Zheng et al., MLSys 2024): the output may start as many bytes before
the input as no store of an earlier step reaches a load of a later one. "Earlier" is
lexicographic, so there is a program per loop: equal counters outside it, a smaller one in it,
anything inside. It looks at ranges of addresses: gaps that a nest leaves in its output (one phase
of a transposed convolution) are not filled with input.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from arch.datatypes import BITS
from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.operators import Access, AffineIndex, Operator, Tensor


@dataclass(frozen=True, slots=True)
class Linear:
    """``sum(coefficients * counters) + constant``."""

    coefficients: tuple[int, ...]
    constant: int = 0

    def at(self, counters: Sequence[int]) -> int:
        return sum(c * i for c, i in zip(self.coefficients, counters, strict=True)) + self.constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """Addresses are in bytes from the start of their tensor.

    A load is left out where an index of ``inside`` is not in ``[0, size)`` (padding). The
    first ``stored_loops`` loops are the steps: the others are summed up in registers.
    """

    loops: tuple[str, ...]
    extents: tuple[int, ...]
    stored_loops: int
    write: Linear
    write_bytes: int
    output_bytes: int
    read: Linear
    read_bytes: int
    input_bytes: int
    inside: tuple[tuple[Linear, int], ...]


def nest_of(
    workload: Workload, operator: Operator, source: Access, order: Sequence[str] = ()
) -> Nest:
    """An operator as a nest, seen from one of its inputs.

    Maps are channels-last. ``order`` names the loops from the outermost; without it the output
    is written in the order of its addresses and everything else is summed up inside.
    """
    loops = tuple(order) or _written_in_order(operator)
    if sorted(loops) != sorted(operator.extents):
        found = f"loops {', '.join(loops)}; operator {operator.name} has"
        message = f"{found} {', '.join(operator.extents)}"
        raise InputError(Problem(message, where="order of loops"))
    inner = itertools.takewhile(lambda d: d not in operator.output.dims, reversed(loops))
    stored = len(loops) - len(tuple(inner))
    target, tensor = workload.tensor(operator.output.tensor), workload.tensor(source.tensor)
    sums_in_memory = any(d not in operator.output.dims for d in loops[:stored])
    write_bytes = _value_bytes(operator.accumulator_dtype if sums_in_memory else target.dtype)
    read_bytes = _value_bytes(tensor.dtype)
    return Nest(
        loops=loops,
        extents=tuple(operator.extents[d] for d in loops),
        stored_loops=stored,
        write=_address(operator.output, target, loops, write_bytes),
        write_bytes=write_bytes,
        output_bytes=target.elements * write_bytes,
        read=_address(source, tensor, loops, read_bytes),
        read_bytes=read_bytes,
        input_bytes=tensor.elements * read_bytes,
        inside=tuple(
            (_linear(index, loops), size)
            for index, size in zip(source.index, tensor.shape, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class Distances:
    """Bytes by which the output has to start before the input (below zero: after it), and bytes
    of the input from its start that are read after the first store."""

    offset: int
    read: int


@lru_cache(maxsize=4096)
def distances(nest: Nest) -> Distances:
    """The optima of the integer programs."""
    ahead = _most(nest, nest.write_bytes - 1, writes=1)
    behind = _most(nest, nest.read_bytes - 1, writes=-1)
    return Distances(ahead + 1, behind + 1)


def steps(nest: Nest) -> Iterator[tuple[range, tuple[int, ...]]]:
    """The kernel step by step: the bytes written, and the bytes read for them."""
    outer, inner = nest.extents[: nest.stored_loops], nest.extents[nest.stored_loops :]
    for step in itertools.product(*map(range, outer)):
        reads: list[int] = []
        for rest in itertools.product(*map(range, inner)):
            counters = (*step, *rest)
            if all(0 <= index.at(counters) < size for index, size in nest.inside):
                first = nest.read.at(counters)
                reads += range(first, first + nest.read_bytes)
        written = nest.write.at((*step, *(0 for _ in inner)))
        yield range(written, written + nest.write_bytes), tuple(reads)


def channels_last(tensor: Tensor) -> tuple[int, ...]:
    """Axes of a tensor from the slowest to the fastest in memory: maps have channels last."""
    axes = range(len(tensor.shape))
    return (0, *axes[2:], 1) if len(axes) == 4 else tuple(axes)


def _written_in_order(operator: Operator) -> tuple[str, ...]:
    """Loops by the distance that they move in the output, then the reduction."""
    index = operator.output.index
    axes = (0, *range(2, len(index)), 1) if len(index) == 4 else tuple(range(len(index)))
    written = [
        dim for axis in axes for dim, _ in sorted(index[axis].terms, key=lambda term: -term[1])
    ]
    outer = tuple(dict.fromkeys(written))
    return (*outer, *(d for d in operator.extents if d not in outer))


def _value_bytes(dtype: str) -> int:
    return -(-BITS[dtype] // 8)


def _linear(index: AffineIndex, loops: tuple[str, ...]) -> Linear:
    found = dict.fromkeys(loops, 0)
    for dim, coefficient in index.terms:
        found[dim] += coefficient
    return Linear(tuple(found.values()), index.offset)


def _address(access: Access, tensor: Tensor, loops: tuple[str, ...], value_bytes: int) -> Linear:
    axes = channels_last(tensor)
    total = np.zeros(len(loops) + 1, np.int64)
    for position, axis in enumerate(axes):
        stride = value_bytes * prod(tensor.shape[a] for a in axes[position + 1 :])
        index = _linear(access.index[axis], loops)
        total += stride * np.array([*index.coefficients, index.constant])
    return Linear(tuple(int(c) for c in total[:-1]), int(total[-1]))


def _most(nest: Nest, last_byte: int, *, writes: int) -> int:
    """The largest distance from a later load to an earlier store (``writes`` 1) or back (-1)."""
    cases = (_case(nest, level, writes) for level in range(nest.stored_loops))
    return max((best for best in cases if best is not None), default=-last_byte - 1) + last_byte


def _case(nest: Nest, level: int, writes: int) -> int | None:
    """Of steps that differ first in the counter of one loop; ``None`` if there are none.

    Columns: counters of the store (the steps' loops), then those of the load (all loops).
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if nest.extents[level] < 2:
        return None
    stores, loops = nest.stored_loops, len(nest.loops)
    value = np.concatenate([nest.write.coefficients[:stores], np.negative(nest.read.coefficients)])
    constant = nest.write.constant - nest.read.constant
    rows, low, high = _constraints(nest, level)
    found = milp(
        -writes * value,
        integrality=np.ones(stores + loops),
        bounds=Bounds(0, np.array([*nest.extents[:stores], *nest.extents]) - 1),
        constraints=LinearConstraint(rows, low, high),
    )
    if found.x is None:
        return None
    return writes * (round(float(value @ np.round(found.x))) + constant)


def _constraints(
    nest: Nest, level: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Equal counters before the loop, a smaller one of the store in it, and no padding."""
    stores, loops = nest.stored_loops, len(nest.loops)
    rows, low, high = [], [], []
    for loop in range(level + 1):
        row = np.zeros(stores + loops)
        row[loop], row[stores + loop] = -1, 1
        rows.append(row)
        low.append(float(loop == level))
        high.append(np.inf if loop == level else 0.0)
    for index, size in nest.inside:
        rows.append(np.array([*(0.0 for _ in range(stores)), *map(float, index.coefficients)]))
        low.append(float(-index.constant))
        high.append(float(size - 1 - index.constant))
    return np.array(rows), np.array(low), np.array(high)

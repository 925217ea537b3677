"""Gradients with respect to what is read through sliding windows.

An input element is read by every output whose window covers it. Along an axis with stride ``s``
these outputs and kernel elements depend on the element's remainder by ``s`` only: each
remainder (phase) is a plain sum, and no zeros are inserted. An element that no window covers
gets no operator: its gradient is zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from arch.errors import InputError, Problem
from mapper.workload.operators import AffineIndex, Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Along one axis: the loops that replace window and kernel, and where all three tensors lie.

    Positions are ``first + stride * p``; ``p`` is loop ``output``, kernel elements are
    ``last - stride * t`` (of loop ``kernel``), results read at ``p + step * t + shift``.
    """

    output: str
    kernel: str
    extents: Mapping[str, int]
    position: AffineIndex
    element: AffineIndex
    result: AffineIndex


def is_window(index: AffineIndex, extents: Mapping[str, int], size: int) -> bool:
    """Whether several points of the two loops meet one element, or leave the tensor."""
    terms = [(dim, step) for dim, step in index.terms if extents[dim] > 1]
    low = index.offset + sum(min(0, step * (extents[dim] - 1)) for dim, step in terms)
    high = index.offset + sum(max(0, step * (extents[dim] - 1)) for dim, step in terms)
    return not _is_injective(terms, extents) or low < 0 or high >= size


def _is_injective(terms: Sequence[tuple[str, int]], extents: Mapping[str, int]) -> bool:
    reach = 0
    for dim, step in sorted(terms, key=lambda term: abs(term[1])):
        if abs(step) <= reach:
            return False
        reach += abs(step) * (extents[dim] - 1)
    return True


def phases(operator: Operator, index: AffineIndex, size: int) -> Iterator[Phase]:
    """Of one axis of ``size``, read at ``output * stride + kernel * dilation - padding``."""
    outputs = [dim for dim in index.dims if dim in operator.output.dims]
    kernels = [dim for dim in index.dims if dim not in operator.output.dims]
    if len(outputs) != 1 or len(kernels) != 1:
        raise _unsupported(
            operator,
            "a window over other loops than one output and one kernel (as in sliding-window "
            "attention; full attention can be trained)",
        )
    (output,), (kernel,) = outputs, kernels
    steps = dict(index.terms)
    stride, dilation, taps = steps[output], steps[kernel], operator.extents[kernel]
    if stride > 1 and dilation > 1:
        raise _unsupported(operator, "a window with stride and dilation")
    for first in range(min(stride, size)):
        met = [r for r in range(taps) if (first - index.offset - r * dilation) % stride == 0]
        if not met:
            continue
        last = met[-1]
        count = len(range(first, size, stride))
        step = 1 if stride > 1 else dilation
        yield Phase(
            output=output,
            kernel=kernel,
            extents={output: count, kernel: len(met)},
            position=AffineIndex(((output, stride),), first),
            element=AffineIndex(((kernel, -stride if stride > 1 else -1),), last),
            result=AffineIndex(
                ((output, 1), (kernel, step)), (first - index.offset - last * dilation) // stride
            ),
        )


def combinations(
    operator: Operator, access: Sequence[AffineIndex], shape: Sequence[int]
) -> Iterator[dict[int, Phase]]:
    """Every choice of a phase per windowed axis, by axis."""
    axes = [a for a, at in enumerate(access) if is_window(at, operator.extents, shape[a])]
    for chosen in product(*(phases(operator, access[a], shape[a]) for a in axes)):
        yield dict(zip(axes, chosen, strict=True))


def replaced(index: Sequence[AffineIndex], phase: Phase) -> tuple[AffineIndex, ...]:
    """Another operand's index in the phase's loops."""
    new = {phase.output: phase.result, phase.kernel: phase.element}
    return tuple(_substituted(at, new) for at in index)


def _substituted(index: AffineIndex, new: Mapping[str, AffineIndex]) -> AffineIndex:
    steps: dict[str, int] = {}
    offset = index.offset
    for dim, step in index.terms:
        expression = new.get(dim, AffineIndex(((dim, 1),)))
        for inner, factor in expression.terms:
            steps[inner] = steps.get(inner, 0) + step * factor
        offset += step * expression.offset
    return AffineIndex(tuple((dim, step) for dim, step in steps.items() if step), offset)


def _unsupported(operator: Operator, what: str) -> InputError:
    return InputError(Problem(f"{operator.name}: no gradient through {what}", where="training"))

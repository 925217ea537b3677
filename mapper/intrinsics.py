"""Which loops of an operator a hardware intrinsic can execute.

Two steps. *Coupling*: a loop of the operator can stand for a loop of the intrinsic if it indexes
the corresponding operands and no others. *Structure*: where the intrinsic adds two of its loops in
one index (the sliding window of a convolution), the operator must add the loops that stand for
them, and where the intrinsic keeps them apart, the operator should too. If it does not (the output
row and the kernel row of a convolution, on a matrix product), neighbouring tiles overlap in memory
and the data must be laid out anew first: such a match is listed, and marked ``im2col``.

Several loops may stand for one (fused): batch and pixels for the rows of a matrix product. Matches
that differ only by a symmetry of the intrinsic (a product and its transpose) are the same match.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product

from arch.errors import InputError, Problem, unknown
from arch.spec import Intrinsic
from mapper.workload.operators import AffineIndex, Operator

#: Operands of a product by their number: first input, second input, output.
_FIRST, _SECOND, _OUTPUT = range(3)

#: The operands that a loop of each class indexes (``arch.spec.DIM_CLASSES``).
_INDEXED = {
    "m": (True, False, True),
    "n": (False, True, True),
    "k": (True, True, False),
    "b": (True, True, True),
}

Axis = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """``output += first * second`` over loops; ``operands`` has the loops added on each axis.

    ``ordered``: the first operand must be the operator's input, the second its weight, as in an
    architecture whose memories keep the one or the other.
    """

    name: str
    operands: tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]]
    ordered: bool = False

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(loop for o in self.operands for axis in o for loop in axis))

    def indexed(self, loop: str) -> tuple[bool, ...]:
        """For each operand, whether the loop indexes it."""
        return tuple(any(loop in axis for axis in operand) for operand in self.operands)

    @property
    def formula(self) -> str:
        """``out[i, j] += in[i, k] * weight[k, j]``."""
        first, second, output = (
            ", ".join("+".join(axis) for axis in operand) for operand in self.operands
        )
        return f"C[{output}] += A[{first}] * B[{second}]"


def _pattern(name: str, output: str, first: str, second: str) -> Pattern:
    """From the indices as one writes them, ``y+r`` for a sum."""
    first_axes, second_axes, output_axes = (
        tuple(tuple(axis.split("+")) for axis in text.split()) for text in (first, second, output)
    )
    return Pattern(name=name, operands=(first_axes, second_axes, output_axes))


#: The intrinsics that HASCO (Xiao et al., 2021) generates hardware for.
PATTERNS = {
    pattern.name: pattern
    for pattern in (
        _pattern("gemm", "i j", "i k", "k j"),
        _pattern("gemv", "i", "i k", "k"),
        _pattern("dot", "b", "b k", "b k"),
        _pattern("conv", "n k y x", "n c y+r x+s", "k c r s"),
    )
}


def pattern_named(name: str) -> Pattern:
    """The pattern of that name; ``InputError`` with what there is otherwise."""
    if name not in PATTERNS:
        raise InputError(Problem(unknown("intrinsic", name, list(PATTERNS)), where="--intrinsic"))
    return PATTERNS[name]


def patterns_of(intrinsic: Intrinsic) -> tuple[Pattern, ...]:
    """What a compute unit's axes can be together: one pattern per choice of a class for each."""
    return tuple(
        _axes_pattern(intrinsic, dict(zip((a.name for a in intrinsic.axes), chosen, strict=True)))
        for chosen in product(*(axis.dim_classes for axis in intrinsic.axes))
    )


def _axes_pattern(intrinsic: Intrinsic, classes: Mapping[str, str]) -> Pattern:
    first, second, output = (
        tuple((axis,) for axis, dim_class in classes.items() if _INDEXED[dim_class][operand])
        for operand in (_FIRST, _SECOND, _OUTPUT)
    )
    chosen = ", ".join(f"{axis} as {dim_class}" for axis, dim_class in classes.items())
    return Pattern(
        name=f"{intrinsic.name} ({chosen})", operands=(first, second, output), ordered=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which loops of the operator stand for each loop of the intrinsic (none: of one iteration).

    ``swapped``: the intrinsic's first operand is the operator's second input. ``im2col`` lists
    pairs of the operator's loops that share one index although the intrinsic keeps them apart.
    ``steps`` has the stride and the dilation of each sum in the intrinsic's indices.
    """

    operator: str
    pattern: Pattern
    loops: Mapping[str, tuple[str, ...]]
    swapped: bool
    im2col: tuple[tuple[str, str], ...] = ()
    steps: Mapping[Axis, tuple[int, ...]]

    @property
    def fused(self) -> bool:
        return any(len(loops) > 1 for loops in self.loops.values())

    @property
    def filled(self) -> int:
        """Loops of the intrinsic that some loop of the operator stands for."""
        return sum(bool(loops) for loops in self.loops.values())

    def extent(self, operator: Operator, loop: str) -> int:
        """Iterations of the intrinsic's loop if all of the operator's are given to it."""
        return math.prod(operator.extents[dim] for dim in self.loops[loop])


def matches(operator: Operator, pattern: Pattern, *, fused: bool = False) -> tuple[Match, ...]:
    """Every way to execute part of the operator by the intrinsic; without ``fused`` one loop each.

    As many loops of the intrinsic as possible are filled. Empty if the operator is no product of
    two tensors.
    """
    if operator.operation != "mac" or len(operator.inputs) != 2:
        return ()
    found: dict[frozenset[tuple[str, tuple[str, ...] | bool]], Match] = {}
    for swapped in (False,) if pattern.ordered else (False, True):
        for loops in _assignments(operator, pattern, swapped, fused):
            match = _structured(operator, pattern, loops, swapped)
            if match is not None:
                found.setdefault(_canonical(match), match)
    most = max((match.filled for match in found.values()), default=0)
    return tuple(match for match in found.values() if match.filled == most)


def candidates(operator: Operator, pattern: Pattern, swapped: bool) -> dict[str, tuple[str, ...]]:
    """Coupling: for each loop of the intrinsic, the loops that index the same operands."""
    accesses = _operands(operator, swapped)
    indexed = {
        dim: tuple(any(dim in index.dims for index in access) for access in accesses)
        for dim in operator.extents
    }
    return {
        loop: tuple(dim for dim in operator.extents if indexed[dim] == pattern.indexed(loop))
        for loop in pattern.loops
    }


def _operands(operator: Operator, swapped: bool) -> tuple[tuple[AffineIndex, ...], ...]:
    first, second = operator.inputs[::-1] if swapped else operator.inputs
    return first.index, second.index, operator.output.index


Loops = dict[str, tuple[str, ...]]


def _assignments(
    operator: Operator, pattern: Pattern, swapped: bool, fused: bool
) -> Iterator[Loops]:
    """Every way to give loops of the operator to those of the intrinsic; some stay outside."""
    allowed = candidates(operator, pattern, swapped)
    takers = {
        dim: [None, *(loop for loop in pattern.loops if dim in allowed[loop])]
        for dim in operator.extents
        if any(dim in dims for dims in allowed.values())
    }
    for choice in product(*takers.values()):
        loops: Loops = dict.fromkeys(pattern.loops, ())
        for dim, loop in zip(takers, choice, strict=True):
            if loop is not None:
                loops[loop] = (*loops[loop], dim)
        if any(loops.values()) and (fused or all(len(dims) <= 1 for dims in loops.values())):
            yield loops


def _structured(
    operator: Operator, pattern: Pattern, loops: Mapping[str, tuple[str, ...]], swapped: bool
) -> Match | None:
    """The match, if the operator has the sums of the intrinsic's indices."""
    taker = {dim: loop for loop, dims in loops.items() for dim in dims}
    shared: dict[tuple[str, str], None] = {}
    steps: dict[Axis, tuple[int, ...]] = {}
    for axes, indices in zip(pattern.operands, _operands(operator, swapped), strict=True):
        wanted = {tuple(loop for loop in axis if loops[loop]) for axis in axes}
        sums = {axis for axis in wanted if len(axis) > 1}
        for index in indices:
            together = tuple(dict.fromkeys(taker[dim] for dim in index.dims if dim in taker))
            axis = next((s for s in sums if set(s) == set(together)), None)
            found = None if axis is None else _steps(operator, index, axis, loops)
            if axis is not None and found is not None:
                steps[axis] = found
                sums.discard(axis)
            elif len(together) > 1:
                shared |= dict.fromkeys(_overlapping(operator, index, taker))
        if sums:
            return None
    return Match(
        operator=operator.name,
        pattern=pattern,
        loops=dict(loops),
        swapped=swapped,
        im2col=tuple(shared),
        steps=steps,
    )


def _steps(
    operator: Operator, index: AffineIndex, axis: Axis, loops: Mapping[str, tuple[str, ...]]
) -> tuple[int, ...] | None:
    """The step of each loop of the sum; none if loops fused into one do not advance as one."""
    coefficients = dict(index.terms)
    found = []
    for loop in axis:
        inner = loops[loop][-1]
        reach = coefficients.get(inner, 0) * operator.extents[inner]
        for dim in reversed(loops[loop][:-1]):
            if coefficients.get(dim) != reach:
                return None
            reach *= operator.extents[dim]
        found.append(coefficients.get(inner, 0))
    return tuple(found)


def _overlapping(
    operator: Operator, index: AffineIndex, taker: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Pairs of matched loops that meet the same element of an axis for different iterations.

    ``64 * head + element`` never does: that is two axes stored as one.
    """
    terms = [term for term in index.terms if term[0] in taker]
    return [
        (one, other)
        for position, (one, step) in enumerate(terms)
        for other, other_step in terms[position + 1 :]
        if taker[one] != taker[other]
        and not _apart((operator.extents[one], step), (operator.extents[other], other_step))
    ]


def _apart(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two loops (extent, step) reach every sum of theirs only once."""
    (extent, step), (other_extent, other_step) = sorted((one, other), key=lambda t: abs(t[1]))
    return extent == 1 or other_extent == 1 or abs(other_step) > abs(step) * (extent - 1)


def _canonical(match: Match) -> frozenset[tuple[str, tuple[str, ...] | bool]]:
    """The same for matches that a symmetry of the intrinsic turns into each other."""
    forms = [
        frozenset(
            {("swapped", match.swapped != swaps)}
            | {(renamed[loop], dims) for loop, dims in match.loops.items()}
        )
        for renamed, swaps in _symmetries(match.pattern)
    ]
    return min(forms, key=lambda form: sorted(map(str, form)))


@lru_cache(maxsize=64)
def _symmetries(pattern: Pattern) -> tuple[tuple[dict[str, str], bool], ...]:
    """Renamings of the loops (and exchanges of the inputs) that leave the intrinsic as it is."""
    first, second, output = (frozenset(map(frozenset, axes)) for axes in pattern.operands)
    found = []
    for order in permutations(pattern.loops):
        renamed = dict(zip(pattern.loops, order, strict=True))
        images = tuple(
            frozenset(frozenset(renamed[loop] for loop in axis) for axis in axes)
            for axes in (first, second, output)
        )
        found += [
            (renamed, swaps)
            for swaps, operands in ((False, (first, second)), (True, (second, first)))
            if images == (*operands, output)
        ]
    return tuple(found)

"""Einsums of any rank and number of operands, and two named ones of tensor algebra."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations

from arch.errors import InputError, Problem
from mapper.workload.parameters import Parameter, format_parameters
from mapper.workload.single.entry import SingleOperator, require
from mapper.workload.writing.builder import Builder, pointwise, product

_EXPRESSION = re.compile(r"[A-Za-z]+(\*[A-Za-z]+)*->[A-Za-z]*")
_EXPECTED = "letters for loops, * between operands, as in ikl*kj*lj->ij"

#: Operands that can be ordered optimally by looking at all orders.
MOST_OPERANDS = 6


def expression(text: str) -> tuple[tuple[str, ...], str]:
    """Operands' loops and the result's; ``InputError`` if it is no einsum."""
    if not _EXPRESSION.fullmatch(text):
        raise InputError(Problem(f"{text!r} is no einsum; expected {_EXPECTED}"))
    left, _, result = text.partition("->")
    operands = tuple(left.split("*"))
    unknown = sorted(set(result) - set(left))
    if unknown or len(set(result)) < len(result):
        message = f"the result {result!r} of {text!r} has loops that no operand has, or one twice"
        raise InputError(Problem(message))
    if len(operands) > MOST_OPERANDS:
        message = f"{len(operands)} operands; allowed at most {MOST_OPERANDS}"
        raise InputError(Problem(message))
    return operands, result


def _einsum(builder: Builder, v: Mapping[str, int], texts: Mapping[str, str]) -> list[str]:
    operands, result = expression(texts["expression"])
    used = set("".join(operands))
    require(
        "einsum",
        *((letter in v, f"the size of loop {letter} is missing") for letter in sorted(used)),
        *((letter in used, f"loop {letter} is in no operand") for letter in sorted(v)),
    )
    return [emit_einsum(builder, operands, result, v)]


def emit_einsum(
    builder: Builder, operands: Sequence[str], result: str, sizes: Mapping[str, int]
) -> str:
    """Pairwise products in the order with the fewest multiply-accumulates.

    The first operand is the input, the others are weights (factors).
    """
    names = []
    for number, loops in enumerate(operands):
        add = builder.input if number == 0 else builder.weight
        names.append(add(f"operand{number}", [sizes[loop] for loop in loops]))
    if len(operands) == 1:
        return _single(builder, operands[0], result, sizes)
    remaining = list(zip(operands, names, strict=True))
    for number, (i, j) in enumerate(contraction_order(tuple(operands), result, _frozen(sizes))):
        (left, left_name), (right, right_name) = remaining[i], remaining[j]
        rest = [each for at, each in enumerate(remaining) if at not in (i, j)]
        kept = _kept(left, right, [loops for loops, _ in rest], result)
        kept = kept if rest else result
        loops = "".join(dict.fromkeys(left + right))
        step = product(
            f"{_spaced(left)}, {_spaced(right)} -> {_spaced(kept) or '.'}",
            {loop: sizes[loop] for loop in loops},
            kind="einsum",
        )
        made = builder.emit(f"product{number}", step, [left_name, right_name])
        remaining = [*rest, (kept, made)]
    return remaining[0][1]


def _single(builder: Builder, loops: str, result: str, sizes: Mapping[str, int]) -> str:
    operation = "copy" if set(loops) == set(result) else "add"
    text = f"{_spaced(loops)} -> {_spaced(result) or '.'}"
    chosen = {loop: sizes[loop] for loop in dict.fromkeys(loops)}
    return builder.emit("einsum", pointwise("einsum", operation, text, chosen), ["operand0"])


def _spaced(loops: str) -> str:
    return " ".join(loops)


def _frozen(sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(sizes.items()))


def _kept(left: str, right: str, others: Sequence[str], result: str) -> str:
    """Loops of a product that something else still needs."""
    needed = set(result).union(*others)
    return "".join(loop for loop in dict.fromkeys(left + right) if loop in needed)


@lru_cache(maxsize=256)
def contraction_order(
    operands: tuple[str, ...], result: str, sizes: tuple[tuple[str, int], ...]
) -> tuple[tuple[int, int], ...]:
    """Pairs of positions to contract; the product goes to the end of the list."""
    return _best_order(operands, result, dict(sizes))[1]


def _best_order(
    operands: tuple[str, ...], result: str, sizes: Mapping[str, int]
) -> tuple[int, tuple[tuple[int, int], ...]]:
    if len(operands) == 1:
        return 0, ()
    found = []
    for i, j in combinations(range(len(operands)), 2):
        rest = tuple(loops for at, loops in enumerate(operands) if at not in (i, j))
        macs = math.prod(sizes[loop] for loop in set(operands[i] + operands[j]))
        kept = _kept(operands[i], operands[j], rest, result)
        more, order = _best_order((*rest, kept), result, sizes)
        found.append((macs + more, ((i, j), *order)))
    return min(found)


def _mttkrp(builder: Builder, v: Mapping[str, int], _: Mapping[str, str]) -> list[str]:
    return [emit_einsum(builder, ("IKL", "KJ", "LJ"), "IJ", v)]


def _ttm(builder: Builder, v: Mapping[str, int], _: Mapping[str, str]) -> list[str]:
    return [emit_einsum(builder, ("IJL", "LK"), "IJK", v)]


def _bmm(builder: Builder, v: Mapping[str, int], _: Mapping[str, str]) -> list[str]:
    return [emit_einsum(builder, ("BMK", "BKN"), "BMN", v)]


def _letters(**helps: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name=name, help=text) for name, text in helps.items())


ENTRIES = (
    SingleOperator(
        name="bmm",
        description="a matrix product per batch element, out[B,M,N] = in[B,M,K] * weight[B,K,N]",
        parameters=(
            *_letters(B="matrices", M="rows", N="columns", K="length of the sums"),
            *format_parameters("int8"),
        ),
        build=_bmm,
    ),
    SingleOperator(
        name="einsum",
        description="sum of products, expression=ikl*kj*lj->ij,i=8,k=8,l=8,j=4; best order",
        parameters=(
            Parameter(name="expression", help=_EXPECTED, check=expression, texts=_EXPECTED),
            *format_parameters("int8"),
        ),
        build=_einsum,
        free_sizes=True,
    ),
    SingleOperator(
        name="mttkrp",
        description="out[I,J] = sum A[I,K,L] * B[K,J] * C[L,J], in two products",
        parameters=(
            *_letters(I="rows of the result", J="rank", K="second mode", L="third mode"),
            *format_parameters("int8"),
        ),
        build=_mttkrp,
    ),
    SingleOperator(
        name="ttm",
        description="tensor times matrix, out[I,J,K] = sum A[I,J,L] * B[L,K]",
        parameters=(
            *_letters(I="first mode", J="second mode", K="columns", L="mode summed away"),
            *format_parameters("int8"),
        ),
        build=_ttm,
    ),
)

"""Accesses in writing: ``"b 4*g+r m, b l -> b m"``.

Operands are separated by commas, axes by spaces. An axis is a sum of loops, multiples of loops
and whole numbers: ``2*p+r-1`` is the sliding window of stride 2 with one element of padding.
``.`` alone is a tensor without axes' worth of loops (an axis always at 0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from mapper.workload.nests import Index, Nest
from mapper.workload.operators import AffineIndex

_TERM = re.compile(r"(?P<sign>[+-]?)(?:(?P<factor>\d+)\*)?(?:(?P<dim>[A-Za-z]\w*)|(?P<number>\d+))")


def nest(text: str, sizes: Mapping[str, int]) -> Nest:
    """The loop nest in writing, with its loops' sizes in their order."""
    inputs, output = accesses(text)
    return Nest(extents=sizes, inputs=inputs, output=output)


@lru_cache(maxsize=1 << 12)
def accesses(text: str) -> tuple[tuple[Index, ...], Index]:
    """The inputs' indices and the output's."""
    left, arrow, right = text.partition("->")
    if not arrow:
        raise ValueError(f"{text!r} has no '->'")
    return tuple(index(operand) for operand in left.split(",")), index(right)


def index(text: str) -> Index:
    return tuple(AffineIndex((), 0) if axis == "." else _axis(axis) for axis in text.split())


def _axis(text: str) -> AffineIndex:
    terms: list[tuple[str, int]] = []
    offset = position = 0
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None or (position and not match["sign"]):
            raise ValueError(f"{text!r} is no sum of loops and numbers")
        sign = -1 if match["sign"] == "-" else 1
        factor = sign * int(match["factor"] or 1)
        if match["dim"]:
            terms.append((match["dim"], factor))
        else:
            offset += factor * int(match["number"])
        position = match.end()
    return AffineIndex(tuple(terms), offset)

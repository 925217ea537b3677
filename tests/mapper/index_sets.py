"""Counting by enumeration: which positions of a tensor a box of loop indices really touches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from mapper.workload.operators import Access, Operator

Range = tuple[int, int]
Box = Mapping[str, Range]
Positions = frozenset[tuple[int, ...]]


def touched(access: Access, box: Box, shape: Sequence[int] | None = None) -> Positions:
    """Positions of the access over the box; with a shape, only those that exist."""
    dims = [dim for dim in box if dim in access.dims]
    found = set()
    for point in itertools.product(*(range(*box[dim]) for dim in dims)):
        at = dict(zip(dims, point, strict=True))
        place = tuple(
            index.offset + sum(step * at[dim] for dim, step in index.terms)
            for index in access.index
        )
        if shape is None or all(0 <= p < size for p, size in zip(place, shape, strict=True)):
            found.add(place)
    return frozenset(found)


def chunks(box: Box, tiles: Mapping[str, int]) -> Iterator[dict[str, Range]]:
    """The tiles that a box is visited in."""
    spans = [
        [(a, min(a + tiles[dim], stop)) for a in range(start, stop, tiles[dim])]
        for dim, (start, stop) in box.items()
    ]
    for choice in itertools.product(*spans):
        yield dict(zip(box, choice, strict=True))


def shares(box: Box, parallel: Mapping[str, int]) -> Iterator[dict[str, Range]]:
    """The part of each instance that gets one: contiguous, and as even as can be."""
    spans = [_even(*box[dim], parallel[dim]) for dim in box]
    for choice in itertools.product(*spans):
        yield dict(zip(box, choice, strict=True))


def _even(start: int, stop: int, parts: int) -> list[Range]:
    parts = min(parts, stop - start)
    size, longer = divmod(stop - start, parts)
    cuts = [start + i * size + min(i, longer) for i in range(parts + 1)]
    return list(itertools.pairwise(cuts))


def whole(operator: Operator) -> dict[str, Range]:
    return {dim: (0, extent) for dim, extent in operator.extents.items()}

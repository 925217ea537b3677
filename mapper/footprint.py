"""How many distinct elements of a tensor a box of loop indices touches.

Every data volume in the project is counted here. Loop dimensions are split into groups that
can be counted independently: dimensions that share a tensor axis with overlap (the sliding
window ``p * stride + r``) or that reach into padding form one group, every other dimension is
a group of its own. Volumes are products over groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from arch.errors import InputError, Problem
from mapper.sliding import distinct_clear, distinct_positions, tiles_moved
from mapper.workload.operators import Access, Operator

Range = tuple[int, int]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Axis:
    """One tensor axis whose dimensions must be counted together."""

    terms: tuple[tuple[str, int], ...]
    offset: int
    size: int

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(dim for dim, _ in self.terms)

    def contains(self, ranges: Mapping[str, Range]) -> bool:
        """Whether no point of the ranges lies in the padding."""
        low = high = self.offset
        for dim, coefficient in self.terms:
            start, stop = ranges[dim]
            ends = coefficient * start, coefficient * (stop - 1)
            low, high = low + min(ends), high + max(ends)
        return low >= 0 and high < self.size


@dataclass(frozen=True, slots=True)
class Operand:
    """An access split into what is counted per dimension and what is counted together."""

    dims: frozenset[str]
    coupled: tuple[Axis, ...]
    elements: int

    def coupled_axes(self, dims: Iterable[str]) -> tuple[Axis, ...]:
        """Those that some of the dims run along."""
        wanted = set(dims)
        return tuple(axis for axis in self.coupled if wanted & set(axis.dims))


@dataclass(frozen=True, slots=True)
class Footprints:
    """The counting rules of one operator: its operands and its independent groups of dims."""

    extents: tuple[tuple[str, int], ...]
    operands: tuple[Operand, ...]
    groups: tuple[tuple[str, ...], ...]

    def moved(
        self,
        operand: int,
        ranges: Mapping[str, Range],
        tiles: Mapping[str, int],
        parallel: Mapping[str, int],
    ) -> int:
        """Elements moved when ``ranges`` are visited tile by tile.

        ``parallel[dim]`` is how many instances along ``dim`` receive their own copy of what
        they need; elements shared by the others count once (multicast). Tiles start at
        multiples of their size.
        """
        return math.prod(
            self.group_moved(group, operand, ranges, tiles, parallel) for group in self.groups
        )

    def group_moved(
        self,
        group: tuple[str, ...],
        operand: int,
        ranges: Mapping[str, Range],
        tiles: Mapping[str, int],
        parallel: Mapping[str, int],
    ) -> int:
        """The factor that ``group`` contributes to ``moved``."""
        access = self.operands[operand]
        axes = access.coupled_axes(group)
        together = {dim for axis in axes for dim in axis.dims}
        count = 1
        for dim in group:
            if dim in together:
                continue
            if dim in access.dims:
                count *= ranges[dim][1] - ranges[dim][0]
            else:
                count *= _visits(ranges[dim], tiles[dim], parallel[dim])
        for axis in axes:
            count *= _coupled_moved(
                axis,
                tuple(ranges[d] for d in axis.dims),
                tuple(tiles[d] for d in axis.dims),
                tuple(parallel[d] for d in axis.dims),
            )
        return count

    def held(self, operand: int, tiles: Mapping[str, int], parallel: Mapping[str, int]) -> int:
        """Elements that one of the ``parallel`` instances must have room for."""
        return math.prod(self.group_held(group, operand, tiles, parallel) for group in self.groups)

    def group_held(
        self,
        group: tuple[str, ...],
        operand: int,
        tiles: Mapping[str, int],
        parallel: Mapping[str, int],
    ) -> int:
        """The factor that ``group`` contributes to ``held``."""
        access = self.operands[operand]
        axes = access.coupled_axes(group)
        together = {dim for axis in axes for dim in axis.dims}
        count = math.prod(-(-tiles[d] // parallel[d]) for d in group if d in access.dims - together)
        for axis in axes:
            count *= _whole_axis(axis, [-(-tiles[d] // parallel[d]) for d in axis.dims])
        return count


def footprints(operator: Operator, shapes: Mapping[str, tuple[int, ...]]) -> Footprints:
    """Counting rules of ``operator`` over tensors of the given shapes."""
    operands = []
    coupled_sets: list[set[str]] = []
    for access in operator.accesses:
        axes = _joined(operator, access, shapes[access.tensor])
        coupled = tuple(axis for axis in axes if not _is_plain(axis, operator.extents))
        coupled_sets += [set(axis.dims) for axis in coupled]
        dims = frozenset(dim for axis in axes for dim in axis.dims)
        together = {dim for axis in coupled for dim in axis.dims}
        elements = math.prod(e for d, e in operator.extents.items() if d in dims - together)
        for axis in coupled:
            elements *= _distinct(axis, tuple((0, operator.extents[d]) for d in axis.dims))
        operands.append(Operand(dims, coupled, elements))
    return Footprints(
        extents=tuple(operator.extents.items()),
        operands=tuple(operands),
        groups=_groups(tuple(operator.extents), coupled_sets),
    )


def _joined(operator: Operator, access: Access, shape: Sequence[int]) -> tuple[Axis, ...]:
    """The tensor's axes that loops run along; those that share a loop as one axis."""
    joined: list[Axis] = []
    for index, size in zip(access.index, shape, strict=True):
        axis = Axis(_merged(index.terms), index.offset, size)
        if not axis.terms:
            continue
        sharing = [other for other in joined if set(other.dims) & set(axis.dims)]
        joined = [other for other in joined if other not in sharing]
        for other in sharing:
            if not (_is_inside(other, operator.extents) and _is_inside(axis, operator.extents)):
                message = "axes that share a loop reach beyond the tensor"
                where = f"operator {operator.name}: access to {access.tensor}"
                raise InputError(Problem(message, where=where))
            axis = _flattened(other, axis)
        joined.append(axis)
    return tuple(joined)


def _merged(terms: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """One term per loop, without those that have no effect."""
    coefficients: dict[str, int] = {}
    for dim, coefficient in terms:
        coefficients[dim] = coefficients.get(dim, 0) + coefficient
    return tuple((dim, c) for dim, c in coefficients.items() if c)


def _flattened(outer: Axis, inner: Axis) -> Axis:
    terms = [(dim, coefficient * inner.size) for dim, coefficient in outer.terms]
    return Axis(
        terms=_merged([*terms, *inner.terms]),
        offset=outer.offset * inner.size + inner.offset,
        size=outer.size * inner.size,
    )


def _is_plain(axis: Axis, extents: Mapping[str, int]) -> bool:
    """Whether each point of the loops meets an element of its own."""
    return _is_injective(axis.terms, extents) and _is_inside(axis, extents)


def _is_injective(terms: tuple[tuple[str, int], ...], extents: Mapping[str, int]) -> bool:
    reach = 0
    for dim, coefficient in sorted(terms, key=lambda term: abs(term[1])):
        if extents[dim] > 1 and abs(coefficient) <= reach:
            return False
        reach += abs(coefficient) * (extents[dim] - 1)
    return True


def _is_inside(axis: Axis, extents: Mapping[str, int]) -> bool:
    return axis.contains({dim: (0, extents[dim]) for dim in axis.dims})


def _groups(dims: tuple[str, ...], coupled: list[set[str]]) -> tuple[tuple[str, ...], ...]:
    merged: list[set[str]] = []
    for dim in dims:
        group = {dim}.union(*(c for c in coupled if dim in c))
        touching = [m for m in merged if m & group]
        merged = [m for m in merged if not m & group]
        merged.append(group.union(*touching))
    return tuple(tuple(d for d in dims if d in group) for group in merged)


def _visits(span: Range, tile: int, parallel: int) -> int:
    """Instances served, summed over the tiles of ``span`` (the tiles alone if not parallel)."""
    full, rest = divmod(span[1] - span[0], tile)
    return full * min(parallel, tile) + min(parallel, rest)


@lru_cache(maxsize=1 << 16)
def _coupled_moved(
    axis: Axis, ranges: tuple[Range, ...], tiles: tuple[int, ...], parallel: tuple[int, ...]
) -> int:
    starts, stops = zip(*ranges, strict=True)
    box = _vector(starts), _vector(stops)
    return int(tiles_moved(axis_record(axis), *box, _vector(tiles), _vector(parallel)))


@lru_cache(maxsize=1 << 16)
def _distinct(axis: Axis, box: tuple[Range, ...]) -> int:
    """Distinct positions of the box that lie on the axis."""
    starts, stops = zip(*box, strict=True)
    return int(distinct_positions(axis_record(axis), _vector(starts), _vector(stops)))


def _whole_axis(axis: Axis, sizes: Sequence[int]) -> int:
    """Distinct positions of a box of these sizes that lies clear of the padding."""
    return int(distinct_clear(axis_record(axis), _vector(sizes)))


def _vector(values: Iterable[int]) -> IntArray:
    return np.array(list(values), dtype=np.int64)


def axis_record(axis: Axis) -> IntArray:
    """The axis as the array that the compiled counts read: offset, size, coefficients."""
    return _vector((axis.offset, axis.size, *(coefficient for _, coefficient in axis.terms)))

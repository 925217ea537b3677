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

from mapper.sliding import axis_moved, distinct_clear, distinct_positions
from mapper.workload.operators import Access, AffineIndex, Operator

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


@dataclass(frozen=True, slots=True)
class Operand:
    """An access split into what is counted per dimension and what is counted together."""

    dims: frozenset[str]
    coupled: tuple[Axis, ...]
    elements: int

    def coupled_axis(self, dims: Iterable[str]) -> Axis | None:
        wanted = set(dims)
        return next((axis for axis in self.coupled if wanted & set(axis.dims)), None)


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
        axis = access.coupled_axis(group)
        together = axis.dims if axis else ()
        count = 1
        for dim in group:
            if dim in together:
                continue
            if dim in access.dims:
                count *= ranges[dim][1] - ranges[dim][0]
            else:
                count *= _visits(ranges[dim], tiles[dim], parallel[dim])
        if axis:
            count *= _coupled_moved(
                axis,
                tuple(ranges[d] for d in together),
                tuple(tiles[d] for d in together),
                tuple(parallel[d] for d in together),
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
        axis = access.coupled_axis(group)
        together = axis.dims if axis else ()
        count = math.prod(
            -(-tiles[d] // parallel[d]) for d in group if d in access.dims and d not in together
        )
        if axis:
            count *= _whole_axis(axis, [-(-tiles[d] // parallel[d]) for d in together])
        return count


def footprints(operator: Operator, shapes: Mapping[str, tuple[int, ...]]) -> Footprints:
    """Counting rules of ``operator`` over tensors of the given shapes."""
    operands = []
    coupled_sets: list[set[str]] = []
    for access in operator.accesses:
        shape = shapes[access.tensor]
        coupled = _coupled_axes(access, shape, operator.extents)
        coupled_sets += [set(axis.dims) for axis in coupled]
        everything = {dim: (0, extent) for dim, extent in operator.extents.items()}
        together = {d for axis in coupled for d in axis.dims}
        elements = math.prod(e for d, e in operator.extents.items() if d in access.dims - together)
        for axis in coupled:
            elements *= _distinct(axis, tuple(everything[d] for d in axis.dims))
        operands.append(Operand(access.dims, coupled, elements))
    return Footprints(
        extents=tuple(operator.extents.items()),
        operands=tuple(operands),
        groups=_groups(tuple(operator.extents), coupled_sets),
    )


def _coupled_axes(
    access: Access, shape: Sequence[int], extents: Mapping[str, int]
) -> tuple[Axis, ...]:
    axes = []
    for index, size in zip(access.index, shape, strict=True):
        if index.terms and not (_injective(index.terms, extents) and _inside(index, size, extents)):
            axes.append(Axis(index.terms, index.offset, size))
    return tuple(axes)


def _injective(terms: tuple[tuple[str, int], ...], extents: Mapping[str, int]) -> bool:
    reach = 0
    for dim, coefficient in sorted(terms, key=lambda term: term[1]):
        if extents[dim] > 1 and coefficient <= reach:
            return False
        reach += coefficient * (extents[dim] - 1)
    return True


def _inside(index: AffineIndex, size: int, extents: Mapping[str, int]) -> bool:
    last = index.offset + sum(c * (extents[d] - 1) for d, c in index.terms)
    return index.offset >= 0 and last < size


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
    rows = np.array([tiles], dtype=np.int64), np.array([parallel], dtype=np.int64)
    return int(axis_moved(axis_record(axis), _vector(starts), _vector(stops), *rows)[0])


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

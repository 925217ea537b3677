"""All ways to unroll and tile one dimension through the stages of a nest.

A tiling of a dimension of extent ``D`` is a spatial factor on every axis and one tile size
per stage, never growing inwards. Tiles are multiples of the product of the spatial factors (the
unit); an inner tile divides the tile around it, and the outermost one may be ragged: its sizes
are the divisors of the number of units and the smallest tile for each possible number of chunks.

The loops right above a stage may only be over dimensions that its operand depends on: any
other loop could be moved below the stage without changing a tile, and only repeats the load.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Chains:
    """One row per tiling: ``spatial[row, axis]`` factors, and ``sizes[row, depth]`` of the tile
    after so many splits; the last one is what one step takes."""

    extent: int
    spatial: IntArray
    sizes: IntArray

    @cached_property
    def blocks(self) -> Blocks:
        """The rows in runs that are unrolled alike and have the same outermost tile."""
        is_whole = self.sizes >= self.extent
        outermost = np.where(is_whole, 0, self.sizes).max(axis=1)
        whole = is_whole.sum(axis=1)
        same = (self.spatial[1:] == self.spatial[:-1]).all(axis=1)
        same &= (outermost[1:] == outermost[:-1]) & (whole[1:] == whole[:-1])
        first = np.flatnonzero(np.append(True, ~same))
        return Blocks(
            first=first,
            count=np.diff(first, append=len(self.sizes)),
            spatial=self.spatial[first],
            largest=np.maximum.reduceat(self.sizes, first, axis=0),
            smallest=np.minimum.reduceat(self.sizes, first, axis=0),
        )


@dataclass(frozen=True)
class Tilings:
    """``chains`` of tiles, of which a stage has the one after ``depth[stage]`` splits."""

    chains: Chains
    depth: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.chains.sizes)

    @property
    def extent(self) -> int:
        return self.chains.extent

    @property
    def spatial(self) -> IntArray:
        """``[row, axis]``: factors."""
        return self.chains.spatial

    @cached_property
    def tiles(self) -> IntArray:
        """``[row, stage]``: sizes."""
        return self.chains.sizes[:, self.depth]

    @cached_property
    def levels(self) -> IntArray:
        """Tile sizes per stage and, in the last column, of one step of the compute unit."""
        return self.chains.sizes[:, (*self.depth, -1)]

    @property
    def blocks(self) -> Blocks:
        """Runs of rows, with their levels."""
        every, columns = self.chains.blocks, (*self.depth, -1)
        return replace(
            every, largest=every.largest[:, columns], smallest=every.smallest[:, columns]
        )

    def listed(self, stages: tuple[int, ...]) -> Tilings:
        """The same with the stages in another order."""
        return Tilings(self.chains, tuple(self.depth[stage] for stage in stages))

    def where(self, mask: NDArray[np.bool_]) -> Tilings:
        """Some of them."""
        chains = Chains(self.extent, self.spatial[mask], self.chains.sizes[mask])
        return Tilings(chains, self.depth)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Runs of rows: where each begins, how many there are, their spatial factors, and the largest
    and the smallest tiles of each level."""

    first: IntArray
    count: IntArray
    spatial: IntArray
    largest: IntArray
    smallest: IntArray

    def __len__(self) -> int:
        return len(self.first)

    def rows(self, some: IntArray) -> IntArray:
        """The numbers of the rows of some blocks."""
        first, count = self.first[some], self.count[some]
        ends = np.cumsum(count)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - count, count)
        rows: IntArray = np.repeat(first, count) + within
        return rows


@dataclass(frozen=True, slots=True)
class Room:
    """How far a dimension may be unrolled along an axis; ``contended``: others may be as well."""

    size: int
    contended: bool


@lru_cache(maxsize=1 << 12)
def tilings(
    extent: int,
    rooms: tuple[Room, ...],
    splits: tuple[bool, ...],
    steps: tuple[bool, ...] | None = None,
) -> Tilings:
    """Every tiling of a dimension of ``extent``.

    ``rooms[axis]`` bounds its unrolling there; ``splits[stage]`` says whether the dimension
    may be split right above that stage, ``steps[stage]`` whether a tile there is one step's.
    """
    depth, length = depths(splits, steps or (False,) * len(splits))
    return Tilings(chains(extent, rooms, length), depth)


def depths(splits: tuple[bool, ...], steps: tuple[bool, ...]) -> tuple[tuple[int, ...], int]:
    """How often a dimension has been split at each stage at most, and how often in all; from the
    first stage on whose tile is one step's, once more."""
    free = steps.index(True) if True in steps else len(splits)
    found = tuple(itertools.accumulate(splits[:free]))
    length = int(found[-1]) if found else 0
    return tuple(map(int, found)) + (length + 1,) * (len(splits) - free), length


@lru_cache(maxsize=1 << 12)
def chains(extent: int, rooms: tuple[Room, ...], length: int) -> Chains:
    """Every way to unroll a dimension and to split it ``length`` times."""
    spatial, sizes = [], []
    for factors in _spatial_factors(extent, rooms):
        unit = math.prod(factors)
        units = -(-extent // unit)
        found = _chains(units, length)
        found = np.column_stack([found, np.ones(len(found), dtype=np.int64)])
        sizes.append(np.where(found >= units, extent, found * unit))
        spatial.append(np.repeat(np.array([factors], dtype=np.int64), len(found), axis=0))
    return Chains(extent, np.concatenate(spatial), np.concatenate(sizes))


def _spatial_factors(extent: int, rooms: tuple[Room, ...]) -> Iterator[tuple[int, ...]]:
    """Factors on every axis; what one axis leaves over may be unrolled along the next."""
    if not rooms:
        yield ()
        return
    for factor in _factors(extent, rooms[0]):
        for others in _spatial_factors(-(-extent // factor), rooms[1:]):
            yield (factor, *others)


@lru_cache(maxsize=1 << 12)
def _factors(extent: int, room: Room) -> tuple[int, ...]:
    """The divisors of the extent, and what fills the axis (or what others leave of it)."""
    factors = {f for f in range(1, min(extent, room.size) + 1) if extent % f == 0}
    shares = range(1, room.size + 1) if room.contended else (1,)
    for share in shares:
        steps = -(-extent // (room.size // share))
        factors.add(-(-extent // steps))
    return tuple(sorted(factors))


@lru_cache(maxsize=1 << 12)
def _chains(units: int, length: int) -> IntArray:
    """Every chain of ``length`` tile sizes below ``units``, which is the first column."""
    chains = np.full((1, 1), units, dtype=np.int64)
    for _ in range(length):
        sizes, which = np.unique(chains[:, -1], return_inverse=True)
        inner = [_inner_tiles(units, int(size)) for size in sizes]
        counts = np.array([len(options) for options in inner])
        first = np.cumsum(counts) - counts
        repeats = counts[which]
        ends = np.cumsum(repeats)
        within = np.arange(ends[-1]) - np.repeat(ends - repeats, repeats)
        column = np.concatenate(inner)[np.repeat(first[which], repeats) + within]
        chains = np.column_stack([np.repeat(chains, repeats, axis=0), column])
    return chains


@lru_cache(maxsize=1 << 14)
def _inner_tiles(units: int, tile: int) -> IntArray:
    """Divisors of ``tile``; of all units also the smallest tile for each number of chunks."""
    roots = np.arange(1, math.isqrt(tile) + 1, dtype=np.int64)
    small = roots[tile % roots == 0]
    divisors = [small, tile // small]
    if tile == units:
        some = np.append(roots, len(roots) + 1)
        sizes = np.concatenate([some, -(-units // some)])
        divisors.append(sizes[-(-units // -(-units // sizes)) == sizes])
    return np.unique(np.concatenate(divisors))

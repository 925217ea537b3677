"""All ways to unroll and tile one dimension through the stages of a nest.

A tiling of a dimension of extent ``D`` is a spatial factor on at most one axis and one tile
size per stage, never growing inwards. Tiles are multiples of the spatial factor (the unit); an
inner tile divides the tile around it, and the outermost one may be ragged: its sizes are the
divisors of the number of units and the smallest tile for each possible number of chunks.

The loops right above a stage may only be over dimensions that its operand depends on: any
other loop could be moved below the stage without changing a tile, and only repeats the load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tilings:
    """One row per tiling: ``spatial[row, axis]`` factors and ``tiles[row, stage]`` sizes."""

    extent: int
    spatial: IntArray
    tiles: IntArray

    def __len__(self) -> int:
        return len(self.tiles)

    @cached_property
    def levels(self) -> IntArray:
        """Tile sizes per stage and, in the last column, of one step of the compute unit."""
        step = np.minimum(np.prod(self.spatial, axis=1, dtype=np.int64), self.extent)
        return np.concatenate([self.tiles, step[:, None]], axis=1)


@dataclass(frozen=True, slots=True)
class Room:
    """How far a dimension may be unrolled along an axis; ``contended``: others may be as well."""

    size: int
    contended: bool


@lru_cache(maxsize=1 << 12)
def tilings(extent: int, rooms: tuple[Room, ...], splits: tuple[bool, ...]) -> Tilings:
    """Every tiling of a dimension of ``extent``.

    ``rooms[axis]`` bounds its unrolling there; ``splits[stage]`` says whether the dimension
    may be split right above that stage.
    """
    spatial, tiles = [], []
    for factors in _spatial_factors(extent, rooms):
        unit = int(np.prod(factors))
        units = -(-extent // unit)
        for chain in _chains(units, splits):
            spatial.append(factors)
            tiles.append([extent if t >= units else t * unit for t in chain])
    shape = (len(tiles), len(splits))
    return Tilings(
        extent, np.array(spatial, dtype=np.int64), np.array(tiles, dtype=np.int64).reshape(shape)
    )


def _spatial_factors(extent: int, rooms: tuple[Room, ...]) -> Iterator[tuple[int, ...]]:
    """Unrolled over no axis, or over one of them."""
    nowhere = (1,) * len(rooms)
    yield nowhere
    for axis, room in enumerate(rooms):
        for factor in _factors(extent, room):
            if factor > 1:
                yield (*nowhere[:axis], factor, *nowhere[axis + 1 :])


def _factors(extent: int, room: Room) -> list[int]:
    """The divisors of the extent, and what fills the axis (or what others leave of it)."""
    factors = {f for f in range(1, min(extent, room.size) + 1) if extent % f == 0}
    shares = range(1, room.size + 1) if room.contended else (1,)
    for share in shares:
        steps = -(-extent // (room.size // share))
        factors.add(-(-extent // steps))
    return sorted(factors)


@lru_cache(maxsize=1 << 12)
def _smallest_for_each_count(extent: int) -> tuple[int, ...]:
    """The smallest chunk sizes that give each possible number of chunks, ascending."""
    return tuple(sorted({-(-extent // count) for count in range(1, extent + 1)}))


@lru_cache(maxsize=1 << 14)
def _chains(units: int, splits: tuple[bool, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(_continue(units, units, splits))


def _continue(units: int, tile: int, splits: tuple[bool, ...]) -> Iterator[tuple[int, ...]]:
    if not splits:
        yield ()
        return
    for inner in _inner_tiles(units, tile) if splits[0] else (tile,):
        for rest in _continue(units, inner, splits[1:]):
            yield (inner, *rest)


@lru_cache(maxsize=1 << 14)
def _inner_tiles(units: int, tile: int) -> tuple[int, ...]:
    divisors = {t for t in range(1, tile + 1) if tile % t == 0}
    if tile == units:
        divisors |= set(_smallest_for_each_count(units))
    return tuple(sorted(divisors))

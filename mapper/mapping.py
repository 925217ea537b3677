"""A mapping: how one operator's loop nest is tiled, ordered, unrolled and buffered."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loop:
    """A temporal loop over chunks of ``tile`` elements of ``dim``; the last chunk may be ragged."""

    dim: str
    tile: int


@dataclass(frozen=True, slots=True)
class Stage:
    """From here inwards, operand number ``operand`` is kept in ``memory``, one tile at a time.

    The tile is what the loops below touch; it is loaded (or, for the output, stored) once per
    iteration of the loops above.
    """

    operand: int
    memory: str


@dataclass(frozen=True, slots=True)
class Spatial:
    """``factor`` neighbouring elements of ``dim`` are computed at once along ``axis``."""

    dim: str
    axis: str
    factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """The nest of one operator on one compute unit, from the outermost loop inwards.

    Every operand starts in the outermost memory; ``nest`` interleaves temporal loops with the
    stages that bring operands closer. ``spatial`` is the innermost part: one step of the
    compute unit computes the product of the spatial factors. ``made_by`` names the search
    that found it.
    """

    operator: str
    compute: str
    intrinsic: str
    nest: tuple[Loop | Stage, ...]
    spatial: tuple[Spatial, ...]
    made_by: str

    @property
    def choices(self) -> Hashable:
        """All that costs depend on."""
        return self.compute, self.intrinsic, self.nest, self.spatial

    def unit(self, dim: str) -> int:
        """Elements of ``dim`` computed in one step."""
        size = 1
        for s in self.spatial:
            if s.dim == dim:
                size *= s.factor
        return size

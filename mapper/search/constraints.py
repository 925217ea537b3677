"""What a mapping must be like: the search then looks only among mappings that are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from arch.errors import InputError, Problem
from arch.spec import Memory
from mapper.hierarchy import Execution
from mapper.search.tilings import IntArray, Tilings

#: An operand's number and the memory that it is staged in.
StageName = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """``unrolled`` are the (dimension, axis) that may be unrolled, any if not given; ``factors``
    (dimension, axis, factor) are unrolled just so; ``tiles`` (dimension, stage, size) are tiles of
    that size; the stages of ``order`` come in this order, from the outermost."""

    unrolled: frozenset[tuple[str, str]] | None = None
    factors: tuple[tuple[str, str, int], ...] = ()
    tiles: tuple[tuple[str, StageName, int], ...] = ()
    order: tuple[StageName, ...] = ()

    def may_unroll(self, dim: str, axis: str) -> bool:
        return self.unrolled is None or (dim, axis) in self.unrolled

    def allows(self, stages: Iterable[tuple[int, Memory]]) -> bool:
        """Are the stages in the order asked for?"""
        names = [(operand, memory.name) for operand, memory in stages]
        places = [names.index(name) for name in self.order if name in names]
        return places == sorted(places)

    def among(
        self, dim: str, run: Execution, stages: Sequence[tuple[int, Memory]], every: Tilings
    ) -> Tilings:
        """Those of a dimension's tilings that are as asked for.

        ``InputError`` if there are none, saying which there are.
        """
        axes = [axis.name for axis in run.intrinsic.axes]
        names = [(operand, memory.name) for operand, memory in stages]
        kept = every
        for wanted, axis, factor in self.factors:
            if wanted == dim:
                column = kept.spatial[:, axes.index(axis)]
                kept = _where(kept, column, factor, f"{dim} over {axis}", run)
        for wanted, stage, tile in self.tiles:
            if wanted == dim and stage in names:
                what = f"{dim} of operand {stage[0]} in {stage[1]}"
                kept = _where(kept, kept.tiles[:, names.index(stage)], tile, what, run)
        return kept


#: Anything goes.
FREE = Constraint()


def _where(some: Tilings, column: IntArray, value: int, what: str, run: Execution) -> Tilings:
    mask = column == value
    if not mask.any():
        there = ", ".join(map(str, np.unique(column)))
        message = f"{what} cannot be {value}; with the other constraints there are {there}"
        raise InputError(Problem(message, where=f"operator {run.operator.name}"))
    return some.where(mask)

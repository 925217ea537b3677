"""What each tile of a unit reads and writes, and which tiles of other units it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arch.spec import Architecture
from mapper.fusion import Box, FusedMapping
from mapper.fusion_lower import plan_group
from mapper.fusion_regions import reading
from mapper.plan import Unit, operators_of
from mapper.workload.graph import Workload
from mapper.workload.operators import Access

#: By tile and axis: first and one past the last position; both 0 where nothing is touched.
Regions = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitTiles:
    """``reads`` has per tensor from outside the regions of every access to it; ``overwrites``:
    the result is an input or a parameter, updated in place."""

    count: int
    reads: Mapping[str, tuple[Regions, ...]]
    result: str
    written: Regions
    overwrites: bool

    def waits_for(self, before: UnitTiles) -> tuple[int, ...] | None:
        """Per tile the last tile of an earlier unit that must be done (-1: none); ``None`` if
        nothing is shared. What is overwritten must have been read."""
        if self.overwrites and self.result in before.reads:
            return (before.count - 1,) * self.count
        if before.result not in self.reads:
            return None
        last = [_last_met(regions, before.written) for regions in self.reads[before.result]]
        return tuple(int(w) for w in np.maximum.accumulate(np.max(last, axis=0)))


def unit_tiles(workload: Workload, architecture: Architecture, unit: Unit) -> UnitTiles:
    pieces = _pieces(workload, architecture, unit)
    operators = [workload.operator(name) for name in operators_of(unit)]
    inside = {operator.output.tensor for operator in operators[:-1]}
    reads: dict[str, tuple[Regions, ...]] = {}
    for operator in operators:
        boxes = [piece.get(operator.name) for piece in pieces]
        for access in operator.inputs:
            if access.tensor not in inside:
                regions = _regions(workload, access, boxes)
                reads[access.tensor] = (*reads.get(access.tensor, ()), regions)
    last = operators[-1]
    boxes = [piece.get(last.name) for piece in pieces]
    return UnitTiles(
        count=len(pieces),
        reads=reads,
        result=last.output.tensor,
        written=_regions(workload, last.output, boxes),
        overwrites=workload.tensor(last.output.tensor).kind in ("input", "weight"),
    )


def _pieces(
    workload: Workload, architecture: Architecture, unit: Unit
) -> tuple[dict[str, Box], ...]:
    """Per tile, the piece of each operator that has one."""
    match unit:
        case FusedMapping():
            group = plan_group(workload, unit, architecture)
            return tuple(
                {n: b for n, b in zip(unit.operators, step.pieces, strict=True) if b is not None}
                for step in group.steps
            )
        case _:
            extents = workload.operator(unit.operator).extents
            return ({unit.operator: {dim: (0, extent) for dim, extent in extents.items()}},)


def _regions(workload: Workload, access: Access, boxes: Sequence[Box | None]) -> Regions:
    shape = workload.tensor(access.tensor).shape
    found = np.zeros((len(boxes), len(shape), 2), dtype=np.int64)
    for tile, box in enumerate(boxes):
        if box is not None:
            found[tile] = reading(access, box, shape)
    return found


def _last_met(regions: Regions, tiles: Regions) -> NDArray[np.int64]:
    """For each region the number of the last tile that meets it, or -1."""
    here, there = regions[:, None], tiles[None]
    meets = ((here[..., 0] < there[..., 1]) & (there[..., 0] < here[..., 1])).all(axis=-1)
    numbers = np.where(meets, np.arange(len(tiles)), -1)
    found: NDArray[np.int64] = numbers.max(axis=1)
    return found

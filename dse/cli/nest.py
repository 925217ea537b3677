"""A mapping as the loop nest that it is, for people and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from arch.units import format_size
from mapper.hierarchy import Execution
from mapper.legality import StagedTile, staged_tiles
from mapper.mapping import Loop, Mapping, Stage

INDENT = "  "


def nest_lines(execution: Execution, mapping: Mapping) -> Iterator[str]:
    """Pseudo-code: temporal loops, the tiles kept at each depth, and the parallel step."""
    names = [access.tensor for access in execution.operator.accesses]
    staged = {tile.depth: tile for tile in staged_tiles(execution, mapping)}
    extents = dict(execution.operator.extents)
    loops = 0
    for depth, level in enumerate(mapping.nest):
        match level:
            case Loop(dim, tile):
                yield f"{INDENT * loops}for {dim} in {_range(extents[dim], tile)}"
                extents[dim] = tile
                loops += 1
            case Stage(operand, memory):
                yield f"{INDENT * loops}keep {names[operand]} in {memory}: {_room(staged[depth])}"
    yield f"{INDENT * loops}{_step(execution, mapping)}"


def nest_document(execution: Execution, mapping: Mapping) -> dict[str, Any]:
    """The mapping as plain data; operands by the names of their tensors."""
    names = [access.tensor for access in execution.operator.accesses]
    return {
        "compute": mapping.compute,
        "intrinsic": mapping.intrinsic,
        "nest": [_level_document(level, names) for level in mapping.nest],
        "spatial": [{"dim": s.dim, "axis": s.axis, "factor": s.factor} for s in mapping.spatial],
        "made_by": mapping.made_by,
    }


def _level_document(level: Loop | Stage, names: list[str]) -> dict[str, Any]:
    match level:
        case Loop(dim, tile):
            return {"loop": dim, "tile": tile}
        case Stage(operand, memory):
            return {"keep": names[operand], "memory": memory}


def _range(extent: int, tile: int) -> str:
    count = math.ceil(extent / tile)
    ragged = f", the last of {extent % tile}" if extent % tile else ""
    return f"0..{extent} by {tile}  # {count} {'time' if count == 1 else 'times'}{ragged}"


def _room(tile: StagedTile) -> str:
    """What the tile takes in each instance of its memory."""
    ahead = " and the next one" if tile.slots > 1 else ""
    axes = tile.memory.replicated_over
    where = f" in each of the {' x '.join(axes)}" if axes else ""
    return f"{format_size(float(tile.size_bits / 8))}{ahead}{where}"


def _step(execution: Execution, mapping: Mapping) -> str:
    return f"one step of {mapping.compute}: " + ", ".join(
        f"{axis.name} {_used(mapping, axis.name)} of {axis.size}"
        for axis in execution.intrinsic.axes
    )


def _used(mapping: Mapping, axis: str) -> str:
    """``C=8 x R=2 = 16``: what is computed at once along an axis."""
    unrolled = [s for s in mapping.spatial if s.axis == axis]
    product = math.prod(s.factor for s in unrolled)
    factors = " x ".join(f"{s.dim}={s.factor}" for s in unrolled)
    return f"{factors} = {product}" if len(unrolled) > 1 else factors or "1"

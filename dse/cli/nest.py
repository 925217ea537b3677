"""A mapping as the loop nest that it is, for people and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from arch.spec import Memory
from arch.units import format_size
from mapper.hierarchy import Execution
from mapper.mapping import Loop, Stage
from mapper.mapping import Mapping as Nest

INDENT = "  "


def nest_lines(execution: Execution, mapping: Nest) -> Iterator[str]:
    """Pseudo-code: temporal loops, the tiles kept at each depth, and the parallel step."""
    names = [access.tensor for access in execution.operator.accesses]
    tiles = dict(execution.operator.extents)
    depth = 0
    for level in mapping.nest:
        match level:
            case Loop(dim, tile):
                yield f"{INDENT * depth}for {dim} in {_range(tiles[dim], tile)}"
                tiles[dim] = tile
                depth += 1
            case Stage(operand, memory):
                size = format_size(_held_bytes(execution, mapping, level, tiles))
                place = f"{memory} ({size}{_each(execution, memory)})"
                yield f"{INDENT * depth}keep {names[operand]} in {place}"
    yield f"{INDENT * depth}{_step(execution, mapping)}"


def nest_document(execution: Execution, mapping: Nest) -> dict[str, Any]:
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
    ragged = f", the last one {extent % tile}" if extent % tile else ""
    return f"0..{extent} by {tile}  # {count} tiles{ragged}"


def _memory(execution: Execution, name: str) -> Memory:
    return next(memory for memory in execution.memories if memory.name == name)


def _each(execution: Execution, name: str) -> str:
    axes = _memory(execution, name).replicated_over
    return f" in each of its {' x '.join(axes)}" if axes else ""


def _held_bytes(
    execution: Execution, mapping: Nest, stage: Stage, tiles: Mapping[str, int]
) -> float:
    axes = _memory(execution, stage.memory).replicated_over
    parallel = dict.fromkeys(tiles, 1)
    for spatial in mapping.spatial:
        if spatial.axis in axes:
            parallel[spatial.dim] *= spatial.factor
    bits = execution.bits[stage.operand]
    return execution.counts.held(stage.operand, tiles, parallel) * bits / 8


def _step(execution: Execution, mapping: Nest) -> str:
    sizes = {axis.name: axis.size for axis in execution.intrinsic.axes}
    parts = []
    for name, size in sizes.items():
        dims = [f"{s.dim}={s.factor}" for s in mapping.spatial if s.axis == name]
        used = math.prod(s.factor for s in mapping.spatial if s.axis == name)
        parts.append(f"{name}: {' '.join(dims) or 'idle'} ({used} of {size})")
    return f"parallel on {mapping.compute}  {', '.join(parts)}"

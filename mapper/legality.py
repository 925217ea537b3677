"""Is a mapping legal, and what must each memory hold? Every refusal names the limit."""

from __future__ import annotations

import math
from collections.abc import Mapping as Extents
from dataclasses import dataclass

from arch.datatypes import Bits
from arch.spec import Memory
from mapper.cost import InfeasibleError
from mapper.hierarchy import Execution
from mapper.mapping import Loop, Mapping, Stage


class MappingError(ValueError):
    """The mapping is not well formed: a mistake of whoever wrote it, not a limit of hardware."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTile:
    """One stage of a mapping with everything that its size depends on.

    ``tiles`` are the extents held (elements per dim, for the whole chip), ``depth`` its
    position in the nest. ``visits`` counts how often the stage gets another tile.
    """

    operand: int
    memory: Memory
    parent: Memory
    depth: int
    tiles: dict[str, int]
    visits: int
    width_bits: Bits
    elements: int

    @property
    def slots(self) -> int:
        """Tiles that the memory has room for: two where the next one is loaded meanwhile."""
        return 2 if self.visits > 1 and self.memory.double_buffered else 1

    @property
    def size_bits(self) -> Bits:
        """Bits of one tile in one instance of the memory."""
        return self.elements * self.width_bits


def staged_tiles(execution: Execution, mapping: Mapping) -> tuple[StagedTile, ...]:
    """The stages of a well-formed mapping, outermost first. Raises ``MappingError``."""
    execution = as_mapped(execution, mapping)
    if mapping.compute != execution.compute.name:
        raise MappingError(
            f"{mapping.operator}: the mapping is for unit {mapping.compute!r}, the operator runs "
            f"on {execution.compute.name!r}"
        )
    _check_spatial(execution, mapping)
    extents = execution.operator.extents
    tiles = dict(extents)
    at_stage: list[tuple[Stage, int, dict[str, int]]] = []
    for depth, node in enumerate(mapping.nest):
        match node:
            case Loop(dim, tile):
                _check_loop(mapping, tiles, extents, dim, tile)
                tiles[dim] = min(tile, tiles[dim])
            case Stage():
                at_stage.append((node, depth, dict(tiles)))
    _check_finished(mapping, tiles)
    _check_paths(execution, mapping)
    _check_whole(execution, mapping, at_stage)
    return tuple(
        _staged(execution, mapping, at_stage, position) for position in range(len(at_stage))
    )


def as_mapped(execution: Execution, mapping: Mapping) -> Execution:
    """The execution without the memories that the mapping bypasses."""
    kept = [
        [n.memory for n in mapping.nest if isinstance(n, Stage) and n.operand == operand]
        for operand in range(len(execution.paths))
    ]
    return execution.bypassing(kept)


def _staged(
    execution: Execution,
    mapping: Mapping,
    at_stage: list[tuple[Stage, int, dict[str, int]]],
    position: int,
) -> StagedTile:
    stage, depth, tiles = at_stage[position]
    path = execution.paths[stage.operand]
    level = [memory.name for memory in path].index(stage.memory)
    memory = path[level]
    inner = next(
        (t for s, _, t in at_stage[position + 1 :] if s.operand == stage.operand),
        {dim: mapping.unit(dim) for dim in tiles},
    )
    return StagedTile(
        operand=stage.operand,
        memory=memory,
        parent=path[level - 1],
        depth=depth,
        tiles=tiles,
        visits=_visits(execution, tiles, tuple(tiles)),
        width_bits=_width(execution, stage.operand, memory, inner),
        elements=execution.counts.held(
            stage.operand, tiles, parallel_over(execution, mapping, memory)
        ),
    )


def _visits(execution: Execution, tiles: dict[str, int], dims: tuple[str, ...]) -> int:
    return math.prod(-(-execution.operator.extents[d] // tiles[d]) for d in dims)


def _width(execution: Execution, operand: int, memory: Memory, inner: dict[str, int]) -> Bits:
    """An output tile is as wide as a partial sum if partial sums ever arrive at it."""
    if operand != execution.output:
        return execution.bits[operand]
    reduction = tuple(execution.operator.reduction_dims())
    if _visits(execution, inner, reduction) > 1:
        return execution.partial_bits
    return execution.final_bits(memory)


def parallel_over(execution: Execution, mapping: Mapping, memory: Memory) -> dict[str, int]:
    """Per dim, how many instances of ``memory`` its spatial unrolling spreads over."""
    return {
        dim: math.prod(
            s.factor for s in mapping.spatial if s.dim == dim and s.axis in memory.replicated_over
        )
        for dim in execution.operator.extents
    }


def peak_bits(staged: tuple[StagedTile, ...]) -> dict[str, Bits]:
    """Bits that one instance of each memory must hold, with room for the next tiles."""
    peak: dict[str, Bits] = {}
    for tile in staged:
        peak[tile.memory.name] = peak.get(tile.memory.name, 0) + tile.size_bits * tile.slots
    return peak


def check_capacity(staged: tuple[StagedTile, ...]) -> dict[str, Bits]:
    """``peak_bits``; ``InfeasibleError`` if a memory is too small."""
    peak = peak_bits(staged)
    for tile in staged:
        needed, allowed = peak[tile.memory.name], tile.memory.size_bytes * 8
        if needed > allowed:
            raise InfeasibleError(
                limit=f"capacity of {tile.memory.name} in bytes",
                needed=-(-needed // 8),
                allowed=tile.memory.size_bytes,
                detail="tiles of the mapping, with room for the next tile where double-buffered",
            )
    return peak


def _check_spatial(execution: Execution, mapping: Mapping) -> None:
    axes = {axis.name: axis for axis in execution.intrinsic.axes}
    used = dict.fromkeys(axes, 1)
    for s in mapping.spatial:
        if s.axis not in axes or s.dim not in execution.operator.extents:
            raise MappingError(
                f"{mapping.operator}: cannot unroll {s.dim!r} over {s.axis!r}; axes are "
                f"{', '.join(axes)}, dims {', '.join(execution.operator.extents)}"
            )
        if s.factor < 1:
            raise MappingError(
                f"{mapping.operator}: {s.dim!r} is unrolled {s.factor} times; at least 1"
            )
        dim_class = execution.operator.dim_class(s.dim)
        if s.factor > 1 and dim_class not in axes[s.axis].dim_classes:
            raise MappingError(
                f"{mapping.operator}: {s.dim!r} is of class {dim_class!r}; axis {s.axis!r} "
                f"takes {', '.join(axes[s.axis].dim_classes)}"
            )
        used[s.axis] *= s.factor
    for name, factor in used.items():
        if factor > axes[name].size:
            raise InfeasibleError(
                limit=f"axis {name} of {execution.compute.name}",
                needed=factor,
                allowed=axes[name].size,
                detail="spatial factors of the mapping",
            )


def _check_loop(
    mapping: Mapping, tiles: dict[str, int], extents: Extents[str, int], dim: str, tile: int
) -> None:
    if dim not in tiles:
        raise MappingError(f"{mapping.operator}: no dim {dim!r}; dims are {', '.join(tiles)}")
    unit = mapping.unit(dim)
    outer = tiles[dim]
    whole = outer == extents[dim]
    if tile < 1 or tile % unit or (not whole and outer % tile):
        raise MappingError(
            f"{mapping.operator}: a tile of {tile} of {dim!r} must be a multiple of the spatial "
            f"factor {unit} and divide the enclosing tile of {outer}"
        )


def _check_finished(mapping: Mapping, tiles: dict[str, int]) -> None:
    for dim, tile in tiles.items():
        if tile > mapping.unit(dim):
            raise MappingError(
                f"{mapping.operator}: {tile} elements of {dim!r} are left below the last loop, "
                f"but one step computes {mapping.unit(dim)}"
            )


def _check_whole(
    execution: Execution, mapping: Mapping, at_stage: list[tuple[Stage, int, dict[str, int]]]
) -> None:
    shared = {memory.name for memory in execution.memories if not memory.replicated_over}
    for stage, _, tiles in at_stage:
        for dim in execution.operator.whole_dims if stage.memory in shared else ():
            if tiles[dim] < execution.operator.extents[dim]:
                raise MappingError(
                    f"{mapping.operator}: {dim!r} must stay whole in {stage.memory}; its tile "
                    f"there has {tiles[dim]} of {execution.operator.extents[dim]} elements"
                )


def _check_paths(execution: Execution, mapping: Mapping) -> None:
    stages = [node for node in mapping.nest if isinstance(node, Stage)]
    for stage in stages:
        if not 0 <= stage.operand < len(execution.paths):
            raise MappingError(
                f"{mapping.operator}: no operand {stage.operand}; operands are 0 to "
                f"{len(execution.paths) - 1}"
            )
    for operand, path in enumerate(execution.paths):
        given = [stage.memory for stage in stages if stage.operand == operand]
        wanted = [memory.name for memory in path[1:]]
        if given != wanted:
            raise MappingError(
                f"{mapping.operator}: operand {operand} must be staged in "
                f"{', '.join(wanted) or 'no memory'}, in this order; the mapping stages it in "
                f"{', '.join(given) or 'none'}"
            )

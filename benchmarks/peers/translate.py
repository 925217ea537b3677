"""Mappings that other tools found on ``ws16``, as mappings of this tool."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mapper.mapping import Loop, Mapping, Spatial, Stage

INPUT, WEIGHT, OUTPUT = 0, 1, 2

#: The tools' names of loops -> ours.
ZIGZAG_GEMM = {"B": "M", "K": "N", "C": "K"}
ZIGZAG_CONV = {
    "B": "N", "G": "G", "K": "K", "C": "C", "OY": "P", "OX": "Q", "FY": "R", "FX": "S",
}  # fmt: skip
ACCELFORGE_GEMM = {"m": "M", "n": "N", "k": "K"}
ACCELFORGE_CONV = {"p": "P", "q": "Q", "m": "K", "c": "C", "g": "G", "r": "R", "s": "S"}

_ZIGZAG_OPERANDS = {"I": INPUT, "W": WEIGHT, "O": OUTPUT}
#: Memories of an operand below DRAM, from the innermost.
_ZIGZAG_MEMORIES = {"I": ["gb"], "W": ["rf_w", "gb"], "O": ["acc", "gb"]}
_ZIGZAG_AXES = {"D1": "cols", "D2": "rows"}

_ACCELFORGE_MEMORIES = {"GB": "gb", "ACC": "acc", "RFW": "rf_w"}
_ACCELFORGE_AXES = {"Col": "cols", "PE": "rows"}


def from_zigzag(
    found: MappingABC[str, Any], operator: str, extents: MappingABC[str, int]
) -> Mapping:
    """One order of loops; each operand's levels say how many of them a memory's tile spans."""
    names = ZIGZAG_GEMM if "M" in extents else ZIGZAG_CONV
    spatial = [
        Spatial(names[dim], _ZIGZAG_AXES[axis], size)
        for axis, unrolled in found["spatial"].items()
        for dim, size in unrolled.items()
        if size > 1
    ]
    temporal = found["temporal"]
    inner_first = [(names[dim], size) for level in temporal["O"] for dim, size in level]
    stages: dict[int, list[Stage]] = {}
    for operand, levels in temporal.items():
        below = 0
        for memory, level in zip(_ZIGZAG_MEMORIES[operand], levels, strict=False):
            below += len(level)
            stage = Stage(_ZIGZAG_OPERANDS[operand], memory)
            stages.setdefault(below, []).insert(0, stage)
    tiles = dict.fromkeys(extents, 1)
    for s in spatial:
        tiles[s.dim] *= s.factor
    inner: list[Loop | Stage] = list(reversed(_shared_first(stages.get(0, []))))
    for position, (dim, size) in enumerate(inner_first, start=1):
        if tiles[dim] < extents[dim]:
            inner.append(Loop(dim, tiles[dim]))
        tiles[dim] = min(tiles[dim] * size, extents[dim])
        inner += reversed(_shared_first(stages.get(position, [])))
    return _mapping(operator, list(reversed(inner)), spatial, "zigzag-dse")


def _shared_first(stages: list[Stage]) -> list[Stage]:
    return sorted(stages, key=lambda stage: stage.memory != "gb")


def from_accelforge(
    found: MappingABC[str, Any], operator: str, extents: MappingABC[str, int]
) -> Mapping:
    """A list of nodes; tiles below a spatial node are those of one of its instances."""
    names = ACCELFORGE_GEMM if "M" in extents else ACCELFORGE_CONV
    operands = {"I": INPUT, "W": WEIGHT, "O": OUTPUT}
    current, instances = dict(extents), dict.fromkeys(extents, 1)
    spatial: list[Spatial] = []
    nest: list[Loop | Stage] = []
    for node in found["nodes"]:
        if "memory" in node:
            if node["memory"] in _ACCELFORGE_MEMORIES:
                memory = _ACCELFORGE_MEMORIES[node["memory"]]
                nest += [Stage(operands[tensor], memory) for tensor in node["tensors"]]
            continue
        dim, tile = names[node["loop"]], node["tile"]
        if node["axis"]:
            factor = -(-current[dim] // tile)
            if factor > 1:
                spatial.append(Spatial(dim, _ACCELFORGE_AXES[node["axis"]], factor))
            instances[dim] *= factor
        elif tile < current[dim]:
            nest.append(Loop(dim, tile * instances[dim]))
        current[dim] = tile
    return _mapping(operator, nest, spatial, "accelforge")


def _mapping(
    operator: str, nest: list[Loop | Stage], spatial: list[Spatial], made_by: str
) -> Mapping:
    return Mapping(
        operator=operator,
        compute="array",
        intrinsic="",
        nest=tuple(nest),
        spatial=tuple(spatial),
        made_by=made_by,
    )


def with_latches(mapping: Mapping, dims: Sequence[frozenset[str]]) -> Mapping:
    """An operand in use stays in its latch while loops go on that it does not depend on.

    ``dims[operand]`` are the loops that it depends on.
    """
    nest = list(mapping.nest)
    for operand, latch in enumerate(("latch_input", "latch_weight", "latch_output")):
        at = len(nest)
        while at > 0 and not _ends(nest[at - 1], operand, dims[operand]):
            at -= 1
        nest.insert(at, Stage(operand, latch))
    return replace(mapping, nest=tuple(nest))


def _ends(node: Loop | Stage, operand: int, dims: frozenset[str]) -> bool:
    """Must the latch stand below this?"""
    if isinstance(node, Loop):
        return node.dim in dims
    return node.operand == operand

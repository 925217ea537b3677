"""Random fused groups on small hardware."""

from __future__ import annotations

from functools import cache

import numpy as np

from arch.spec import Architecture
from mapper.fusion import FusedMapping, group_of, tile_dims
from mapper.fusion_lower import plan_group
from mapper.mapping import Loop
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from tests.mapper.fusion.mappings import random_pieces
from tests.mapper.fusion.networks import NETWORKS
from tests.mapper.hardware import (
    ALL,
    architecture,
    architectures,
    registers,
    resized,
    sram,
)

OPERATIONS = ["add", "mul", "max", "mean", "copy", "activation", "softmax", "norm"]


@cache
def network(name: str) -> Workload:
    return NETWORKS[name]()


@cache
def device(name: str = "weight_stationary") -> Architecture:
    """With room for everything, and a vector unit that can do it."""
    known = {**architectures(), "two_buffers": two_buffers()}
    able = known[name].with_overrides({"vector.operations": OPERATIONS})
    return resized(able, {"buffer": 1 << 16, "acc": 64, "wreg": 8})


def two_buffers() -> Architecture:
    """A second shared memory below the one that the group uses."""
    memories = {"buffer": sram(4096, ALL), "near": sram(64, ALL)}
    return architecture("two_buffers", {**memories, "acc": registers(8, ["output"], "pe")})


def random_tiles(last: Operator, rng: np.random.Generator) -> tuple[Loop, ...]:
    dims = rng.permutation(tile_dims(last))[: int(rng.integers(0, 3))]
    return tuple(Loop(str(d), int(rng.integers(1, last.extents[str(d)] + 1))) for d in dims)


def random_fused(workload: Workload, where: Architecture, rng: np.random.Generator) -> FusedMapping:
    """Of all operators of a workload."""
    return random_fused_group(workload, workload.operators, where, rng)


def random_fused_group(
    workload: Workload,
    operators: tuple[Operator, ...],
    where: Architecture,
    rng: np.random.Generator,
) -> FusedMapping:
    """Any tiles, any tensors resident, overlaps kept or computed again, any inner mappings."""
    names = tuple(o.name for o in operators)
    fused = FusedMapping(
        operators=names,
        tiles=random_tiles(operators[-1], rng),
        memory="buffer",
        resident=tuple(t for t in group_of(workload, names).external if rng.random() < 0.5),
        retained=bool(rng.random() < 0.7),
        mappings=(),
    )
    return random_pieces(plan_group(workload, fused, where), where, rng, fused)

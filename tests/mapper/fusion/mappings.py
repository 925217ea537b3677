"""Random inner mappings of fused groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.fusion import FusedMapping
from mapper.fusion_lower import GroupPlan
from mapper.hierarchy import Execution
from mapper.legality import check_capacity, staged_tiles
from mapper.mapping import Mapping
from mapper.search.space import stage_orders

ATTEMPTS = 2000


def random_pieces(
    plan: GroupPlan, where: Architecture, rng: np.random.Generator, fused: FusedMapping
) -> FusedMapping:
    """The group with a random mapping that fits for each operator's largest piece."""
    runs = [
        plan.execution(number, plan.largest_piece(number), where)
        for number in range(len(plan.group.operators))
    ]
    return replace(fused, mappings=tuple(drawn(run, rng) for run in runs))


def drawn(run: Execution, rng: np.random.Generator) -> Mapping:
    orders = list(stage_orders(run))
    for _ in range(ATTEMPTS):
        order = orders[int(rng.integers(len(orders)))]
        chosen = {dim: int(rng.integers(len(order.tilings(dim)))) for dim in run.operator.extents}
        mapping = order.mapping(chosen, made_by="random")
        try:
            check_capacity(staged_tiles(run, mapping))
        except InfeasibleError:
            continue
        return mapping
    raise AssertionError(f"no mapping of {run.operator.name} fits")

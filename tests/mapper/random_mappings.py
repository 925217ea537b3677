"""Random mappings: from the mapspace of the search, or any that are well formed."""

from __future__ import annotations

import numpy as np

from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.hierarchy import execution
from mapper.legality import check_capacity, staged_tiles
from mapper.mapping import Mapping
from mapper.search.space import stage_orders
from mapper.workload.graph import Workload
from tests.conformance.mappings import random_mapping

#: Draws from the mapspace before a mapping of any kind is taken.
ATTEMPTS = 200


def drawn_mapping(
    workload: Workload, architecture: Architecture, rng: np.random.Generator
) -> Mapping:
    """A mapping that fits: uniform over orders of stages and tilings, or else any."""
    operator = workload.operators[0]
    run = execution(workload, operator, architecture)
    orders = list(stage_orders(run))
    for _ in range(ATTEMPTS if rng.random() < 0.5 else 0):
        order = orders[int(rng.integers(len(orders)))]
        chosen = {dim: int(rng.integers(len(order.tilings(dim)))) for dim in operator.extents}
        mapping = order.mapping(chosen, made_by="random")
        try:
            check_capacity(staged_tiles(run, mapping))
        except InfeasibleError:
            continue
        return mapping
    return random_mapping(workload, operator, architecture, rng)

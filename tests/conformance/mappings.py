"""Random legal mappings of an operator, to check models on more than what a search would pick."""

from __future__ import annotations

import numpy as np

from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.hierarchy import Execution, execution
from mapper.legality import check_capacity, staged_tiles
from mapper.mapping import Loop, Mapping, Spatial, Stage
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator

#: Attempts at a mapping that fits before giving up.
ATTEMPTS = 300


def random_mapping(
    workload: Workload, operator: Operator, architecture: Architecture, rng: np.random.Generator
) -> Mapping:
    """A mapping that fits; stages drift inwards, to smaller tiles, until one does."""
    run = execution(workload, operator, architecture)
    for attempt in range(ATTEMPTS):
        mapping = _draw(run, rng, attempt / ATTEMPTS)
        try:
            check_capacity(staged_tiles(run, mapping))
        except InfeasibleError:
            continue
        return mapping
    raise AssertionError(f"no random mapping of {operator.name} fits {architecture.name}")


def _draw(run: Execution, rng: np.random.Generator, inwards: float) -> Mapping:
    spatial = _spatial(run, rng)
    unit = dict.fromkeys(run.operator.extents, 1)
    for s in spatial:
        unit[s.dim] *= s.factor
    loops = _loops(run, unit, rng)
    nest: list[Loop | Stage] = [x for x in loops if x.dim not in run.operator.whole_dims]
    for operand, path in enumerate(run.paths):
        first = 0
        for memory in path[1:]:
            low = first + int(inwards * (len(nest) - first))
            first = int(rng.integers(low, len(nest) + 1))
            nest.insert(first, Stage(operand, memory.name))
            first += 1
    nest += [x for x in loops if x.dim in run.operator.whole_dims]
    return Mapping(
        operator=run.operator.name,
        compute=run.compute.name,
        intrinsic=run.intrinsic.name,
        nest=tuple(nest),
        spatial=spatial,
        made_by="random",
    )


def _spatial(run: Execution, rng: np.random.Generator) -> tuple[Spatial, ...]:
    chosen: list[Spatial] = []
    for axis in run.intrinsic.axes:
        dims = [d for d in run.operator.extents if run.operator.dim_class(d) in axis.dim_classes]
        free = [d for d in dims if all(s.dim != d for s in chosen)]
        if free:
            dim = free[int(rng.integers(len(free)))]
            most = min(axis.size, run.operator.extents[dim])
            factor = most if rng.random() < 0.5 else int(rng.integers(1, most + 1))
            chosen.append(Spatial(dim, axis.name, factor))
    return tuple(chosen)


def _loops(run: Execution, unit: dict[str, int], rng: np.random.Generator) -> list[Loop]:
    """Per dim a chain of tiles, each a multiple of the next; the chains shuffled together."""
    chains = [_chain(dim, extent, unit[dim], rng) for dim, extent in run.operator.extents.items()]
    order = [number for number, chain in enumerate(chains) for _ in chain]
    return [chains[number].pop(0) for number in rng.permutation(order)]


def _chain(dim: str, extent: int, unit: int, rng: np.random.Generator) -> list[Loop]:
    tiles = [unit]
    while rng.random() < 0.5:
        tile = tiles[-1] * int(rng.integers(2, 5))
        if tile >= extent:
            break
        tiles.append(tile)
    return [Loop(dim, tile) for tile in reversed(tiles) if tile < extent]

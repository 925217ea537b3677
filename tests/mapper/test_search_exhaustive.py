"""The optimum on hundreds of random operators against every mapping of the stated mapspace.

The mapspace is written out here a second time, by its description in ``docs/design.md``, without
the search's tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from arch.load import load_architecture
from arch.spec import Memory
from mapper.cost import InfeasibleError
from mapper.hierarchy import Execution, execution
from mapper.mapping import Stage
from mapper.search.exact import map_execution, map_operator
from mapper.search.space import StageOrder, stage_orders
from mapper.search.tilings import Room, tilings
from mapper.workload.load import load_workload
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures, resized
from tests.mapper.scalar_model import OBJECTIVES, best, mapspace_size
from tests.mapper.test_search_exact import Scenario, random_workload

#: Random operators per architecture and how many mappings each may have: here, and when slow.
FEW, MANY = 3, 30
MOST_MAPPINGS, MOST_WHEN_SLOW = 150, 1500

REL = 1e-9


def stated_tilings(
    extent: int, rooms: tuple[Room, ...], splits: tuple[bool, ...], steps: tuple[bool, ...]
) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(factor per axis, tile per stage): factors are divisors of what is left, or share out a
    whole number of parts of the axis evenly; tiles divide the tile around them, and the first
    one may be any size of chunk that is the smallest for its number of chunks."""
    found = set()
    for factors in stated_factors(extent, rooms):
        unit = int(np.prod(factors))
        units = -(-extent // unit)
        for chain in stated_chains(units, units, list(zip(splits, steps, strict=True))):
            found.add((factors, tuple(extent if t >= units else t * unit for t in chain)))
    return found


def stated_factors(extent: int, rooms: tuple[Room, ...]) -> Iterator[tuple[int, ...]]:
    if not rooms:
        yield ()
        return
    size = rooms[0].size
    factors = {f for f in range(1, min(extent, size) + 1) if extent % f == 0}
    for share in range(1, size + 1) if rooms[0].contended else (1,):
        steps = -(-extent // (size // share))
        factors.add(-(-extent // steps))
    for factor in factors:
        for rest in stated_factors(-(-extent // factor), rooms[1:]):
            yield (factor, *rest)


def stated_chains(
    units: int, tile: int, stages: list[tuple[bool, bool]]
) -> Iterator[tuple[int, ...]]:
    if not stages:
        yield ()
        return
    may_split, is_step = stages[0]
    inner = {t for t in range(1, tile + 1) if tile % t == 0} if may_split else {tile}
    if may_split and tile == units:
        inner |= {-(-units // count) for count in range(1, units + 1)}
    for size in {1} if is_step else inner:
        for rest in stated_chains(units, size, stages[1:]):
            yield (size, *rest)


def stated_orders(run: Execution) -> Iterator[StageOrder]:
    """Of every choice of memories that operands may pass by, all permutations of the stages that
    leave each operand's own in their order."""
    for passed in itertools.product(*(stated_passes(run, at) for at in range(len(run.paths)))):
        kept = [
            [memory.name for memory in path[1:] if memory not in some]
            for path, some in zip(run.paths, passed, strict=True)
        ]
        chosen = run.bypassing(kept)
        stages = [(op, memory) for op, path in enumerate(chosen.paths) for memory in path[1:]]
        for order in itertools.permutations(range(len(stages))):
            places = [[at for at in order if stages[at][0] == op] for op in range(len(run.paths))]
            if all(own == sorted(own) for own in places):
                yield StageOrder(chosen, tuple(stages[at] for at in order))


def stated_passes(run: Execution, operand: int) -> list[tuple[Memory, ...]]:
    role = run.operator.role(operand)
    able = [memory for memory in run.paths[operand] if role in memory.may_bypass]
    most = min(len(able), len(run.paths[operand]) - 1)
    return [some for count in range(most + 1) for some in itertools.combinations(able, count)]


@pytest.mark.parametrize("name", architectures())
def test_every_order_of_stages_is_looked_through_once(name: str) -> None:
    workload = operators.product(2, 2, 2)
    run = execution(workload, workload.operators[0], architectures()[name])
    listed = [(order.run.paths, order.stages) for order in stage_orders(run)]
    assert len(set(listed)) == len(listed)
    assert set(listed) == {(order.run.paths, order.stages) for order in stated_orders(run)}


def test_sums_may_stay_in_the_accumulator_while_all_else_streams_through_the_buffer() -> None:
    """On TPU v1 the optimum of a deep product brings its sums into the accumulators first."""
    workload = load_workload("gemm:M=4096,N=256,K=16384")
    architecture = load_architecture("tpu_v1")
    result = map_operator(workload, workload.operators[0], architecture, price)
    stages = [node for node in result.mapping.nest if isinstance(node, Stage)]
    assert stages[1] == Stage(2, "accumulators")
    assert stages.index(Stage(0, "unified_buffer")) > 1
    run = execution(workload, workload.operators[0], architecture)
    orders = [order for order in stage_orders(run) if order.is_by_level]
    by_level = map_execution(run, architecture.leakage_w, price, orders=orders)
    assert result.objective_value < 0.91 * by_level.objective_value


def test_every_tiling_of_the_stated_mapspace_is_in_the_table() -> None:
    rooms = [(), (Room(3, True), Room(4, True)), (Room(5, False), Room(1, False))]
    patterns = [(True,), (True, False, True), (False, True, True, True)]
    for extent, room, splits in itertools.product((1, 2, 7, 12, 13, 30), rooms, patterns):
        ends = [tuple(at == end for at in range(len(splits))) for end in range(len(splits) + 1)]
        for steps in ends:
            table = tilings(extent, room, splits, steps)
            rows = [
                (tuple(map(int, s)), tuple(map(int, t)))
                for s, t in zip(table.spatial, table.tiles, strict=True)
            ]
            assert set(rows) == stated_tilings(extent, room, splits, steps)


def scenarios(name: str, count: int, most: int) -> Iterator[Scenario]:
    rng = np.random.default_rng([99, list(architectures()).index(name)])
    architecture = architectures()[name]
    memories = [m for m in architecture.memories[1:] if not m.is_latch]
    found = 0
    while found < count:
        sizes = {m.name: int(m.size_bytes * rng.uniform(0.25, 1.5)) or 1 for m in memories}
        scenario = Scenario(random_workload(rng), resized(architecture, sizes))
        run = execution(scenario.workload, scenario.workload.operators[0], scenario.architecture)
        if 20 <= mapspace_size(run) <= most:
            found += 1
            yield scenario


def check(scenario: Scenario) -> int:
    """Mappings that fit; none beats the search's, for any objective."""
    model = scenario.model
    operator = scenario.workload.operators[0]
    costs = list(model.costs(stated_orders(model.run)))
    for objective in OBJECTIVES:
        if not costs:
            with pytest.raises(InfeasibleError):
                map_operator(scenario.workload, operator, scenario.architecture, price, objective)
            continue
        result = map_operator(scenario.workload, operator, scenario.architecture, price, objective)
        value, tie = best(costs, objective)
        reached = model.cost(result.mapping).keys(objective)
        assert reached == pytest.approx((value, tie), rel=REL), scenario
        assert result.objective_value == pytest.approx(value, rel=REL)
        assert result.optimal
        assert result.gap == 0
    return len(costs)


@pytest.mark.parametrize("name", architectures())
def test_no_mapping_beats_the_search(name: str) -> None:
    assert sum(check(scenario) for scenario in scenarios(name, FEW, MOST_MAPPINGS)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", architectures())
def test_no_mapping_of_many_beats_the_search(name: str) -> None:
    """All architectures together: 240 operators, each for three objectives."""
    assert sum(check(scenario) for scenario in scenarios(name, MANY, MOST_WHEN_SLOW)) > 0

"""Does the search find what enumerating and pricing every mapping finds?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from arch.load import load_architecture
from arch.spec import Architecture, Memory
from mapper.cost import InfeasibleError
from mapper.hierarchy import execution
from mapper.legality import peak_bits, staged_tiles
from mapper.search.boxes import plant
from mapper.search.boxes import search as search_boxes
from mapper.search.costs import ANSWERS, TOTAL_PS
from mapper.search.exact import SearchResult, map_operator
from mapper.search.flows import flows
from mapper.search.method import Method
from mapper.search.network import map_workload
from mapper.search.pricing import (
    DATAPATH_FIELDS,
    LATENCY,
    MEMORY_FIELDS,
    STAGE_FIELDS,
    Model,
)
from mapper.search.space import StageOrder, stage_orders
from mapper.search.tilings import Room, Tilings, tilings
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.nests import Window
from mapper.workload.operators import Operator
from mapper.workload.same_work import same_work
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures, resized
from tests.mapper.scalar_model import OBJECTIVES, ScalarModel, best, every_mapping, mapspace_size

#: Random operators per architecture, and how many mappings each may have.
CASES = 8
MOST_MAPPINGS = 400

REL = 1e-9


@dataclass(frozen=True)
class Scenario:
    workload: Workload
    architecture: Architecture

    @property
    def model(self) -> ScalarModel:
        return ScalarModel(self.workload, self.workload.operators[0], self.architecture)


def search(scenario: Scenario, objective: str = "edp") -> SearchResult:
    operator = scenario.workload.operators[0]
    return map_operator(scenario.workload, operator, scenario.architecture, price, objective)


def random_workload(rng: np.random.Generator) -> Workload:
    def size(most: int) -> int:
        return int(rng.integers(1, most + 1))

    def window(kernel: int) -> Window:
        padding = size(min(2, kernel)) - 1
        return operators.window(kernel, stride=size(3), padding=padding, dilation=size(2))

    makers = (
        lambda: operators.product(size(7), size(5), size(7)),
        lambda: operators.product(size(9), 1, size(9)),
        lambda: operators.batched_product(size(3), size(3), size(3), size(4)),
        lambda: operators.convolved(size(2), size(3), (4 + size(4),), window(size(3))),
        lambda: operators.convolved(3, 3, (4 + size(4),), window(size(3)), groups=3),
        lambda: operators.added(size(9), size(7)),
        lambda: operators.pooled(size(4), 4 + size(4), window(1 + size(2))),
    )
    return makers[int(rng.integers(len(makers)))]()


def scenarios(architecture: Architecture, seed: int) -> Iterator[Scenario]:
    """Random operators in random sizes of the memories, from barely enough to plenty."""
    rng = np.random.default_rng(seed)
    names = [m.name for m in architecture.memories[1:]]
    found = 0
    while found < CASES:
        sizes = {m.name: m.size_bytes for m in architecture.memories[1:]}
        sizes |= {name: int(sizes[name] * rng.uniform(0.25, 1.5)) or 1 for name in names}
        scenario = Scenario(random_workload(rng), resized(architecture, sizes))
        run = execution(scenario.workload, scenario.workload.operators[0], scenario.architecture)
        if 20 <= mapspace_size(run) <= MOST_MAPPINGS:
            found += 1
            yield scenario


@pytest.mark.parametrize("name", architectures())
def test_the_optimum_is_that_of_brute_force(name: str) -> None:
    number = list(architectures()).index(name)
    for scenario in scenarios(architectures()[name], seed=number):
        model = scenario.model
        costs = list(model.costs(stage_orders(model.run)))
        for objective in OBJECTIVES:
            if not costs:
                with pytest.raises(InfeasibleError):
                    search(scenario, objective)
                continue
            result = search(scenario, objective)
            value, tie = best(costs, objective)
            assert result.objective_value == pytest.approx(value, rel=REL), scenario
            reached = model.cost(result.mapping).keys(objective)
            assert reached == pytest.approx((value, tie), rel=REL), scenario
            assert result.optimal
            assert result.gap == 0


class Unrestricted(StageOrder):
    """The mapspace with loops of every dimension above every stage."""

    def tilings(self, dim: str) -> Tilings:
        dim_class = self.run.operator.dim_class(dim)
        rooms = tuple(
            Room(axis.size if dim_class in axis.dim_classes else 1, axis.name in self.contended)
            for axis in self.run.intrinsic.axes
        )
        return tilings(self.run.operator.extents[dim], rooms, (True,) * len(self.stages))


def test_loops_above_a_stage_that_does_not_depend_on_them_gain_nothing() -> None:
    """The search leaves them out; here they are all enumerated."""
    chosen = [
        Scenario(operators.product(2, 1, 3), architectures()["output_stationary"]),
        Scenario(operators.product(1, 2, 2), architectures()["weight_stationary"]),
        Scenario(operators.added(3, 2), architectures()["free"]),
        Scenario(
            operators.convolved(1, 2, (3,), operators.window(2, padding=1)),
            architectures()["weights_bypass"],
        ),
    ]
    for scenario in chosen:
        model = scenario.model
        orders = [Unrestricted(model.run, order.stages) for order in stage_orders(model.run)]
        costs = list(model.costs(iter(orders)))
        for objective in OBJECTIVES:
            expected, _ = best(costs, objective)
            assert search(scenario, objective).objective_value == pytest.approx(expected, rel=REL)


RESNET18 = load_workload("resnet18:dtype=int8")
SHIPPED = ("edge_npu", "ws16", "gemmini", "nvdla_small", "tpu_v1", "tiny")


def layers(architecture: str) -> list[Operator]:
    """Every fifth of ResNet-18's different layers, others for each architecture."""
    different = {same_work(RESNET18, operator): operator for operator in RESNET18.operators}
    return list(different.values())[SHIPPED.index(architecture) % 5 :: 5]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_objective_value_is_the_scalar_models(name: str) -> None:
    architecture = load_architecture(name)
    for number, operator in enumerate(layers(name)):
        objective = OBJECTIVES[number % 3]
        result = map_operator(RESNET18, operator, architecture, price, objective)
        model = ScalarModel(RESNET18, operator, architecture)
        value, _ = model.cost(result.mapping).keys(objective)
        assert result.objective_value == pytest.approx(value, rel=REL), operator.name


@pytest.mark.parametrize("name", architectures())
def test_more_room_or_bandwidth_is_never_worse(name: str) -> None:
    """With the same energies per byte."""
    small = architectures()[name]
    workload = operators.convolved(2, 5, (9,), operators.window(3, padding=1))
    before = {o: search(Scenario(workload, small), o).objective_value for o in OBJECTIVES}
    for number, memory in enumerate(small.memories):
        roomier = replace(memory, size_bytes=2 * memory.size_bytes)
        faster = replace(
            memory,
            read_bytes_per_s=_doubled(memory.read_bytes_per_s),
            write_bytes_per_s=_doubled(memory.write_bytes_per_s),
        )
        for larger in (roomier, faster):
            objective = OBJECTIVES[number % 3] if larger is roomier else "latency"
            value = search(Scenario(workload, _with(small, larger)), objective).objective_value
            assert value <= before[objective] * (1 + REL), larger


def _doubled(bandwidth: int | None) -> int | None:
    return None if bandwidth is None else 2 * bandwidth


def _with(architecture: Architecture, memory: Memory) -> Architecture:
    components = tuple(memory if c.name == memory.name else c for c in architecture.components)
    return replace(architecture, components=components)


def test_the_same_question_has_the_same_answer() -> None:
    workload = operators.convolved(4, 6, (8,), operators.window(3))
    for architecture in architectures().values():
        scenario = Scenario(workload, architecture)
        assert search(scenario) == search(scenario)


def test_equal_operators_are_searched_once() -> None:
    results = map_workload(RESNET18, load_architecture("nvdla_small"), price)
    assert list(results) == [operator.name for operator in RESNET18.operators]
    searched = {same_work(RESNET18, o) for o in RESNET18.operators}
    assert sum(result.calls > 0 for result in results.values()) == len(searched)
    for operator in RESNET18.operators:
        assert results[operator.name].mapping.operator == operator.name


@pytest.mark.parametrize("name", ["exact", "annealing"])
def test_results_do_not_depend_on_how_many_threads_search(name: str) -> None:
    architecture = load_architecture("ws16")
    ways = [Method(name=name, budget=30, threads=threads) for threads in (1, 3)]
    one, several = (map_workload(RESNET18, architecture, price, "edp", way) for way in ways)
    assert one == several
    assert list(one) == list(several)


def test_with_several_threads_the_first_operator_that_does_not_fit_is_named() -> None:
    architecture = resized(load_architecture("ws16"), {"gb": 2})
    refusals = []
    for threads in (1, 3):
        with pytest.raises(InfeasibleError) as refusal:
            map_workload(RESNET18, architecture, price, "edp", Method(threads=threads))
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]


@pytest.mark.parametrize("name", architectures())
def test_the_memory_that_is_too_small_is_named_with_its_least_size(name: str) -> None:
    """At the size that the refusal says it needs it fits, one byte below it does not."""
    architecture = architectures()[name]
    workload = operators.product(3, 2, 4)
    run = execution(workload, workload.operators[0], architecture)
    refused = 0
    for memory in run.memories[1:]:
        least = _least_bytes(workload, architecture, memory.name)
        if least == 1:
            continue
        search(Scenario(workload, resized(architecture, {memory.name: least})))
        with pytest.raises(InfeasibleError) as refusal:
            search(Scenario(workload, resized(architecture, {memory.name: least - 1})))
        assert refusal.value.limit == f"capacity of {memory.name} in bytes"
        assert (refusal.value.needed, refusal.value.allowed) == (least, least - 1)
        refused += 1
    assert refused > 0


def _least_bytes(workload: Workload, architecture: Architecture, memory: str) -> int:
    """What the mapper asks for when there is one byte."""
    try:
        search(Scenario(workload, resized(architecture, {memory: 1})))
    except InfeasibleError as refusal:
        return int(refusal.needed)
    return 1


def test_the_least_size_is_that_of_enumeration() -> None:
    workload = operators.batched_product(2, 2, 2, 3)
    architecture = architectures()["output_stationary"]
    run = execution(workload, workload.operators[0], architecture)
    mappings = [m for order in stage_orders(run) for m in every_mapping(order)]
    peaks = [peak_bits(staged_tiles(run, mapping)) for mapping in mappings]
    acc_bits = 8 * architecture.component("acc").size_bytes
    least = min(peak["buffer"] for peak in peaks if peak["acc"] <= acc_bits)
    with pytest.raises(InfeasibleError) as refusal:
        search(Scenario(workload, resized(architecture, {"buffer": 1})))
    assert refusal.value.needed == math.ceil(least / 8)


def test_an_input_of_which_nothing_is_read_is_mapped() -> None:
    """Windows that step over a whole tensor read only padding: no volume, no crash."""
    window = operators.window(1, stride=6, padding=1)
    workload = operators.convolved(2, 3, (5,), window)
    run = execution(workload, workload.operators[0], architectures()["free"])
    assert run.operator.extents["P"] == 2
    assert run.counts.operands[0].elements == 0
    scenario = Scenario(workload, architectures()["free"])
    value = search(scenario).objective_value
    assert value == pytest.approx(scenario.model.cost(search(scenario).mapping).keys("edp")[0])


def test_the_frontier_grows_as_deep_as_the_trees() -> None:
    """Doubling exponents split off one row at a time: as deep as all groups have rows."""
    groups, rows = 12, 7
    table = np.array([[2.0 ** (2**i)] for i in range(rows)])[::-1]
    lacks = np.zeros(rows, dtype=np.int64)

    forest, first = plant([table] * groups, [lacks] * groups, np.ones(1), 0)
    best_cost, chosen = np.full(ANSWERS, np.inf), np.full(groups, -1)
    search_boxes(forest, flows(steps_only()), (0.0, 1 << 62), best_cost, chosen)
    assert (chosen - first).tolist() == [rows - 1] * groups
    assert best_cost[TOTAL_PS] == 2.0**groups


def steps_only() -> Model:
    """The first column is the steps, a picosecond each; there are no memories."""
    nothing = np.zeros(0, dtype=np.int64)
    return Model(
        stages=np.zeros((0, STAGE_FIELDS), dtype=np.int64),
        datapaths=np.zeros((0, DATAPATH_FIELDS), dtype=np.int64),
        memories=np.zeros((0, MEMORY_FIELDS)),
        axis_columns=nothing,
        axis_sizes=np.zeros(0),
        lanes=1.0,
        steps_column=0,
        lifted_steps_column=0,
        unit_revisits_column=0,
        step_ticks=1.0,
        aside_ticks=0.0,
        step_ticks_per_ps=1.0,
        least_ps=0.0,
        compute_pj=0.0,
        leakage_w=0.0,
        objective=LATENCY,
    )

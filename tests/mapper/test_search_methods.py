"""Do searches that look at a sample keep their promises: legality, budget, seed, bound?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from arch.load import load_architecture
from mapper.cost import InfeasibleError
from mapper.hierarchy import execution
from mapper.legality import check_capacity, staged_tiles
from mapper.moves import Moves, Resize, Unroll
from mapper.search.bound import lower_bound
from mapper.search.candidates import BudgetSpent, Candidate, Candidates
from mapper.search.coefficients import Coefficients
from mapper.search.exact import OBJECTIVES, map_operator
from mapper.search.method import METHODS, Method
from mapper.search.methods import WALKS, explore, map_execution
from mapper.search.space import stage_orders
from mapper.search.starts import Starts
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures, resized
from tests.mapper.scalar_model import ScalarModel
from tests.mapper.test_search_exact import random_workload

SAMPLING = [name for name in METHODS if name != "exact"]
CONV = "conv2d:N=1,C=32,H=14,K=48,R=3,dtype=int8"


def space(workload: Workload, arch: str = "two_levels", budget: int = 60) -> Candidates:
    architecture = architectures()[arch]
    run = execution(workload, workload.operators[0], architecture)
    coefficients = Coefficients(
        run=run, leakage_w=architecture.leakage_w, price=price, objective=OBJECTIVES["edp"]
    )
    orders = tuple(stage_orders(run))
    models = tuple(coefficients.model(order) for order in orders)
    return Candidates(run, orders, models, budget)


def first_starts(given: Candidates, seed: int = 0) -> list[Candidate]:
    return Starts(given, np.random.default_rng(seed)).first()


def test_every_name_has_a_search() -> None:
    assert set(SAMPLING) == set(WALKS)


@pytest.mark.parametrize("name", SAMPLING)
def test_it_finds_a_legal_mapping_within_budget_and_bound(name: str) -> None:
    """Definition and differential: the mapping fits, and costs what the scalar model says."""
    architecture, workload = load_architecture("edge_npu"), load_workload(CONV)
    run = execution(workload, workload.operators[0], architecture)
    found = map_execution(Method(name=name, budget=80), run, architecture.leakage_w, price, "edp")
    check_capacity(staged_tiles(run, found.mapping))
    cost = ScalarModel(workload, workload.operators[0], architecture).cost(found.mapping)
    assert found.objective_value == pytest.approx(cost.latency_ps * cost.energy_pj, rel=1e-9)
    assert found.mapping.made_by == name
    assert 0 < found.calls <= 80
    assert found.lower_bound <= found.objective_value
    assert found.gap >= 0.0


@pytest.mark.parametrize("name", SAMPLING)
def test_same_seed_same_result(name: str) -> None:
    """Determinism, and that the seed matters."""
    results = []
    for seed in (5, 5, 6):
        given = space(operators.product(24, 30, 18), budget=40)
        explore(given, WALKS[name], seed)
        results.append([(i.calls, i.value) for i in given.history] + [given.best])
    assert results[0] == results[1]
    assert results[0] != results[2] or name != "random"


@pytest.mark.parametrize("name", SAMPLING)
def test_more_budget_is_never_worse(name: str) -> None:
    """Monotone on average is not enough: what was found is kept."""
    given = space(operators.product(24, 30, 18), budget=70)
    explore(given, WALKS[name], 1)
    values = [improvement.value for improvement in given.history]
    assert values == sorted(values, reverse=True)
    assert given.best_value == values[-1]


@pytest.mark.parametrize("arch", architectures())
def test_nothing_beats_the_bound(arch: str) -> None:
    """Differential: the bound against the proven optimum, for every objective; without latches
    that of every single order."""
    for seed in range(5):
        workload = random_workload(np.random.default_rng(seed))
        architecture = architectures()[arch]
        operator = workload.operators[0]
        run = execution(workload, operator, architecture)
        orders = tuple(stage_orders(run))
        for objective, number in OBJECTIVES.items():
            coefficients = Coefficients(
                run=run, leakage_w=architecture.leakage_w, price=price, objective=number
            )
            models = tuple(coefficients.model(order) for order in orders)
            bounds = [lower_bound(orders, models).value]
            if not any(memory.is_latch for memory in run.memories):
                bounds += [
                    lower_bound([order], [model]).value
                    for order, model in zip(orders, models, strict=True)
                ]
            try:
                best = map_operator(workload, operator, architecture, price, objective)
            except InfeasibleError:
                continue
            assert max(bounds) <= best.objective_value * (1 + 1e-12)


def test_calls_are_counted_once_and_limited() -> None:
    """Both sides of a gate: the last call that is allowed, and one more."""
    given = space(operators.product(12, 10, 9), budget=3)
    rng, moves = np.random.default_rng(1), Moves(given.orders, given.fits)
    start = first_starts(space(operators.product(12, 10, 9)))[0]
    near = (moves.near(start, rng) for _ in range(100))
    distinct = list(dict.fromkeys(each for each in near if each is not None))[:4]
    for candidate in distinct[:3]:
        assert given.value(candidate) == given.value(candidate)
    assert given.calls == 3
    with pytest.raises(BudgetSpent):
        given.value(distinct[3])


@pytest.mark.parametrize("name", SAMPLING)
def test_a_search_ends_when_it_is_at_the_bound(name: str) -> None:
    """What is proven optimal needs no more calls; the bound is one that any mapping meets."""
    given = space(operators.product(12, 10, 9), budget=50)
    given.enough = math.inf
    explore(given, WALKS[name], 1)
    assert given.calls == 1
    assert given.best is not None


def test_if_nothing_fits_the_exact_search_says_so() -> None:
    """The error names the memory that is too small."""
    architecture = resized(architectures()["output_stationary"], {"buffer": 1})
    workload = operators.product(6, 5, 4)
    run = execution(workload, workload.operators[0], architecture)
    with pytest.raises(InfeasibleError, match="buffer"):
        map_execution(Method(name="heuristic"), run, architecture.leakage_w, price, "edp")


def everything_fits(candidate: Candidate) -> bool:
    return True


def test_steps_do_what_they_say_and_change_nothing_else() -> None:
    """Definition: the named tile or factor grows or shrinks, other dimensions stay."""
    given = space(operators.product(12, 10, 9))
    moves = Moves(given.orders, everything_fits)
    rng = np.random.default_rng(0)
    taken = 0
    for _ in range(300):
        number = int(rng.integers(len(given.orders)))
        order = given.orders[number]
        sizes = [len(order.tilings(dim)) for dim in given.dims]
        at = Candidate(number, tuple(int(rng.integers(size)) for size in sizes))
        step = moves.steps[int(rng.integers(len(moves.steps)))]
        there = moves.stepped(at, step)
        if there is None:
            continue
        taken += 1
        table = order.tilings(given.dims[step.dim])
        old, new = at.rows[step.dim], there.rows[step.dim]
        if isinstance(step, Resize):
            change = table.tiles[new, step.stage] - table.tiles[old, step.stage]
            assert (table.spatial[new] == table.spatial[old]).all()
        else:
            change = table.spatial[new, step.axis] - table.spatial[old, step.axis]
        assert step.sign * change > 0
        others = [dim for dim in range(len(given.dims)) if dim != step.dim]
        assert [there.rows[dim] for dim in others] == [at.rows[dim] for dim in others]
    assert taken > 100


def test_reordering_keeps_tiles_where_the_new_order_has_them() -> None:
    """Round trip: to another order and back, for mappings that both orders have."""
    given = space(operators.product(12, 10, 9))
    moves = Moves(given.orders, everything_fits)
    start = first_starts(given)[0]
    for other in moves.reorderings(start.order):
        there = moves.reordered(start, other)
        back = moves.reordered(there, start.order)
        unrolled = [given.orders[0].tilings(dim).spatial for dim in given.dims]
        for dim, table in enumerate(unrolled):
            assert (table[start.rows[dim]] == table[back.rows[dim]]).all()


def test_unrolling_steps_exist_for_every_axis() -> None:
    """The moves know all axes and all dimensions longer than one."""
    given = space(operators.product(12, 1, 9), "free")
    unrolls = {
        (s.dim, s.axis) for s in Moves(given.orders, given.fits).steps if isinstance(s, Unroll)
    }
    assert unrolls == {(0, 0), (0, 1), (2, 0), (2, 1)}


def test_what_asks_for_no_more_costs_no_more() -> None:
    """Monotone: a mapping that is passed by because another asks for no more is not better."""
    given = space(load_workload(CONV), "weight_stationary", budget=500)
    rng = np.random.default_rng(3)
    moves = Moves(given.orders, given.fits)
    current = first_starts(given)[0]
    beaten = 0
    for _ in range(200):
        found = moves.near(current, rng)
        if found is None or given.is_known(found):
            continue
        if given.is_beaten(found):
            beaten += 1
            assert given.value(found) >= given.best_value
        given.value(found)
        current = found if rng.random() < 0.5 else current
    assert beaten > 2

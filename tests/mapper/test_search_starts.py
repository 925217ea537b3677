"""Do starts count what the mapspace counts, and does pricing them sort the guesses?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from mapper.hierarchy import execution
from mapper.search import pricing
from mapper.search.candidates import Candidate, Candidates
from mapper.search.coefficients import Coefficients
from mapper.search.counts import Counted, count_alone, count_joint, counted
from mapper.search.exact import OBJECTIVES
from mapper.search.fewest import anneal, settle
from mapper.search.fill import LIFTED
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.space import stage_orders
from mapper.search.starts import NothingFits, Starts
from mapper.search.terms import Terms, terms
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures, resized
from tests.mapper.test_search_exact import random_workload

CONV = "conv2d:N=1,C=32,H=14,K=48,R=3,dtype=int8"


def space(workload: Workload, arch: str, objective: str = "edp", budget: int = 500) -> Candidates:
    architecture = architectures()[arch]
    run = execution(workload, workload.operators[0], architecture)
    coefficients = Coefficients(
        run=run, leakage_w=0.0, price=price, objective=OBJECTIVES[objective]
    )
    orders = tuple(stage_orders(run))
    return Candidates(run, orders, tuple(coefficients.model(o) for o in orders), budget)


def tables(given: Candidates) -> tuple[list[int], Terms, Counted]:
    """Of the first order's family."""
    first = given.orders[0]
    chains = [first.tilings(dim).chains for dim in given.dims]
    numbers = [
        n
        for n, order in enumerate(given.orders)
        if order.run is first.run and [order.tilings(dim).chains for dim in given.dims] == chains
    ]
    found = terms(
        first, Coefficients(run=given.run, leakage_w=0.0, price=price, objective=pricing.EDP)
    )
    return numbers, found, counted([given.orders[n] for n in numbers], found.columns)


def volumes(some: Counted, order: int, rows: IntArray) -> FloatArray:
    counts = some.counts
    product, factors = np.ones(counts.places.shape[1]), np.empty(counts.places.shape[1])
    for d, row in enumerate(rows):
        count_alone(counts, order, d, int(row), factors)
        product *= factors
    for group in range(len(counts.joint_first)):
        count_joint(counts, order, group, rows, factors)
        product *= factors
    return product


@pytest.mark.parametrize("arch", architectures())
@pytest.mark.parametrize("thinned", [False, True])
def test_tables_of_all_tilings_count_what_each_order_counts(
    arch: str, thinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Differential: against the factors of each order's own groups; also of fewer tilings."""
    if thinned:
        monkeypatch.setattr("mapper.search.counts._MOST_ROWS", 9)
        monkeypatch.setattr("mapper.search.counts._MOST_COMBINATIONS", 20)
    rng = np.random.default_rng(7)
    for seed in range(4):
        given = space(random_workload(np.random.default_rng(seed)), arch)
        numbers, found, some = tables(given)
        plain = found.columns[:, LIFTED] == 0
        for _ in range(20):
            at = int(rng.integers(len(numbers)))
            order = given.orders[numbers[at]]
            picked = [int(rng.integers(len(one))) for one in some.tilings]
            rows = np.array(picked) + some.counts.first[:-1]
            tilings = {
                dim: np.array([one[row]])
                for dim, one, row in zip(given.dims, some.tilings, picked, strict=True)
            }
            expected = np.ones(len(found.columns))
            for group in given.run.counts.groups:
                expected *= found.factors(order, group, {dim: tilings[dim] for dim in group})[0]
            assert (volumes(some, at, rows)[plain] == expected[plain]).all()


def test_annealing_tells_the_truth_and_settling_only_improves() -> None:
    """Differential: what annealing says it reached is what counting its end again gives, that
    fits, and settling leads to nothing worse."""
    given = space(load_workload(CONV), "two_levels")
    numbers, found, some = tables(given)
    first, reached = some.counts.first[:-1], set()
    for seed in range(1, 6):
        rows = first + 0
        order, least = anneal(some.counts, found.flows, rows, seed, 2000)
        assert order >= 0
        tilings = (int(one[row]) for one, row in zip(some.tilings, rows - first, strict=True))
        end = Candidate(numbers[order], tuple(tilings))
        assert given.fits(end)
        assert least == pytest.approx(math.log(given.value(end)), rel=1e-6)
        assert settle(some.counts, found.flows, order, rows) <= least + 1e-12
        reached.add(end)
    assert len(reached) > 1


def test_the_worse_half_of_the_guesses_is_given_up() -> None:
    """Steps and each shared memory may take the time; pricing decides who goes on, and the best
    guess always does."""
    given = space(load_workload(CONV), "two_levels")
    source = Starts(given, np.random.default_rng(2))
    shared = [memory.name for memory in given.run.memories if not memory.replicated_over]
    assert [guess.taking for guess in source.left] == ["", *shared]
    left = len(source.left)
    for _ in range(4):
        before = source.left
        source.more()
        source.more()
        best = min(before, key=lambda guess: guess.best_value)
        left = (left + 1) // 2
        assert len(source.left) == left
        assert source.left[0] is best
    assert given.best_value == source.left[0].best_value


def test_if_energy_alone_counts_nothing_needs_to_be_guessed() -> None:
    given = space(load_workload(CONV), "two_levels", objective="energy")
    assert [guess.taking for guess in Starts(given, np.random.default_rng(2)).left] == [""]


@pytest.mark.parametrize("arch", architectures())
def test_starts_fit_and_come_best_first(arch: str) -> None:
    """Definition; and the same seed gives the same starts."""
    given = space(operators.product(24, 30, 18), arch)
    found = Starts(given, np.random.default_rng(3)).first()
    values = [given.value(each) for each in found]
    assert values == sorted(values)
    assert all(map(given.fits, found))
    again = space(operators.product(24, 30, 18), arch)
    assert Starts(again, np.random.default_rng(3)).first() == found


def test_starts_say_if_nothing_fits() -> None:
    architecture = resized(architectures()["output_stationary"], {"buffer": 1})
    workload = operators.product(6, 5, 4)
    run = execution(workload, workload.operators[0], architecture)
    coefficients = Coefficients(run=run, leakage_w=0.0, price=price, objective=pricing.EDP)
    orders = tuple(stage_orders(run))
    given = Candidates(run, orders, tuple(coefficients.model(o) for o in orders), 50)
    with pytest.raises(NothingFits):
        Starts(given, np.random.default_rng(0)).first()

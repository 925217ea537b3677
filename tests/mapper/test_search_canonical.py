"""Is an optimum left when mappings that another order of stages has are left out?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from mapper.cost import InfeasibleError
from mapper.mapping import Mapping
from mapper.search import pricing
from mapper.search.canonical import PAIRS, Canonical, combined
from mapper.search.coefficients import Coefficients
from mapper.search.space import StageOrder, distinct_orders, stage_orders
from mapper.search.terms import with_terms
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures
from tests.mapper.scalar_model import OBJECTIVES, Cost, ScalarModel, best
from tests.mapper.test_search_exact import Scenario, search
from tests.mapper.test_search_exhaustive import scenarios

REL = 1e-9

#: Operators per architecture and mappings of each at most.
SEVERAL, MOST_MAPPINGS = 3, 300


def canonical_mappings(scenario: Scenario) -> Iterator[Mapping]:
    """Of all orders of stages, without the bounds that leave out most in a search."""
    run = scenario.model.run
    coefficients = Coefficients(
        run=run,
        leakage_w=scenario.architecture.leakage_w,
        price=price,
        objective=pricing.EDP,
    )
    for order, terms in with_terms(distinct_orders(run), coefficients):
        canonical = Canonical(order, terms.late_loads)
        for chosen in every_choice(order):
            lacks = [
                canonical.lacks(dim, order.listed_tilings(dim))[[number]]
                for dim, number in chosen.items()
            ]
            found = int(combined(lacks)[0])
            if not found & ((1 << PAIRS) - 1) & (canonical.late | found >> PAIRS):
                yield order.mapping(chosen, made_by="enumeration")


def every_choice(order: StageOrder) -> Iterator[dict[str, int]]:
    extents = order.run.operator.extents
    for numbers in itertools.product(*(range(len(order.tilings(dim))) for dim in extents)):
        yield dict(zip(extents, numbers, strict=True))


@pytest.mark.parametrize("name", architectures())
def test_what_is_left_out_is_never_all_that_is_best(name: str) -> None:
    left_out = 0
    for scenario in scenarios(name, SEVERAL, MOST_MAPPINGS):
        model = scenario.model
        every = list(model.costs(stage_orders(model.run)))
        left = [cost for m in canonical_mappings(scenario) for cost in priced(model, m)]
        left_out += len(every) - len(left)
        for objective in OBJECTIVES if every else ():
            assert best(left, objective) == pytest.approx(best(every, objective), rel=REL)
    assert left_out > 0


def priced(model: ScalarModel, mapping: Mapping) -> list[Cost]:
    try:
        return [model.cost(mapping)]
    except InfeasibleError:
        return []


@pytest.mark.parametrize("name", ["free", "weight_stationary"])
def test_an_image_as_high_as_wide_loses_nothing_by_its_symmetry(name: str) -> None:
    """Of two mappings that only exchange height and width the search looks at one."""
    image = operators.convolved(1, 1, (3, 3), operators.window(1, axes=2))
    scenario = Scenario(image, architectures()[name])
    model = scenario.model
    costs = list(model.costs(stage_orders(model.run)))
    for objective in OBJECTIVES:
        value, tie = best(costs, objective)
        reached = model.cost(search(scenario, objective).mapping).keys(objective)
        assert reached == pytest.approx((value, tie), rel=REL)

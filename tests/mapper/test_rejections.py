"""Why nothing fits: are the causes those that the legality check names?"""

from __future__ import annotations

import pytest

from mapper.cost import InfeasibleError
from mapper.hierarchy import execution
from mapper.search.exact import map_operator
from mapper.search.rejections import DRAWS, rejections
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures, resized
from tests.mapper.scalar_model import mapspace_size


@pytest.mark.parametrize("name", ["weight_stationary", "free", "latched"])
def test_where_nothing_fits_every_mapping_has_a_cause_no_nearer_than_the_proof(name: str) -> None:
    """The buffer of one byte is every mapping's trouble, and alone where the rest is large."""
    roomy = {m.name: 1 << 20 for m in architectures()[name].memories if not m.is_latch}
    device = resized(architectures()[name], {**roomy, "buffer": 1})
    workload = operators.product(6, 4, 8)
    operator = workload.operators[0]
    with pytest.raises(InfeasibleError) as refusal:
        map_operator(workload, operator, device, price)
    run = execution(workload, operator, device)
    found = rejections(run, price)
    assert found == rejections(run, price)
    assert found.mapspace == mapspace_size(run)
    first, *others = found.causes
    assert (first.limit, first.count, first.allowed) == (refusal.value.limit, DRAWS, 1)
    assert first.nearest >= refusal.value.needed
    assert all(cause.limit.startswith("axis") and cause.alone == 0 for cause in others)
    assert all(cause.nearest > cause.allowed for cause in found.causes)


def test_where_everything_fits_there_is_no_cause() -> None:
    device = architectures()["output_stationary"]
    plenty = resized(device, {m.name: 1 << 20 for m in device.memories})
    workload = operators.product(6, 4, 8)
    assert rejections(execution(workload, workload.operators[0], plenty), price).causes == ()

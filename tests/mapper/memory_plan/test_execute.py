"""Do plans compute the right numbers in the memory that they state, and not in less?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mapper.memory_plan import vmcu
from mapper.memory_plan.execute import ClobberedError, execute
from mapper.memory_plan.layers import Layer
from mapper.memory_plan.layout import lay_out
from mapper.memory_plan.optimal import routes
from mapper.memory_plan.plan import MemoryPlan
from mapper.memory_plan.reference import random_values, reference
from mapper.memory_plan.stages import Choice, patched
from tests.mapper.memory_plan.networks import tiny_network


def cycles(layer: Layer, macs: int, accesses: int) -> float:
    return macs + 4 * accesses


def plan_of(choices: Sequence[Choice]) -> MemoryPlan:
    layout = lay_out(choices)
    size = max(choice.size_bytes for choice in choices)
    return MemoryPlan(
        planner="test",
        pool_bytes=size,
        is_ring=True,
        placements=layout.placements,
        steps=layout.steps,
        lower_bound_bytes=size,
    )


def least(layers: Sequence[Layer]) -> Sequence[Choice]:
    return routes(layers, cycles).found[0].choices


def fastest(layers: Sequence[Layer]) -> Sequence[Choice]:
    return routes(layers, cycles).found[-1].choices


def bottlenecks(layers: Sequence[Layer]) -> Sequence[Choice]:
    return vmcu.choices(layers, cycles)


@pytest.mark.parametrize("choose", [least, fastest, bottlenecks])
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_computes_what_the_layers_do(
    choose: Callable[[Sequence[Layer]], Sequence[Choice]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    layers = tiny_network(rng)
    values = random_values(layers, rng)
    plan = plan_of(choose(layers))
    assert (execute(layers, plan, values) == reference(layers, values)).all()
    with pytest.raises(ClobberedError):
        execute(layers, replace(plan, pool_bytes=plan.pool_bytes - 1), values)


@pytest.mark.parametrize("seed", range(4))
def test_patches_compute_what_the_layers_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layers = tiny_network(rng)[:4]
    values = random_values(layers, rng)
    for side in (2, 3):
        plan = plan_of([patched(layers, cycles, side)])
        assert plan.macs > sum(layer.macs for layer in layers)
        assert (execute(layers, plan, values) == reference(layers, values)).all()

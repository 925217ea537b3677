"""Do the plans of shipped networks compute, byte by byte, what the layers do?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mapper.memory_plan import PLANNER_NAMES
from mapper.memory_plan.execute import ClobberedError, execute
from mapper.memory_plan.layers import Layer, layers_of
from mapper.memory_plan.planners import Request, plan
from mapper.memory_plan.reference import random_values, reference
from mapper.workload.load import load_workload

RINGS = ("vmcu", "optimal")
ARENAS = tuple(name for name in PLANNER_NAMES if name not in RINGS)
NETWORKS = (
    *("mlperf_ad", "mlperf_kws", "mlperf_ic", "mobilenet_v1:image=96,width=0.25,classes=2"),
    *(f"mcunet_{name}" for name in ("vww0", "vww1", "vww2", "in0", "in1", "in2", "in3", "in4")),
)


def cycles(one: Layer, macs: int, accesses: int) -> float:
    return 2.0 * macs + one.operations + 4 * accesses


def check(network: str, planner: str) -> None:
    """Bit-exact in the pool of the plan; with one segment less something is overwritten."""
    workload = load_workload(network)
    layers = layers_of(workload)
    found = plan(planner, Request(workload=workload, cycles=cycles))
    values = random_values(layers, np.random.default_rng(0))
    assert (execute(layers, found, values) == reference(layers, values)).all()
    if planner in RINGS:
        units = [step.segment_bytes for step in found.steps if step.segment_bytes]
        smaller = replace(found, pool_bytes=found.pool_bytes - min(units, default=1))
        with pytest.raises(ClobberedError):
            execute(layers, smaller, values)


@pytest.mark.parametrize("planner", [*RINGS, *ARENAS])
@pytest.mark.parametrize("network", ["mlperf_ad"])
def test_a_small_network(network: str, planner: str) -> None:
    check(network, planner)


@pytest.mark.slow
@pytest.mark.parametrize("planner", [*RINGS, *ARENAS])
@pytest.mark.parametrize("network", NETWORKS[1:])
def test_every_network_for_microcontrollers(network: str, planner: str) -> None:
    check(network, planner)

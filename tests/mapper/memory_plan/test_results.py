"""Does a result of the network that it also reads itself stay whole, whoever plans it?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from mapper.memory_plan import PLANNER_NAMES
from mapper.memory_plan.execute import ClobberedError, execute
from mapper.memory_plan.layers import Layer, layers_of
from mapper.memory_plan.plan import MemoryPlan
from mapper.memory_plan.planners import Request, plan
from mapper.memory_plan.reference import random_values, reference
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload

#: Planners that let a result lie over an input that dies.
OVERLAPPING = ("tflm_offline", "tinyengine", "vmcu", "optimal")
#: Layers of keyword spotting whose output is returned as well: the input of a depthwise layer, of
#: a pointwise one, of the mean, of the last layer; several at once.
RETURNED = ((2,), (3,), (-3,), (-2,), (1, 4, -2))


def cycles(one: Layer, macs: int, accesses: int) -> float:
    return 2.0 * macs + one.operations + 4 * accesses


@cache
def network() -> Workload:
    return load_workload("mlperf_kws")


def returning(numbers: tuple[int, ...]) -> Workload:
    """The network with further results."""
    names = {network().operators[number].output.tensor for number in numbers}
    tensors = (replace(t, kind="output") if t.name in names else t for t in network().tensors)
    return replace(network(), tensors=tuple(tensors))


def planned(planner: str, workload: Workload) -> MemoryPlan:
    return plan(planner, Request(workload=workload, cycles=cycles))


@pytest.mark.parametrize("numbers", RETURNED)
@pytest.mark.parametrize("planner", PLANNER_NAMES)
def test_a_result_that_is_read_inside_stays(planner: str, numbers: tuple[int, ...]) -> None:
    workload = returning(numbers)
    layers = layers_of(workload)
    values = random_values(layers, np.random.default_rng(0))
    found = execute(layers, planned(planner, workload), values)
    assert (found == reference(layers, values)).all()
    assert len(found) == sum(t.elements for t in workload.tensors if t.kind == "output")


@pytest.mark.parametrize("planner", OVERLAPPING)
def test_the_check_sees_a_result_that_is_overwritten(planner: str) -> None:
    """The plan of the network without that result loses it, also if it is said to be kept."""
    lost = planned(planner, network())
    placed = [p.buffer.name for p in lost.placements]
    outputs = [operator.output.tensor for operator in network().operators]
    number = next(i for i, output in enumerate(outputs) if output in placed)
    workload, name = returning((number,)), outputs[number]
    layers = layers_of(workload)
    values = random_values(layers, np.random.default_rng(0))
    with pytest.raises(ClobberedError, match="no place"):
        execute(layers, lost, values)
    last = len(lost.steps) - 1
    kept = (
        replace(p, buffer=replace(p.buffer, last=last)) if p.buffer.name == name else p
        for p in lost.placements
    )
    with pytest.raises(ClobberedError, match="overwritten"):
        execute(layers, replace(lost, placements=tuple(kept)), values)


@pytest.mark.parametrize("planner", PLANNER_NAMES)
def test_results_never_save_memory(planner: str) -> None:
    """Monotone, and no less than what is there at the end."""
    plain = planned(planner, network()).pool_bytes
    for numbers in RETURNED:
        workload = returning(numbers)
        results = sum(t.elements for t in workload.tensors if t.kind == "output")
        assert planned(planner, workload).pool_bytes >= max(plain, results)

"""Tensors that stay on a core: where one core alone touches them, in room that there is."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from arch.load import load_architecture
from arch.spec import Architecture
from dse.keeping import Kept, keep_on_cores
from dse.scheduling import place
from mapper.core_tasks import check_homes
from mapper.plan import Plan
from mapper.search.schedule import Options, Schedules
from mapper.search.units import Setting
from mapper.workload.graph import Workload
from sim.plan import KnownUnits
from sim.plan_cores import evaluate_on_cores
from sim.prices import price
from tests.mapper.fusion.cases import network


@cache
def hardware() -> Architecture:
    return load_architecture("quad_core")


@cache
def schedules(objective: str) -> tuple[Schedules, Plan]:
    """Every operator on its own, nothing kept."""
    setting = Setting(
        workload=network("conv conv"),
        architecture=hardware(),
        price=price,
        cost=KnownUnits(),
        objective=objective,
    )
    found = Schedules(setting)
    return found, found.best(Options(longest=1, keep=False)).plan


def energy_pj(plan: Plan) -> float:
    run = evaluate_on_cores("analytical", workload(), hardware(), plan, plan.cores)
    return run.metrics.energy_pj


def workload() -> Workload:
    return schedules("energy")[0].setting.workload


def kept(cores: tuple[int, ...]) -> Kept | None:
    found, plan = schedules("energy")
    placed = replace(plan, cores=cores)
    return keep_on_cores(found, placed, energy_pj(placed))


def test_what_one_core_passes_on_to_itself_stays_there() -> None:
    found = kept((2, 2))
    assert found is not None
    (tensor,) = found.plan.homes
    first, second = workload().operators
    assert tensor == first.output.tensor in {access.tensor for access in second.inputs}
    check_homes(workload(), found.plan, found.plan.cores)
    _, plan = schedules("energy")
    assert energy_pj(found.plan) < energy_pj(replace(plan, cores=(2, 2)))
    run = evaluate_on_cores("analytical", workload(), hardware(), found.plan, (2, 2))
    assert (run.metrics.latency_ps, run.metrics.energy_pj) == pytest.approx(
        (found.cost.latency_ps, found.cost.energy_pj)
    )


def test_what_another_core_reads_does_not_stay() -> None:
    assert kept((0, 1)) is None


def test_it_takes_room_on_its_core_alone() -> None:
    found = kept((1, 1))
    assert found is not None
    units = (*found.plan.units[:1], *found.plan.units)  # one more, of another core, in between
    between = Plan(units=units, homes=found.plan.homes, cores=(1, 0, 1))
    here, other, there = (sum(each.values()) for each in between.occupied(workload()))
    assert here == there > 0 == other


def test_events_take_at_least_as_long() -> None:
    found = kept((0, 0))
    assert found is not None
    runs = [
        evaluate_on_cores(fidelity, workload(), hardware(), found.plan, (0, 0)).metrics
        for fidelity in ("roofline", "analytical", "event")
    ]
    assert [m.latency_ps for m in runs] == sorted(m.latency_ps for m in runs)
    assert all(m.dynamic_energy_pj == pytest.approx(runs[0].dynamic_energy_pj) for m in runs)


@pytest.mark.parametrize("objective", ["latency", "edp"])
def test_a_placed_schedule_is_no_worse_than_its_bound_says(objective: str) -> None:
    found = place(network("conv conv"), hardware(), objective)
    assert found.bound <= found.cost.value(objective) * (1 + 1e-12)
    assert found.cost.value(objective) <= found.alone.cost.value(objective) * (1 + 1e-12)

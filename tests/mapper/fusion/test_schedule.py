"""The search of schedules: never worse than the plain plan, exact where it says so."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import pytest
from torch import nn

from arch.spec import Architecture
from dse.cli.schedules import totals
from mapper.cost import InfeasibleError
from mapper.fusion import FusedMapping
from mapper.placement import tensor_bits
from mapper.plan import Plan
from mapper.search.schedule import Options, Schedule, Thinned, best_schedule, spread
from mapper.search.units import Cost, Mapped, Setting
from mapper.workload.graph import Workload
from sim.models import FIDELITIES
from sim.plan import KnownUnits, evaluate_plan
from sim.prices import price
from tests.mapper.fusion.cases import device, network
from tests.mapper.fusion.networks import image, imported
from tests.mapper.hardware import resized

OBJECTIVES = ("latency", "energy", "edp")


@cache
def chain() -> Workload:
    """Four convolutions that grow and shrink."""
    widths = (2, 4, 6, 4, 2)
    layers = [nn.Conv2d(a, b, 1, bias=False) for a, b in itertools.pairwise(widths)]
    return imported(nn.Sequential(*layers), image(2, 6, 6))


@cache
def small(size: int) -> Architecture:
    return resized(device(), {"buffer": size})


def setting(workload: Workload, where: Architecture, objective: str) -> Setting:
    return Setting(
        workload=workload, architecture=where, price=price, cost=KnownUnits(), objective=objective
    )


@cache
def scheduled(name: str, size: int, objective: str) -> Schedule:
    return best_schedule(setting(network(name), small(size), objective))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("name", "size"), [("attention", 160), ("residual", 1000), ("mlp", 160)])
def test_never_worse_than_plain_and_never_below_the_bound(
    name: str, size: int, objective: str
) -> None:
    found = scheduled(name, size, objective)
    assert found.cost.value(objective) <= found.unfused.value(objective)
    assert found.lower_bound <= found.cost.value(objective) * (1 + 1e-12)
    assert found.gap >= -1e-12


@pytest.mark.parametrize("count", [1, 64, 65, 1000])
def test_of_many_ways_evenly_spread_ones_are_followed_and_the_others_counted(count: int) -> None:
    kept, left_out = spread(list(range(count)), most=64)
    assert sorted(kept + left_out) == list(range(count))
    assert len(kept) == min(count, 64)
    assert {0, count - 1} <= set(kept)
    steps = [after - before for before, after in itertools.pairwise(kept)]
    assert max(steps, default=1) - min(steps, default=1) <= 1


def test_what_ways_left_out_could_lead_to_is_said() -> None:
    found = scheduled("mlp", 160, "edp")
    assert (found.thinned.ways, found.cut_gap) == (0, 0.0)
    value = found.cost.value("edp")
    for bound, gap in ((value / 1.25, 0.25), (2 * value, 0.0)):
        some = replace(found, thinned=Thinned(ways=3, bound=bound))
        assert some.cut_gap == pytest.approx(gap)
        assert "3 ways not followed" in dict(totals(some))["cut"]
    assert "no other way" in dict(totals(found))["cut"]


@pytest.mark.parametrize("name", ["inverted bottleneck", "attention"])
def test_the_cost_is_what_the_models_say_of_the_plan(name: str) -> None:
    """What the search adds up equals the analytical model; the other two bracket it."""
    found = scheduled(name, 1000, "edp")
    runs = [
        evaluate_plan(fidelity, network(name), small(1000), found.plan) for fidelity in FIDELITIES
    ]
    latencies = [run.latency_ps for run in runs]
    assert latencies == sorted(latencies)
    assert latencies[1] == found.cost.latency_ps
    assert runs[1].energy_pj == pytest.approx(found.cost.energy_pj, rel=1e-12)
    assert runs[1].memory["buffer"] <= 1000


def test_fusion_pays_where_tensors_are_large_and_tiles_small() -> None:
    """A bottleneck that is wide inside: its intermediates need not leave the chip."""
    found = scheduled("inverted bottleneck", 1000, "energy")
    assert any(isinstance(unit, FusedMapping) for unit in found.plan.units)
    assert found.cost.energy_pj < 0.9 * found.unfused.energy_pj
    assert found.bytes_saved > 0


@pytest.mark.parametrize(
    ("size", "objective"), [(130, "latency"), (200, "edp"), (330, "energy"), (200, "latency")]
)
def test_residency_equals_the_best_of_all_subsets(size: int, objective: str) -> None:
    """Without fusion: every subset of tensors kept on the chip, each with optimal mappings."""
    workload, where = chain(), small(size)
    asked = setting(workload, where, objective)
    found = best_schedule(asked, Options(longest=1))
    mapped = Mapped(asked)
    between = [t.name for t in workload.tensors if t.kind == "activation"]
    values = []
    for count in range(len(between) + 1):
        for kept in itertools.combinations(between, count):
            cost = kept_cost(mapped, workload, kept)
            if cost is not None:
                values.append(cost.value(objective))
    assert found.cost.value(objective) == pytest.approx(min(values), rel=1e-12)


def kept_cost(mapped: Mapped, workload: Workload, kept: tuple[str, ...]) -> Cost | None:
    """The whole chain with these tensors in the buffer, or ``None`` if it does not fit."""
    total = Cost(0, 0.0)
    for operator in workload.operators:
        here = [a.tensor for a in operator.accesses if a.tensor in kept]
        bits = sum(int(tensor_bits(workload.tensor(tensor))) for tensor in here)
        occupied = {"buffer": bits} if bits else {}
        try:
            _, cost = mapped.single(operator, dict.fromkeys(here, "buffer"), occupied)
        except InfeasibleError:
            return None
        total = total.plus(cost)
    return total


def test_a_plan_must_cover_the_workload() -> None:
    found = scheduled("mlp", 1000, "edp")
    short = Plan(units=found.plan.units[1:])
    with pytest.raises(ValueError, match="the plan and the workload differ"):
        evaluate_plan("roofline", network("mlp"), small(1000), short)

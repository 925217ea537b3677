"""Units of real networks on several cores: what they wait for, and never worse than fixed cuts."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from arch.spec import Architecture
from dse.scheduling import CUTS, place, schedule
from mapper.core_tasks import tasks_of
from mapper.placement_cores import best_placement
from mapper.plan import Plan, Unit
from mapper.search.cuts import units_of
from mapper.search.joint import best_cut
from mapper.search.schedule import Options, Schedules
from mapper.search.units import Setting
from mapper.unit_tiles import unit_tiles
from mapper.workload.graph import Workload
from sim.multicore import CoreUnit, simulate_cores
from sim.plan import KnownUnits, priced_unit
from sim.prices import price
from tests.mapper.fusion.cases import device, network, random_fused
from tests.mapper.fusion.networks import NETWORKS, imported
from tests.mapper.hardware import resized
from tests.mapper.test_joint_cut import ways


@cache
def several(cores: int) -> Architecture:
    return replace(resized(device(), {"buffer": 1000}), cores=cores)


def numbers(workload: Workload, where: Architecture, unit: Unit) -> tuple[int, float, int]:
    found = priced_unit(workload, where, unit, {}, {})
    return found.latency_ps, found.dynamic_pj, found.outer_ps


def setting(workload: Workload, where: Architecture, objective: str) -> Setting:
    return Setting(
        workload=workload, architecture=where, price=price, cost=KnownUnits(), objective=objective
    )


@pytest.mark.parametrize(
    ("name", "objective"), [("conv conv", "latency"), ("mlp", "energy"), ("attention", "edp")]
)
def test_equals_every_cut_on_every_core(name: str, objective: str) -> None:
    """Differential: all ways and assignments of the units, by the simulation of cores."""
    where = several(2)
    found = units_of(Schedules(setting(network(name), where, objective)), numbers)
    cuts = found.cuts
    values = []
    for way in ways(cuts):
        dynamic = sum(cuts.choices[number].dynamic_pj for number in way)
        shared = sum(cuts.choices[number].shared_ps for number in way)
        plan = Plan(units=tuple(found.units[number] for number in way))
        latencies = [cuts.choices[number].busy_ps for number in way]
        tasks = tasks_of(network(name), where, plan, latencies)
        for cores in itertools.product(range(2), repeat=len(way)):
            units = [
                CoreUnit(core=core, tiles=t.tiles, tile_ps=t.tile_ps, port_ps=0, needs=t.needs)
                for t, core in zip(tasks, cores, strict=True)
            ]
            values.append(cuts.value(max(simulate_cores(units).latency_ps, shared), dynamic))
    best, bound = best_cut(cuts)
    assert best is not None
    assert best.value == bound == pytest.approx(min(values), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "objective"),
    [("inverted bottleneck", "latency"), ("inverted bottleneck", "edp"), ("gated", "energy")],
)
def test_never_worse_than_cuts_made_without_looking_at_cores(name: str, objective: str) -> None:
    workload, where = network(name), several(3)
    found = place(workload, where, objective)
    value = found.cost.value(objective)
    assert found.bound <= value
    assert value <= schedule(workload, where, objective).cost.value(objective)
    assert found.cost.latency_ps == found.placement.latency_ps
    for longest, least_tiles in ((4, 1), *CUTS):
        options = Options(longest=longest, keep=False, least_tiles=least_tiles)
        cut = schedule(workload, where, objective, options)
        latencies = [numbers(workload, where, unit)[0] for unit in cut.plan.units]
        tasks = tasks_of(workload, where, cut.plan, latencies)
        fixed = best_placement(
            tasks, 3, sum(numbers(workload, where, u)[2] for u in cut.plan.units)
        )
        dynamic = sum(numbers(workload, where, unit)[1] for unit in cut.plan.units)
        energy = dynamic + where.leakage_w * fixed.latency_ps
        values = {
            "latency": fixed.latency_ps,
            "energy": energy,
            "edp": fixed.latency_ps * energy,
        }
        assert value <= values[objective] * (1 + 1e-12)


class Both(nn.Module):
    """Two results side by side in one tensor, and a product with both."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = (nn.Linear(4, 4, bias=False) for _ in range(2))
        self.last = nn.Linear(8, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([self.left(x), self.right(x)], dim=1)
        result: torch.Tensor = self.last(joined)
        return result


def test_a_reader_waits_for_every_writer() -> None:
    workload = imported(Both(), torch.zeros(5, 4))
    schedules = Schedules(setting(workload, several(3), "latency"))
    plan = Plan(units=tuple(schedules.mapped.single(o, {}, {})[0] for o in workload.operators))
    tasks = tasks_of(workload, several(3), plan, [1] * len(workload.operators))
    names = [operator.output.tensor for operator in workload.operators]
    copies = [n for n in range(len(names)) if names.count(names[n]) == 2]
    assert len(copies) == 2
    assert dict(tasks[-1].needs) == dict.fromkeys(copies, (0,))
    assert all(set(dict(tasks[n].needs)).isdisjoint(copies) for n in copies)


@pytest.mark.parametrize("name", NETWORKS)
def test_tiles_wait_for_all_that_they_read_and_no_tile_longer_than_needed(name: str) -> None:
    """Differential: by sets of elements that tiles of a group of the last operator alone read
    and tiles of the one before it write."""
    workload, where = network(name), device()
    rng = np.random.default_rng(3)
    before, last = (only(workload, at) for at in (-2, -1))
    if last.operators[0].inputs[0].tensor != before.operators[0].output.tensor:
        before = only(workload, -3)
    first, second = (
        unit_tiles(part, where, random_fused(part, where, rng)) for part in (before, last)
    )
    waits = second.waits_for(first)
    shared = first.result in second.reads
    assert (waits is not None) == shared
    if waits is None:
        return
    needed = -1
    for tile in range(second.count):
        for regions in second.reads[first.result]:
            read = elements_of(regions[tile])
            writers = [n for n in range(first.count) if read & elements_of(first.written[n])]
            needed = max(needed, *writers) if writers else needed
        assert waits[tile] == needed


def elements_of(region: np.ndarray) -> set[tuple[int, ...]]:
    return set(itertools.product(*(range(start, stop) for start, stop in region)))


def only(workload: Workload, at: int) -> Workload:
    """One operator; what it reads comes from outside."""
    operator = workload.operators[at]
    kinds = {access.tensor: "input" for access in operator.inputs}
    kinds[operator.output.tensor] = "output"
    return Workload(
        name=workload.name,
        tensors=tuple(
            t if t.kind == "weight" else replace(t, kind=kinds[t.name])
            for t in workload.tensors
            if t.name in kinds
        ),
        operators=(operator,),
    )

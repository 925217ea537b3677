"""Whole schedules: which operators are fused and what stays on the chip."""

from __future__ import annotations

from dataclasses import dataclass

from arch.errors import InputError, Problem
from arch.spec import Architecture
from mapper.cost import Metrics
from mapper.order import reordered
from mapper.placement_cores import Placement, Task, best_placement, tasks_of
from mapper.search.schedule import Options, Schedule, best_schedule
from mapper.search.units import Cost, Setting
from mapper.workload.graph import Workload
from sim.kernel_models import runs_kernels
from sim.multicore import CoreRun, CoreUnit, simulate_cores
from sim.plan import evaluate_plan, unit_cost
from sim.prices import price

#: Ways to cut a network for several cores: the longest group, and the least tiles of each unit.
CUTS = ((1, 8), (2, 8), (4, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCores:
    """A plan with its units on several cores. ``alone`` is the best schedule on one core."""

    schedule: Schedule
    placement: Placement
    tasks: tuple[Task, ...]
    cost: Cost
    alone: Schedule


def place(workload: Workload, architecture: Architecture, objective: str) -> OnCores:
    """The best of some schedules with its units on all cores of the architecture.

    Staying on one core is one of them, so the result is never worse than that.
    """
    alone = schedule(workload, architecture, objective)
    found = [_on_one(workload, architecture, alone)]
    for longest, least_tiles in ((4, 1), *CUTS):
        options = Options(longest=longest, keep=False, least_tiles=least_tiles)
        cut = schedule(workload, architecture, objective, options)
        found.append(_on_all(workload, architecture, cut, alone))
    return min(found, key=lambda one: (one.cost.value(objective), one.cost))


def _on_one(workload: Workload, architecture: Architecture, alone: Schedule) -> OnCores:
    metrics = evaluate_plan("analytical", workload, architecture, alone.plan)
    tasks = tuple(
        Task(name=o.name, tiles=1, tile_ps=o.latency_ps, needs=()) for o in metrics.operators
    )
    placement = best_placement(tasks, 1, _shared_ps(metrics, architecture))
    return OnCores(schedule=alone, placement=placement, tasks=tasks, cost=alone.cost, alone=alone)


def _on_all(
    workload: Workload, architecture: Architecture, cut: Schedule, alone: Schedule
) -> OnCores:
    metrics = evaluate_plan("analytical", workload, architecture, cut.plan)
    latencies = [operator.latency_ps for operator in metrics.operators]
    ordered = reordered(workload, cut.order.operators)
    tasks = tasks_of(ordered, architecture, cut.plan, latencies)
    placement = best_placement(tasks, architecture.cores, _shared_ps(metrics, architecture))
    latency = placement.latency_ps
    energy = metrics.dynamic_energy_pj + architecture.leakage_w * latency
    return OnCores(
        schedule=cut,
        placement=placement,
        tasks=tasks,
        cost=Cost(latency, energy),
        alone=alone,
    )


def _shared_ps(metrics: Metrics, architecture: Architecture) -> int:
    """How long the memory that all cores share is busy."""
    return metrics.components[architecture.memories[0].name].busy_ps


def simulated(workload: Workload, architecture: Architecture, found: OnCores) -> CoreRun:
    """An event simulation: of each unit on its core, and of all cores at the shared port."""
    metrics = evaluate_plan("event", workload, architecture, found.schedule.plan)
    outer = architecture.memories[0].name
    units = []
    rows = zip(found.tasks, found.placement.cores, metrics.operators, strict=True)
    for task, core, measured in rows:
        tile_ps = -(-measured.latency_ps // task.tiles)
        busy_ps = -(-measured.components[outer].busy_ps // task.tiles)
        units.append(
            CoreUnit(
                core=core,
                tiles=task.tiles,
                tile_ps=max(tile_ps, task.tile_ps),
                port_ps=min(busy_ps, tile_ps),
                needs=task.needs,
            )
        )
    return simulate_cores(units)


def schedule(
    workload: Workload,
    architecture: Architecture,
    objective: str,
    options: Options | None = None,
    *,
    where: str = "--fuse",
) -> Schedule:
    """The best schedule for ``objective``. ``InputError`` for hardware that runs kernels of a
    library, which decides itself what is fused; ``InfeasibleError`` as for mappings."""
    if runs_kernels(architecture):
        message = f"{architecture.name} (family {architecture.family}) runs a library's kernels"
        raise InputError(Problem(f"{message}: there is no schedule to search", where=where))
    setting = Setting(
        workload=workload,
        architecture=architecture,
        price=price,
        cost=unit_cost,
        objective=objective,
    )
    return best_schedule(setting, options)

"""Whole schedules: which operators are fused and what stays on the chip."""

from __future__ import annotations

from dataclasses import dataclass, replace

from arch.errors import InputError, Problem
from arch.spec import Architecture
from dse.keeping import keep_on_cores
from mapper.core_tasks import Placement, Task, placement_of, tasks_of
from mapper.cost import Metrics
from mapper.placement_cores import best_placement
from mapper.plan import Plan, Unit
from mapper.search.cuts import units_of
from mapper.search.joint import best_cut
from mapper.search.schedule import Options, Schedule, Schedules
from mapper.search.units import Cost, Setting, UnitCost
from mapper.workload.graph import Workload
from sim.engines import DEFAULT
from sim.kernel_models import runs_kernels
from sim.models import EVENT
from sim.plan import KnownUnits, evaluate_plan
from sim.plan_cores import CoresRun, core_tasks, evaluate_on_cores
from sim.prices import price

#: Ways to cut a network for several cores: the longest group, and the least tiles of each unit.
CUTS = ((1, 8), (2, 8), (4, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCores:
    """A plan with its units on several cores. ``alone`` is the best schedule on one core; no way
    to cut the network into the ``considered`` units and put them on cores has a value below
    ``bound``."""

    schedule: Schedule
    placement: Placement
    tasks: tuple[Task, ...]
    cost: Cost
    alone: Schedule
    bound: float = 0.0
    considered: int = 0

    @property
    def gap(self) -> float:
        value = self.cost.value(self.schedule.objective)
        return value / self.bound - 1 if self.bound else 0.0

    @property
    def optimal(self) -> bool:
        return self.gap <= 0


def place(workload: Workload, architecture: Architecture, objective: str) -> OnCores:
    """The best cut of the network with its units on all cores of the architecture.

    Staying on one core, and some cuts that are found without looking at cores, are what the
    search starts from, so the result is never worse than those.
    """
    costs = KnownUnits()
    schedules = _schedules(workload, architecture, objective, costs)
    alone = schedules.best(Options())
    found = [_on_one(workload, architecture, alone)]
    for longest, least_tiles in ((4, 1), *CUTS):
        options = Options(longest=longest, keep=False, least_tiles=least_tiles)
        cut = schedules.best(options)
        found.append(_on_all(workload, architecture, cut, alone))
    best = min(found, key=lambda one: (one.cost.value(objective), one.cost))
    return _kept(schedules, _jointly(schedules, costs, best))


def _kept(schedules: Schedules, found: OnCores) -> OnCores:
    """With tensors that stay on a core's chip, where that is better. No cut of those that were
    considered is below the bound, in which nothing stays; what is kept may be."""
    objective, plan = schedules.setting.objective, found.schedule.plan
    if plan.homes:
        return found
    placed = replace(plan, cores=found.placement.cores)
    kept = keep_on_cores(schedules, placed, found.cost.value(objective))
    if kept is None:
        return found
    saved = kept.plan.bytes_saved(schedules.setting.workload)
    return replace(
        found,
        schedule=replace(found.schedule, plan=kept.plan, bytes_saved=saved),
        placement=kept.placement,
        tasks=kept.tasks,
        cost=kept.cost,
        bound=min(found.bound, kept.cost.value(objective)),
    )


def _jointly(schedules: Schedules, costs: KnownUnits, known: OnCores) -> OnCores:
    """Cut and cores decided together; what is known already unless there is something better."""

    def numbers(
        workload: Workload, architecture: Architecture, unit: Unit
    ) -> tuple[int, float, int]:
        priced = costs.priced(workload, architecture, unit, {}, {})
        return priced.latency_ps, priced.dynamic_pj, priced.outer_ps

    units = units_of(schedules, numbers)
    value = known.cost.value(schedules.setting.objective)
    found, bound = best_cut(units.cuts, value)
    bound = min(bound, value)
    if found is None:
        return replace(known, bound=bound, considered=len(units.units))
    plan = Plan(units=tuple(units.units[number] for number in found.chosen))
    choices = [units.cuts.choices[number] for number in found.chosen]
    workload, architecture = schedules.setting.workload, schedules.setting.architecture
    latencies = [choice.busy_ps for choice in choices]
    tasks = tasks_of(workload, architecture, plan, latencies)
    shared_ps = sum(choice.shared_ps for choice in choices)
    return OnCores(
        schedule=replace(
            known.alone,
            plan=plan,
            cost=units.cuts.cost(sum(latencies), found.dynamic_pj),
            calls=schedules.mapped.calls,
            bytes_saved=plan.bytes_saved(workload),
        ),
        placement=placement_of(tasks, found.cores, shared_ps),
        tasks=tasks,
        cost=units.cuts.cost(found.latency_ps, found.dynamic_pj),
        alone=known.alone,
        bound=bound,
        considered=len(units.units),
    )


def _on_one(workload: Workload, architecture: Architecture, alone: Schedule) -> OnCores:
    metrics = evaluate_plan("analytical", workload, architecture, alone.plan)
    tasks = core_tasks(workload, architecture, alone.plan, metrics)
    placement = best_placement(tasks, 1, _shared_ps(metrics, architecture))
    return OnCores(schedule=alone, placement=placement, tasks=tasks, cost=alone.cost, alone=alone)


def _on_all(
    workload: Workload, architecture: Architecture, cut: Schedule, alone: Schedule
) -> OnCores:
    metrics = evaluate_plan("analytical", workload, architecture, cut.plan)
    tasks = core_tasks(workload, architecture, cut.plan, metrics)
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


def simulated(
    workload: Workload,
    architecture: Architecture,
    found: OnCores,
    fidelity: str = EVENT,
    engine: str = DEFAULT,
) -> CoresRun:
    """The schedule on its cores at a fidelity, by default an event simulation: of each unit on its
    core, and of all cores at the shared port."""
    plan, cores = found.schedule.plan, found.placement.cores
    return evaluate_on_cores(fidelity, workload, architecture, plan, cores, engine)


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
    schedules = _schedules(workload, architecture, objective, KnownUnits())
    return schedules.best(options or Options())


def _schedules(
    workload: Workload, architecture: Architecture, objective: str, costs: UnitCost
) -> Schedules:
    return Schedules(
        Setting(
            workload=workload,
            architecture=architecture,
            price=price,
            cost=costs,
            objective=objective,
        )
    )

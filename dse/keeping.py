"""Tensors that stay on a core's chip from the unit that writes them to those that read them.

The search of cut and cores lets every tensor between units pass through the outermost memory.
Where the writer and all readers are on one core, it may stay in that core's shared memory instead;
units of that core which run meanwhile have so much less room, and are mapped anew. Tensors are
tried one after the other, the largest first, and kept where the schedule gets better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from arch.datatypes import Bits
from mapper.core_tasks import Placement, Task, placement_of
from mapper.cost import InfeasibleError
from mapper.fusion import FusedMapping
from mapper.hierarchy import execution
from mapper.placement import tensor_bits
from mapper.plan import Plan, Unit, operators_of
from mapper.search.cuts import LEAST_TILES
from mapper.search.schedule import Schedules
from mapper.search.units import Cost
from sim.plan import evaluate_plan
from sim.plan_cores import core_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A plan with tensors at home on its cores, and what it costs."""

    plan: Plan
    tasks: tuple[Task, ...]
    placement: Placement
    cost: Cost


def keep_on_cores(schedules: Schedules, plan: Plan, value: float) -> Kept | None:
    """The plan, whose ``cores`` are known, with tensors kept; ``None`` if none is worth it."""
    best: Kept | None = None
    for tensor, touching in _passed_on(schedules, plan):
        found = _with(schedules, best.plan if best else plan, tensor, touching)
        if found is not None and found.cost.value(schedules.setting.objective) < value:
            best, value = found, found.cost.value(schedules.setting.objective)
    return best


def _passed_on(schedules: Schedules, plan: Plan) -> Iterator[tuple[str, range]]:
    """Tensors that one core alone touches, and the positions from writer to last reader."""
    workload, memory = schedules.setting.workload, schedules.memory
    if memory is None:
        return
    touching: dict[str, list[int]] = {}
    for position, unit in enumerate(plan.units):
        for name in operators_of(unit):
            for access in workload.operator(name).accesses:
                touching.setdefault(access.tensor, []).append(position)
    results = [workload.operator(operators_of(unit)[-1]).output.tensor for unit in plan.units]
    passed = {name: touching[name] for name in results if touching[name][0] < touching[name][-1]}
    sizes = {name: tensor_bits(workload.tensor(name)) for name in passed}
    for name in sorted(passed, key=lambda name: (-sizes[name], name)):
        alone = len({plan.cores[position] for position in passed[name]}) == 1
        inner = workload.tensor(name).kind == "activation" and results.count(name) == 1
        if alone and inner and sizes[name] < 8 * memory.size_bytes and _readable(schedules, name):
            yield name, range(passed[name][0], passed[name][-1] + 1)


def _readable(schedules: Schedules, tensor: str) -> bool:
    """Whether all take it through the memory that it would stay in."""
    setting, memory = schedules.setting, schedules.memory
    assert memory is not None
    return all(
        memory.name in {level.name for level in path}
        for operator in setting.workload.operators
        for access, path in zip(
            operator.accesses,
            execution(setting.workload, operator, setting.architecture).paths,
            strict=True,
        )
        if access.tensor == tensor
    )


def _with(schedules: Schedules, plan: Plan, tensor: str, touching: range) -> Kept | None:
    """The plan with one more tensor kept; ``None`` if some unit does not fit beside it."""
    assert schedules.memory is not None
    setting = schedules.setting
    wanted = replace(plan, homes={**plan.homes, tensor: schedules.memory.name})
    room = list(wanted.occupied(setting.workload))
    units = list(plan.units)
    try:
        for position in touching:
            if plan.cores[position] == plan.cores[touching[0]]:
                units[position] = _mapped(schedules, units[position], wanted, room[position])
        wanted = replace(wanted, units=tuple(units))
        metrics = evaluate_plan("analytical", setting.workload, setting.architecture, wanted)
    except InfeasibleError:
        return None
    outer = setting.architecture.memories[0].name
    tasks = core_tasks(setting.workload, setting.architecture, wanted, metrics)
    placement = placement_of(tasks, plan.cores, metrics.components[outer].busy_ps)
    latency = placement.latency_ps
    energy = metrics.dynamic_energy_pj + setting.architecture.leakage_w * latency
    return Kept(plan=wanted, tasks=tasks, placement=placement, cost=Cost(latency, energy))


def _mapped(schedules: Schedules, unit: Unit, wanted: Plan, room: dict[str, Bits]) -> Unit:
    """The unit beside what is kept: a group in as many tiles as before, if it can."""
    occupied: dict[str, Bits] = {name: int(-(-bits // 1)) for name, bits in room.items()}
    homes = dict(wanted.homes)
    if not isinstance(unit, FusedMapping):
        operator = schedules.setting.workload.operator(unit.operator)
        return schedules.mapped.single(operator, homes, occupied)[0]
    searches = [schedules.groups(tiles) for tiles in (1, *LEAST_TILES)]
    ways = [s.best(unit.operators, homes, occupied) for s in searches if s is not None]
    fused = [way.fused for way in ways if way is not None]
    if not fused:
        raise InfeasibleError(
            limit="tiles",
            needed=1,
            allowed=0,
            detail=f"{unit.name} has no room beside what is kept",
        )
    return next((way for way in fused if way.tiles == unit.tiles), fused[0])

"""What a plan costs whose units run on several cores, at every fidelity.

A core runs a unit as the models of one core have it. What cores do to each other: a tile waits for
the tiles that it reads from, and all traffic outside goes through one port. Roofline shares the
work evenly and lets nothing wait; analytical has every tile wait for those that it reads from,
the port is busy for the sum of what units need of it; event simulates tiles and their traffic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from arch.spec import Architecture
from mapper.core_tasks import Task, check_homes, placement_of, tasks_of
from mapper.cost import ComponentMetrics, Metrics, OperatorMetrics
from mapper.order import reordered
from mapper.plan import Plan
from mapper.workload.graph import Workload
from sim.engines import DEFAULT
from sim.models import EVENT
from sim.multicore import CoreRun, CoreUnit, simulate_cores
from sim.plan import evaluate_plan
from sim.timeline import EVERYTHING, Slice, View


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCore:
    """A unit on its core: from when to when, its tiles, and how long it stood in the queue of
    the memory that all share (0 where that was not simulated)."""

    name: str
    core: int
    tiles: int
    span_ps: tuple[int, int]
    busy_ps: int
    waited_ps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CoresRun:
    """Metrics of the whole and where its units are. ``shared_ps`` is how long the shared memory's
    port is busy in all; ``simulated`` has the tiles, at event fidelity. Spans of a roofline are
    those of the analytical model, which is as close as it gets to when anything happens."""

    metrics: Metrics
    units: tuple[OnCore, ...]
    cores: int
    shared_ps: int
    simulated: CoreRun | None = None

    def busy_ps(self, core: int) -> int:
        return sum(unit.busy_ps for unit in self.units if unit.core == core)


def evaluate_on_cores(
    fidelity: str,
    workload: Workload,
    architecture: Architecture,
    plan: Plan,
    cores: Sequence[int],
    engine: str = DEFAULT,
) -> CoresRun:
    """``cores[i]`` runs unit ``i`` of the plan. ``InfeasibleError`` if something does not fit."""
    check_homes(workload, plan, cores)
    plan = replace(plan, cores=tuple(cores))
    found = evaluate_plan("analytical", workload, architecture, plan)
    tasks = core_tasks(workload, architecture, plan, found)
    outer = architecture.memories[0].name
    shared_ps = found.components[outer].busy_ps
    placement = placement_of(tasks, tuple(cores), shared_ps)
    spans, simulated, waited = placement.spans_ps, None, (0,) * len(tasks)
    latency_ps = placement.latency_ps
    if fidelity != "analytical":
        found = evaluate_plan(fidelity, workload, architecture, plan, engine=engine)
    busy = [operator.latency_ps for operator in found.operators]
    if fidelity == EVENT:
        simulated = simulate_cores(core_units(tasks, cores, found, outer))
        spans, waited = simulated.spans_ps, simulated.waited_ps
        latency_ps = max(simulated.latency_ps, latency_ps)
    elif fidelity != "analytical":
        evenly = -(-sum(busy) // architecture.cores)
        latency_ps = max(evenly, found.components[outer].busy_ps)
    units = tuple(
        OnCore(name=t.name, core=core, tiles=t.tiles, span_ps=span, busy_ps=each, waited_ps=wait)
        for t, core, span, each, wait in zip(tasks, cores, spans, busy, waited, strict=True)
    )
    return CoresRun(
        metrics=_spread(found, architecture, latency_ps),
        units=units,
        cores=architecture.cores,
        shared_ps=found.components[outer].busy_ps,
        simulated=simulated,
    )


def core_tasks(
    workload: Workload, architecture: Architecture, plan: Plan, found: Metrics
) -> tuple[Task, ...]:
    """Units of a plan as tasks, by the analytical model."""
    ordered = reordered(workload, plan.order)
    return tasks_of(ordered, architecture, plan, [o.latency_ps for o in found.operators])


def core_units(
    tasks: Sequence[Task], cores: Sequence[int], measured: Metrics, outer: str
) -> list[CoreUnit]:
    """What is simulated of each unit: its own event simulation, cut into its tiles."""
    units = []
    for task, core, operator in zip(tasks, cores, measured.operators, strict=True):
        tile_ps = -(-operator.latency_ps // task.tiles)
        port_ps = -(-operator.components[outer].busy_ps // task.tiles)
        units.append(
            CoreUnit(
                core=core,
                tiles=task.tiles,
                tile_ps=max(tile_ps, task.tile_ps),
                port_ps=min(port_ps, tile_ps),
                needs=task.needs,
            )
        )
    return units


def _spread(found: Metrics, architecture: Architecture, latency_ps: int) -> Metrics:
    """Metrics of units one after the other as those of all cores together, which take so long."""
    energy_pj = found.dynamic_energy_pj + architecture.leakage_w * latency_ps
    parts = {
        name: _of_cores(part, name, found, architecture, latency_ps)
        for name, part in found.components.items()
    }
    return replace(
        found,
        latency_ps=latency_ps,
        energy_pj=energy_pj,
        power_w=energy_pj / latency_ps if latency_ps else 0.0,
        components=parts,
        operators=tuple(_of_one(each, architecture) for each in found.operators),
    )


def _of_cores(
    part: ComponentMetrics, name: str, found: Metrics, architecture: Architecture, latency_ps: int
) -> ComponentMetrics:
    """Bytes and energy of all cores, busy time of one on average; the outermost memory is one."""
    component = architecture.component(name)
    leakage_w = component.leakage_w * component.count
    many = 1 if name == architecture.memories[0].name else architecture.cores
    used_ps = part.utilization * found.latency_ps
    return replace(
        part,
        busy_ps=-(-part.busy_ps // many),
        energy_pj=part.energy_pj + leakage_w * (latency_ps - found.latency_ps),
        utilization=used_ps / (many * latency_ps) if latency_ps else 0.0,
    )


def _of_one(each: OperatorMetrics, architecture: Architecture) -> OperatorMetrics:
    """With the leakage of the core that runs it; the gap of the whole is not that of its units."""
    others = architecture.leakage_w * (1 - 1 / architecture.cores)
    return replace(each, energy_pj=each.energy_pj - others * each.latency_ps, gap={})


def cores_timeline(run: CoresRun, outer: str, view: View = EVERYTHING) -> Iterator[Slice]:
    """Units and tiles on the track of their core, and who has the shared port when."""
    assert run.simulated is not None
    simulated = run.simulated
    for number, unit in enumerate(run.units):
        start, end = unit.span_ps
        pieces = [
            _slice("operators", f"core {unit.core}", unit, (start, end), busy_ps=unit.busy_ps)
        ]
        for tile, span in enumerate(simulated.tiles_ps[number]):
            track = f"tiles of core {unit.core}"
            pieces.append(_slice("processes", track, unit, span, tile=tile + 1))
        pieces += [_slice("ports", outer, unit, span) for span in simulated.port_ps[number]]
        yield from (piece for piece in pieces if view.shows(piece))


def _slice(
    group: str,
    track: str,
    unit: OnCore,
    span_ps: tuple[int, int],
    *,
    busy_ps: int | None = None,
    tile: int = 0,
) -> Slice:
    start, end = span_ps
    duration = end - start
    return Slice(
        group=group,
        track=track,
        name=unit.name,
        start_ps=start,
        duration_ps=duration,
        busy_ps=min(duration, duration if busy_ps is None else math.ceil(busy_ps)),
        tile=tile,
    )

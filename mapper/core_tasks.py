"""Units of a plan as tasks on cores: when their tiles end, and what no assignment can beat.

Every core has all on-chip memories to itself; tensors pass between cores through the outermost
memory. A unit runs its tiles one after the other in equal times, a core its units in the plan's
order. A tile starts when the tiles of other units that it reads from are done. All cores share
the outermost memory's port, so a run takes at least as long as that port is busy in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arch.spec import Architecture
from mapper.plan import Plan, operators_of
from mapper.unit_tiles import unit_tiles
from mapper.workload.graph import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A unit of a plan: its tiles' time, and what each tile waits for.

    ``needs`` has per earlier unit that it reads from, for each tile, the number of the last
    tile of that unit that must be done.
    """

    name: str
    tiles: int
    tile_ps: int
    needs: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def busy_ps(self) -> int:
        return self.tiles * self.tile_ps


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """``cores[i]`` runs unit ``i``. ``shared_ps`` is how long the shared memory's port is busy;
    ``spans_ps`` are start and end of each unit."""

    cores: tuple[int, ...]
    spans_ps: tuple[tuple[int, int], ...]
    shared_ps: int
    latency_ps: int
    lower_bound_ps: int
    nodes: int

    @property
    def optimal(self) -> bool:
        return self.latency_ps == self.lower_bound_ps

    @property
    def gap(self) -> float:
        return self.latency_ps / self.lower_bound_ps - 1 if self.lower_bound_ps else 0.0


def tasks_of(
    workload: Workload, architecture: Architecture, plan: Plan, latencies_ps: Sequence[int]
) -> tuple[Task, ...]:
    """The units of a plan as tasks, given how long each takes on a core. Tensors that stay on a
    core's chip are read there only: units that share one must be on one core."""
    tiles = [unit_tiles(workload, architecture, unit) for unit in plan.units]
    return tuple(
        Task(
            name=" + ".join(operators_of(unit)),
            tiles=mine.count,
            tile_ps=-(-latency // mine.count),
            needs=tuple(
                (before, waits)
                for before in range(number)
                if (waits := mine.waits_for(tiles[before])) is not None
            ),
        )
        for number, (unit, mine, latency) in enumerate(
            zip(plan.units, tiles, latencies_ps, strict=True)
        )
    )


def check_homes(workload: Workload, plan: Plan, cores: Sequence[int]) -> None:
    """``ValueError`` if a tensor that stays on a core's chip is touched by another core."""
    touching: dict[str, set[int]] = {}
    for unit, core in zip(plan.units, cores, strict=True):
        for name in operators_of(unit):
            for access in workload.operator(name).accesses:
                touching.setdefault(access.tensor, set()).add(core)
    for tensor in plan.homes:
        if len(touching[tensor]) > 1:
            raise ValueError(f"{tensor} stays on one core's chip, others cannot read it")


def placement_of(tasks: tuple[Task, ...], cores: tuple[int, ...], shared_ps: int) -> Placement:
    """A given assignment; its bound holds for any assignment of these tasks."""
    spans = spans_of(tasks, max(cores) + 1, cores)
    latency_ps = max(shared_ps, *(end for _, end in spans))
    return Placement(
        cores=cores,
        spans_ps=spans,
        shared_ps=shared_ps,
        latency_ps=latency_ps,
        lower_bound_ps=least_latency(tasks, max(cores) + 1, shared_ps),
        nodes=0,
    )


def least_latency(tasks: tuple[Task, ...], cores: int, shared_ps: int) -> int:
    """Work shared evenly, the longest chain of waits, and the shared port."""
    ends: list[list[int]] = []
    for task in tasks:
        ends.append(ends_of(task, 0, ends))
    chain = max(end[-1] for end in ends)
    return max(chain, -(-sum(task.busy_ps for task in tasks) // cores), shared_ps)


def ends_of(task: Task, free_ps: int, done: list[list[int]]) -> list[int]:
    """When each tile ends, on a core that is free from ``free_ps`` on."""
    ends: list[int] = []
    now = free_ps
    for tile in range(task.tiles):
        for unit, waits in task.needs:
            if waits[tile] >= 0:
                now = max(now, done[unit][waits[tile]])
        now += task.tile_ps
        ends.append(now)
    return ends


def spans_of(
    tasks: tuple[Task, ...], cores: int, assigned: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    free = [0] * cores
    done: list[list[int]] = []
    spans = []
    for task, core in zip(tasks, assigned, strict=True):
        done.append(ends_of(task, free[core], done))
        free[core] = done[-1][-1]
        spans.append((done[-1][0] - task.tile_ps, done[-1][-1]))
    return tuple(spans)

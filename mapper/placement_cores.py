"""Which core runs which unit of a plan, with units of different cores overlapping tile by tile.

Every core has all on-chip memories to itself; tensors pass between cores through the outermost
memory. A unit runs its tiles one after the other in equal times, a core its units in the plan's
order. A tile starts when the tiles of other units that it reads from are done. All cores share
the outermost memory's port, so a run takes at least as long as that port is busy in all.

The best assignment is found by branch and bound over the units in order, each on one of the
cores (cores that have done nothing are alike). With few units the search is exhausted and the
assignment optimal in this model; otherwise it stops and a lower bound says how far it can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arch.spec import Architecture
from mapper.plan import Plan, operators_of
from mapper.unit_tiles import unit_tiles
from mapper.workload.graph import Workload

#: Partial assignments looked at before the search stops.
MOST_NODES = 20_000


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
    """The units of a plan as tasks, given how long each takes on a core."""
    if plan.homes:
        raise ValueError("tensors that stay on one core's chip cannot be read by another")
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


def best_placement(
    tasks: tuple[Task, ...], cores: int, shared_ps: int, most_nodes: int = MOST_NODES
) -> Placement:
    """The assignment of least latency; ``lower_bound_ps`` holds for all assignments."""
    search = _Search(tasks, cores, shared_ps, most_nodes)
    search.descend([], [0] * cores, [])
    floor = search.latency_ps if search.exhausted else _bound(tasks, cores, shared_ps)
    return Placement(
        cores=search.best,
        spans_ps=_spans(tasks, cores, search.best),
        shared_ps=shared_ps,
        latency_ps=search.latency_ps,
        lower_bound_ps=floor,
        nodes=search.nodes,
    )


def placement_of(tasks: tuple[Task, ...], cores: tuple[int, ...], shared_ps: int) -> Placement:
    """A given assignment; its bound holds for any assignment of these tasks."""
    spans = _spans(tasks, max(cores) + 1, cores)
    latency_ps = max(shared_ps, *(end for _, end in spans))
    return Placement(
        cores=cores,
        spans_ps=spans,
        shared_ps=shared_ps,
        latency_ps=latency_ps,
        lower_bound_ps=_bound(tasks, max(cores) + 1, shared_ps),
        nodes=0,
    )


def _bound(tasks: tuple[Task, ...], cores: int, shared_ps: int) -> int:
    """Work shared evenly, the longest chain of waits, and the shared port."""
    ends: list[list[int]] = []
    for task in tasks:
        ends.append(_ends(task, 0, ends))
    chain = max(end[-1] for end in ends)
    return max(chain, -(-sum(task.busy_ps for task in tasks) // cores), shared_ps)


def _ends(task: Task, free_ps: int, done: list[list[int]]) -> list[int]:
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


def _spans(
    tasks: tuple[Task, ...], cores: int, assigned: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    free = [0] * cores
    done: list[list[int]] = []
    spans = []
    for task, core in zip(tasks, assigned, strict=True):
        done.append(_ends(task, free[core], done))
        free[core] = done[-1][-1]
        spans.append((done[-1][0] - task.tile_ps, done[-1][-1]))
    return tuple(spans)


class _Search:
    """Depth-first, earliest end first: the first way down is a list schedule."""

    def __init__(
        self, tasks: tuple[Task, ...], cores: int, shared_ps: int, most_nodes: int
    ) -> None:
        self.tasks = tasks
        self.shared_ps = shared_ps
        self.most_nodes = most_nodes
        self.left = [0] * (len(tasks) + 1)
        for number in range(len(tasks) - 1, -1, -1):
            self.left[number] = self.left[number + 1] + tasks[number].busy_ps
        self.cores = cores
        # Everything on one core is always possible.
        self.best: tuple[int, ...] = (0,) * len(tasks)
        self.latency_ps = max(self.left[0], shared_ps)
        self.nodes = 0

    @property
    def exhausted(self) -> bool:
        return self.nodes <= self.most_nodes

    def descend(self, assigned: list[int], free: list[int], done: list[list[int]]) -> None:
        number = len(assigned)
        if number == len(self.tasks):
            latency = max(*free, self.shared_ps)
            if latency < self.latency_ps:
                self.latency_ps, self.best = latency, tuple(assigned)
            return
        for core, ends in self._choices(number, free, done):
            self.nodes += 1
            if self.nodes > self.most_nodes:
                return
            after = [*free]
            after[core] = ends[-1]
            if self._hopeless(number + 1, after):
                continue
            self.descend([*assigned, core], after, [*done, ends])

    def _choices(
        self, number: int, free: list[int], done: list[list[int]]
    ) -> list[tuple[int, list[int]]]:
        """Cores for the next unit; of those that are free at the same time, one will do."""
        different = {time: core for core, time in reversed(list(enumerate(free)))}
        found = [(c, _ends(self.tasks[number], time, done)) for time, c in different.items()]
        return sorted(found, key=lambda choice: (choice[1][-1], choice[0]))

    def _hopeless(self, number: int, free: list[int]) -> bool:
        evenly = -(-(sum(free) + self.left[number]) // self.cores)
        return max(*free, evenly, self.shared_ps) >= self.latency_ps

"""Which core runs which unit of a plan, with units of different cores overlapping tile by tile.

The best assignment is found by branch and bound over the units in order, each on one of the
cores (cores that have done nothing are alike). With few units the search is exhausted and the
assignment optimal in this model; otherwise it stops and a lower bound says how far it can be.
"""

from __future__ import annotations

from mapper.core_tasks import Placement, Task, ends_of, least_latency, spans_of

#: Partial assignments looked at before the search stops.
MOST_NODES = 20_000


def best_placement(
    tasks: tuple[Task, ...], cores: int, shared_ps: int, most_nodes: int = MOST_NODES
) -> Placement:
    """The assignment of least latency; ``lower_bound_ps`` holds for all assignments."""
    search = _Search(tasks, cores, shared_ps, most_nodes)
    search.descend([], [0] * cores, [])
    floor = search.latency_ps if search.exhausted else least_latency(tasks, cores, shared_ps)
    return Placement(
        cores=search.best,
        spans_ps=spans_of(tasks, cores, search.best),
        shared_ps=shared_ps,
        latency_ps=search.latency_ps,
        lower_bound_ps=floor,
        nodes=search.nodes,
    )


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
        found = [(c, ends_of(self.tasks[number], time, done)) for time, c in different.items()]
        return sorted(found, key=lambda choice: (choice[1][-1], choice[0]))

    def _hopeless(self, number: int, free: list[int]) -> bool:
        evenly = -(-(sum(free) + self.left[number]) // self.cores)
        return max(*free, evenly, self.shared_ps) >= self.latency_ps

"""The cheapest schedule within a limit of memory: constraint programming over intervals.

As in Moccasin (Bartan et al., "Moccasin: Efficient Tensor Rematerialization for Neural Networks",
ICML 2023): a node has up to ``most`` intervals in which its result is kept. Nodes are first
computed in the order of the graph; stage ``k`` ends with the first computation of node ``k`` and
may compute any earlier node again before, in order, each once. An interval is two integers, its
start among those events and its end: integer variables grow with the number of nodes. What is kept
at any time is one cumulative constraint, what is read must lie in some interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arch.errors import InputError, Problem
from mapper.cost import InfeasibleError
from mapper.memory_plan.rematerialize import (
    Run,
    StepGraph,
    best_checkpoints,
    keep_everything,
    repeats,
    run,
)

#: How often a node may be computed.
MOST = 3
#: The solver's own measure of effort (about seconds), which does not depend on the machine's load.
EFFORT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A schedule, and the cost that none within the limit can be below."""

    run: Run
    lower_bound: int

    @property
    def optimal(self) -> bool:
        return self.run.cost == self.lower_bound

    @property
    def gap(self) -> float:
        """How much of the cost is not proven to be necessary."""
        return (self.run.cost - self.lower_bound) / self.run.cost


def cheapest(
    graph: StepGraph, limit_bytes: int, most: int = MOST, effort: float = EFFORT
) -> Found | None:
    """The best schedule found within the limit; ``None`` if the effort did not suffice for any.

    ``InfeasibleError`` if there is none (with at most ``most`` computations of a node).
    """
    if limit_bytes < graph.least_bytes:
        raise _infeasible(limit_bytes, graph.least_bytes, "a single operator with what it reads")
    plain = keep_everything(graph)
    if plain.peak_bytes <= limit_bytes:
        return Found(run=plain, lower_bound=graph.cost)
    program = _Program(graph, limit_bytes, most)
    start = best_checkpoints(graph, limit_bytes)
    if start is not None:
        program.hint(start.sequence)
    return program.solve(start, effort)


def _infeasible(limit_bytes: int, needed: int, detail: str) -> InfeasibleError:
    return InfeasibleError(
        limit="bytes of memory", needed=needed, allowed=limit_bytes, detail=detail
    )


@dataclass(frozen=True, slots=True)
class _Interval:
    """``active`` is ``None`` for the first one, which always is."""

    start: Any
    end: Any
    active: Any


class _Program:
    def __init__(self, graph: StepGraph, limit_bytes: int, most: int) -> None:
        self.graph = graph
        self.limit_bytes = limit_bytes
        self.model = _solver().CpModel()
        self.horizon = self._event(len(graph.nodes), 0)
        worth = set(repeats(graph))
        self.intervals = [
            self._of_node(n, most if n in worth else 1) for n in range(len(graph.nodes))
        ]
        self._reads()
        self._memory()
        terms = [
            (graph.nodes[n].cost, interval.active)
            for n, found in enumerate(self.intervals)
            for interval in found[1:]
        ]
        self.unit = math.gcd(*(cost for cost, _ in terms)) or 1
        self.model.minimize(sum(cost // self.unit * active for cost, active in terms))

    @staticmethod
    def _event(stage: int, number: int) -> int:
        """The position of a node's computation in a stage."""
        return stage * (stage + 1) // 2 + number

    def _of_node(self, number: int, most: int) -> list[_Interval]:
        node, model = self.graph.nodes[number], self.model
        first = self._event(number, number)
        until = model.new_int_var(self.horizon if node.kept else first, self.horizon, "")
        found = [_Interval(first, until, None)]
        stages = range(number + 1, min(node.latest, len(self.graph.nodes) - 1) + 1)
        domain = _solver().Domain.from_values([self._event(k, number) for k in stages])
        for _ in range(most - 1):
            start = model.new_int_var_from_domain(domain, "")
            end = model.new_int_var(first, self.horizon, "")
            active = model.new_bool_var("")
            before = found[-1]
            model.add(end >= start)
            model.add(start > before.end).only_enforce_if(active)
            if before.active is not None:
                model.add_implication(active, before.active)
            # Without a computation the numbers mean nothing: one value only.
            model.add(start == domain.min()).only_enforce_if(active.negated())
            model.add(end == start).only_enforce_if(active.negated())
            found.append(_Interval(start, end, active))
        return found

    def _reads(self) -> None:
        """Each computation finds everything that it reads in an interval."""
        model = self.model
        for number, node in enumerate(self.graph.nodes):
            for reading in self.intervals[number]:
                for source in node.needs:
                    chosen = []
                    for kept in self.intervals[source]:
                        uses = model.new_bool_var("")
                        model.add(kept.start < reading.start).only_enforce_if(uses)
                        model.add(kept.end >= reading.start).only_enforce_if(uses)
                        if kept.active is not None:
                            model.add_implication(uses, kept.active)
                        chosen.append(uses)
                    wanted = [] if reading.active is None else [reading.active]
                    model.add_bool_or(chosen).only_enforce_if(wanted)

    def _memory(self) -> None:
        boxes, sizes = [], []
        for node, found in zip(self.graph.nodes, self.intervals, strict=True):
            for interval in found if node.size_bytes else ():
                size = self.model.new_int_var(1, self.horizon + 1, "")
                self.model.add(size == interval.end - interval.start + 1)
                bounds = interval.start, size, interval.end + 1
                if interval.active is None:
                    boxes.append(self.model.new_interval_var(*bounds, ""))
                else:
                    boxes.append(self.model.new_optional_interval_var(*bounds, interval.active, ""))
                sizes.append(node.size_bytes)
        unit = math.gcd(*sizes)
        room = (self.limit_bytes - self.graph.base_bytes) // unit
        self.model.add_cumulative(boxes, [size // unit for size in sizes], room)

    def hint(self, sequence: Sequence[int]) -> None:
        """A schedule to start from."""
        stage, count = -1, [0] * len(self.graph.nodes)
        firsts = {n: i for i, n in reversed(list(enumerate(sequence)))}
        for step, number in enumerate(sequence):
            if firsts[number] == step:
                stage = number
                count[number] = 1
                continue
            if count[number] < len(self.intervals[number]):
                interval = self.intervals[number][count[number]]
                count[number] += 1
                self.model.add_hint(interval.active, True)
                self.model.add_hint(interval.start, self._event(stage + 1, number))
        for number, found in enumerate(self.intervals):
            for interval in found[max(1, count[number]) :]:
                self.model.add_hint(interval.active, False)

    def solve(self, start: Run | None, effort: float) -> Found | None:
        cp_model = _solver()
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.max_deterministic_time = effort
        status = solver.solve(self.model)
        if status == cp_model.INFEASIBLE:
            detail = "no order of computations fits"
            raise _infeasible(self.limit_bytes, self.limit_bytes + 1, detail)
        bound = self.graph.cost + self.unit * max(0, math.ceil(solver.best_objective_bound - 1e-6))
        runs = [start] if start is not None else []
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            runs.append(run(self.graph, self._sequence(solver)))
        best = min(runs, key=lambda r: (r.cost, r.peak_bytes), default=None)
        return None if best is None else Found(run=best, lower_bound=min(bound, best.cost))

    def _sequence(self, solver: Any) -> list[int]:
        computed = [
            (solver.value(interval.start), number)
            for number, found in enumerate(self.intervals)
            for interval in found
            if interval.active is None or solver.value(interval.active)
        ]
        return [number for _, number in sorted(computed)]


def _solver() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        message = "optimal recomputation needs ortools: pip install 'tilewright[recompute]'"
        raise InputError(Problem(message)) from error
    return cp_model

"""In which order to run operators so that the fewest bytes are live at once.

A tensor lives from the operator that first writes it to the last one that touches it; an input
from the beginning, an output to the end. Weights are always there and count for nothing here.

An order is a path through the sets of finished operators. Where there are few such sets (chains
and branches have about as many as operators) the best path is found exactly; otherwise only the
most promising sets of each size are followed, and the result carries a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mapper.placement import tensor_bits
from mapper.workload.graph import Workload

#: Sets of finished operators followed per size; more than any shipped network has.
BEAM = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """``peak_bytes`` is the most that lives at once in this order; no order has less than
    ``lower_bound_bytes``."""

    operators: tuple[str, ...]
    peak_bytes: int
    lower_bound_bytes: int

    @property
    def optimal(self) -> bool:
        return self.peak_bytes == self.lower_bound_bytes


@dataclass(frozen=True, slots=True)
class _Graph:
    """Operators by number; sets of them as bits of an integer."""

    needs: tuple[int, ...]
    touches: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    users: tuple[int, ...]
    from_start: frozenset[int]
    to_end: frozenset[int]

    def live_while(self, done: int, operator: int) -> int:
        """Bytes that live while ``operator`` runs after those in ``done``."""
        now = done | 1 << operator
        return sum(
            size
            for tensor, size in enumerate(self.sizes)
            if self._begun(tensor, now) and self._needed(tensor, done)
        )

    def _begun(self, tensor: int, now: int) -> bool:
        return tensor in self.from_start or bool(self.users[tensor] & now)

    def _needed(self, tensor: int, done: int) -> bool:
        return tensor in self.to_end or bool(self.users[tensor] & ~done)


def best_order(workload: Workload, beam: int = BEAM) -> Order:
    """The order of fewest live bytes; the given one where no other is better."""
    graph = _graph(workload)
    count = len(graph.needs)
    given = tuple(range(count))
    given_peak = peak(graph, given)
    # per set of finished operators: the peak on the best way to it, and that way
    frontier: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    dropped = given_peak
    for _ in range(count):
        frontier = _extended(graph, frontier)
        if len(frontier) > beam:
            ranked = sorted(frontier.items(), key=lambda item: item[1])
            dropped = min(dropped, ranked[beam][1][0])
            frontier = dict(ranked[:beam])
    ((best_peak, best),) = frontier.values()
    if best_peak >= given_peak:
        best_peak, best = given_peak, given
    # Whatever was dropped has at least the peak that it had reached when it was.
    floor = max(_largest_alone(graph), min(best_peak, dropped))
    return Order(
        operators=tuple(workload.operators[number].name for number in best),
        peak_bytes=best_peak,
        lower_bound_bytes=floor,
    )


def reordered(workload: Workload, order: Iterable[str]) -> Workload:
    """The workload with its operators in that order."""
    by_name = {operator.name: operator for operator in workload.operators}
    return Workload(
        name=workload.name,
        tensors=workload.tensors,
        operators=tuple(by_name[name] for name in order),
        folded=workload.folded,
    )


def peak_bytes(workload: Workload) -> int:
    """The most that lives at once in the workload's own order."""
    return peak(_graph(workload), tuple(range(len(workload.operators))))


def peak(graph: _Graph, order: tuple[int, ...]) -> int:
    done = most = 0
    for operator in order:
        most = max(most, graph.live_while(done, operator))
        done |= 1 << operator
    return most


def _extended(
    graph: _Graph, frontier: dict[int, tuple[int, tuple[int, ...]]]
) -> dict[int, tuple[int, tuple[int, ...]]]:
    longer: dict[int, tuple[int, tuple[int, ...]]] = {}
    for done, (so_far, order) in frontier.items():
        for operator, needs in enumerate(graph.needs):
            if done >> operator & 1 or needs & ~done:
                continue
            reached = max(so_far, graph.live_while(done, operator))
            after = done | 1 << operator
            if after not in longer or reached < longer[after][0]:
                longer[after] = (reached, (*order, operator))
    return longer


def _largest_alone(graph: _Graph) -> int:
    return max(sum(graph.sizes[tensor] for tensor in touched) for touched in graph.touches)


def _graph(workload: Workload) -> _Graph:
    tensors = [t for t in workload.tensors if t.kind != "weight"]
    number = {tensor.name: at for at, tensor in enumerate(tensors)}
    touches = [
        tuple(dict.fromkeys(number[a.tensor] for a in o.accesses if a.tensor in number))
        for o in workload.operators
    ]
    users = [0] * len(tensors)
    for at, touched in enumerate(touches):
        for tensor in touched:
            users[tensor] |= 1 << at
    return _Graph(
        needs=tuple(_needs(workload)),
        touches=tuple(touches),
        sizes=tuple(int(-(-tensor_bits(tensor) // 8)) for tensor in tensors),
        users=tuple(users),
        from_start=frozenset(number[t.name] for t in tensors if t.kind == "input"),
        to_end=frozenset(number[t.name] for t in tensors if t.kind == "output"),
    )


def _needs(workload: Workload) -> list[int]:
    """Which operators must be finished before each: those that write what it reads, and for an
    update in place those that read or wrote the tensor before."""
    needs = []
    touched: dict[str, int] = {}
    written: dict[str, int] = {}
    for at, operator in enumerate(workload.operators):
        before = 0
        for access in operator.inputs:
            before |= written.get(access.tensor, 0)
        target = operator.output.tensor
        if workload.tensor(target).kind == "input":
            before |= touched.get(target, 0)
        needs.append(before)
        for access in operator.accesses:
            touched[access.tensor] = touched.get(access.tensor, 0) | 1 << at
        written[target] = written.get(target, 0) | 1 << at
    return needs

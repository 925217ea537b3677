"""Orders of layers in which the fewest bytes are live at once: the exact search.

An order is a path through the sets of finished layers; its peak is the most that lives while some
layer runs. The search follows the paths of least peak first (a shortest path with a maximum
instead of a sum), so the first complete one is optimal, and if it stops early the least peak that
it still had to follow is a bound for every order. Two rules keep it small: a set that was reached
before needs no second look, and a layer that raises neither the peak of its path nor what is live
after it may run at once (whatever comes later only frees more by it).

``units`` are layers that run one after the other without a break, so the same search orders layers
or whole parts of a network.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mapper.memory_plan.layers import FeatureMap, Layer
from mapper.memory_plan.lifetimes import maps_of

#: Layers (by number) that run without a break.
Unit = tuple[int, ...]
#: Sets of finished layers that are looked at before the search gives up.
MOST_SETS = 20_000


@dataclass(frozen=True, slots=True)
class Graph:
    """Layers and maps by number; sets of layers are bits of an integer.

    ``needs[layer]``: what must be finished before. ``touches[layer]``: maps read or written.
    ``users[map]``: layers that touch it, ``makers[map]``: those that write it. ``given``: maps that
    live from the start, ``kept``: to the end. ``shared[layer]``: maps read, and how many bytes of
    the output may lie over each if it dies with this layer.
    """

    needs: tuple[int, ...]
    touches: tuple[tuple[int, ...], ...]
    users: tuple[int, ...]
    makers: tuple[int, ...]
    sizes: tuple[int, ...]
    given: frozenset[int]
    kept: frozenset[int]
    shared: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def everything(self) -> int:
        return (1 << len(self.needs)) - 1


@dataclass(frozen=True, slots=True)
class Schedule:
    """Layers by number; no order has a lower peak than ``bound_bytes``."""

    order: Unit
    peak_bytes: int
    bound_bytes: int


#: Bytes of a layer's output that may lie over one of its inputs.
Shared = Callable[[Layer, FeatureMap], int]


def nothing_shared(layer: Layer, source: FeatureMap) -> int:
    """Everything that is live lies apart."""
    return 0


def graph_of(layers: Sequence[Layer], shared: Shared = nothing_shared) -> Graph:
    """Who needs whom; layers that write parts of one map may run in any order."""
    maps = list(maps_of(layers).values())
    number = {m.name: i for i, m in enumerate(maps)}
    touches = [
        tuple(dict.fromkeys(number[m.name] for m in (*layer.inputs, layer.output)))
        for layer in layers
    ]
    users, makers = [0] * len(maps), [0] * len(maps)
    for at, layer in enumerate(layers):
        makers[number[layer.output.name]] |= 1 << at
        for touched in touches[at]:
            users[touched] |= 1 << at
    read = {number[i.name] for layer in layers for i in layer.inputs}
    return Graph(
        needs=tuple(_needs(layers, makers, number)),
        touches=tuple(touches),
        users=tuple(users),
        makers=tuple(makers),
        sizes=tuple(m.size_bytes for m in maps),
        given=frozenset(i for i in range(len(maps)) if not makers[i]),
        kept=frozenset(i for i, m in enumerate(maps) if m.is_result or i not in read),
        shared=tuple(
            tuple((number[i.name], shared(layer, i)) for i in layer.inputs) for layer in layers
        ),
    )


def _needs(layers: Sequence[Layer], makers: Sequence[int], number: dict[str, int]) -> Iterator[int]:
    for layer in layers:
        before = 0
        for source in layer.inputs:
            before |= makers[number[source.name]]
        yield before


def live_bytes(graph: Graph, done: int) -> int:
    """What is live between two layers."""
    return sum(
        size
        for tensor, size in enumerate(graph.sizes)
        if (tensor in graph.given or graph.makers[tensor] & done)
        and (tensor in graph.kept or graph.users[tensor] & ~done)
    )


def run(graph: Graph, done: int, live: int, unit: Unit) -> tuple[int, int, int]:
    """The peak while a unit runs, what is finished then, and what is live."""
    peak = live
    for layer in unit:
        after = done | 1 << layer
        for tensor in graph.touches[layer]:
            begins = graph.makers[tensor] & after and not graph.makers[tensor] & done
            if begins and tensor not in graph.given:
                live += graph.sizes[tensor]
        dying = [
            tensor
            for tensor in graph.touches[layer]
            if not graph.users[tensor] & ~after and tensor not in graph.kept
        ]
        over = (size for tensor, size in graph.shared[layer] if tensor in dying)
        peak = max(peak, live - max(over, default=0))
        live -= sum(graph.sizes[tensor] for tensor in dying)
        done = after
    return peak, done, live


def peak_bytes(graph: Graph, order: Unit) -> int:
    """The most that is live at once."""
    return run(graph, 0, live_bytes(graph, 0), order)[0]


def floor_bytes(graph: Graph) -> int:
    """What every order needs: the maps that some layer touches."""
    return max(
        sum(graph.sizes[t] for t in touched) - max((size for _, size in shared), default=0)
        for touched, shared in zip(graph.touches, graph.shared, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Path:
    """Units in the order in which they ran, linked from the last one."""

    unit: Unit
    before: _Path | None

    def order(self) -> Unit:
        parts: list[Unit] = []
        path: _Path | None = self
        while path is not None:
            parts.append(path.unit)
            path = path.before
        return tuple(layer for unit in reversed(parts) for layer in unit)


def best_order(
    layers: Sequence[Layer], start: Unit | None = None, shared: Shared = nothing_shared
) -> Schedule:
    """The order with the least peak: ``start`` (else the order given) if none is better."""
    graph = graph_of(layers, shared)
    given = tuple(range(len(layers)))
    order = start or given
    first = Schedule(order, peak_bytes(graph, order), floor_bytes(graph))
    return least_peak(graph, [(layer,) for layer in given], first)


def least_peak(
    graph: Graph, units: Sequence[Unit], start: Schedule, most_sets: int = MOST_SETS
) -> Schedule:
    """The best order of the units, or ``start`` if none is better (or found in time)."""
    masks = [sum(1 << layer for layer in unit) for unit in units]
    needs = [_needed(graph, unit, mask) for unit, mask in zip(units, masks, strict=True)]
    ready = _Ready(graph, tuple(units), tuple(masks), tuple(needs))
    live = live_bytes(graph, 0)
    least = max(live, floor_bytes(graph))
    queue: list[tuple[int, int, int, int, int, _Path | None]] = [(least, 0, 0, 0, live, None)]
    seen: set[int] = set()
    count = 0
    while queue:
        peak, _, _, done, live, path = heapq.heappop(queue)
        if peak >= start.peak_bytes:
            break
        if done == graph.everything and path is not None:
            return Schedule(path.order(), peak, peak)
        if done in seen:
            continue
        if len(seen) >= most_sets:
            bound = max(peak, start.bound_bytes)
            return Schedule(start.order, start.peak_bytes, bound)
        seen.add(done)
        for number, reached in ready.steps(done, live, peak):
            count += 1
            if reached.done not in seen:
                key = (reached.peak, -reached.done.bit_count(), count)
                queue_path = _Path(units[number], path)
                heapq.heappush(queue, (*key, reached.done, reached.live, queue_path))
    return Schedule(start.order, start.peak_bytes, start.peak_bytes)


def _needed(graph: Graph, unit: Unit, mask: int) -> int:
    needed = 0
    for layer in unit:
        needed |= graph.needs[layer]
    return needed & ~mask


@dataclass(frozen=True, slots=True)
class _Reached:
    peak: int
    done: int
    live: int


@dataclass(frozen=True, slots=True)
class _Ready:
    """Which units can run after a set of finished layers, and where they lead."""

    graph: Graph
    units: tuple[Unit, ...]
    masks: tuple[int, ...]
    needs: tuple[int, ...]

    def steps(self, done: int, live: int, peak: int) -> list[tuple[int, _Reached]]:
        """All of them, or the one that can only help."""
        found = []
        for number, (unit, mask, needs) in enumerate(
            zip(self.units, self.masks, self.needs, strict=True)
        ):
            if done & mask or needs & ~done:
                continue
            highest, after, left = run(self.graph, done, live, unit)
            reached = _Reached(max(peak, highest), after, left)
            if reached.peak == peak and left <= live:
                return [(number, reached)]
            found.append((number, reached))
        return found

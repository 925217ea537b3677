"""Hierarchical scheduling of irregular networks, as HMCOS does (Wang et al., DAC 2022).

Searching the orders of all layers takes too long where many branches run side by side. So layers
in a row become a sequence, and what lies between a layer that everything inside comes from (its
dominator) and one that everything inside leads to (its post-dominator) becomes a group, innermost
first. A part is scheduled by itself, in reverse post-order unless another order has a lower peak,
and then runs without a break. Only the parts that take part in the peak are then replaced by
what they consist of, and so on while that lowers the peak or leaves something to replace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mapper.memory_plan.layers import Layer
from mapper.memory_plan.schedule import (
    Graph,
    Schedule,
    Unit,
    floor_bytes,
    graph_of,
    least_peak,
    live_bytes,
    peak_bytes,
    run,
)

#: Sets of finished parts that are looked at for each level of the hierarchy.
MOST_SETS = 2_000


@dataclass(frozen=True, slots=True)
class Part:
    """Layers that run without a break in ``order``; ``children`` are its parts (none: a layer)."""

    order: Unit
    children: tuple[Part, ...] = ()

    @property
    def mask(self) -> int:
        return sum(1 << layer for layer in self.order)


def schedule(layers: Sequence[Layer]) -> Schedule:
    """The best order that the hierarchy leads to; the order given if none is better."""
    graph = graph_of(layers)
    given = tuple(range(len(layers)))
    best = Schedule(given, peak_bytes(graph, given), floor_bytes(graph))
    parts = hierarchy(graph)
    while True:
        best = _better(best, _scheduled(graph, parts, best))
        split = list(_split(parts, _at_peak(graph, best.order)))
        if best.peak_bytes == best.bound_bytes or len(split) == len(parts):
            return best
        parts = split


def hierarchy(graph: Graph) -> list[Part]:
    """Sequences, then groups around them until nothing lies inside of anything."""
    parts = _joined_rows(graph, [Part((layer,)) for layer in range(len(graph.needs))])
    while True:
        grouped = _innermost_group(graph, parts)
        if grouped is None:
            return parts
        parts = _joined_rows(graph, grouped)


def reverse_post_order(graph: Graph, parts: Sequence[Part]) -> Unit:
    """Depth first from the end: what a part needs runs just before it."""
    found = _depth_first(_Edges.of(graph, parts).before)
    return tuple(layer for part in found for layer in parts[part].order)


def _better(a: Schedule, b: Schedule) -> Schedule:
    return b if b.peak_bytes < a.peak_bytes else a


def _scheduled(graph: Graph, parts: Sequence[Part], best: Schedule) -> Schedule:
    """Reverse post-order if its peak is the least there can be, else the search over parts."""
    simple = reverse_post_order(graph, parts)
    first = _better(best, Schedule(simple, peak_bytes(graph, simple), best.bound_bytes))
    if first.peak_bytes == best.bound_bytes:
        return first
    found = least_peak(graph, [part.order for part in parts], first, MOST_SETS)
    return Schedule(found.order, found.peak_bytes, best.bound_bytes)


def _at_peak(graph: Graph, order: Unit) -> int:
    """Layers that run at the peak, or made or will read what is live then."""
    done, live, most, found = 0, live_bytes(graph, 0), -1, 0
    for layer in order:
        peak, after, left = run(graph, done, live, (layer,))
        if peak > most:
            most, found = peak, 1 << layer
            for tensor, users in enumerate(graph.users):
                begun = tensor in graph.given or graph.makers[tensor] & after
                if begun and users & ~done:
                    found |= users
        done, live = after, left
    return found


def _split(parts: Sequence[Part], touched: int) -> Iterator[Part]:
    for part in parts:
        if part.children and part.mask & touched:
            yield from part.children
        else:
            yield part


@dataclass(frozen=True, slots=True)
class _Edges:
    """Parts before and after each part, by number; what is needed from elsewhere is left out."""

    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, graph: Graph, parts: Sequence[Part]) -> _Edges:
        part_of = {layer: i for i, part in enumerate(parts) for layer in part.order}
        before: list[dict[int, None]] = [{} for _ in parts]
        after: list[dict[int, None]] = [{} for _ in parts]
        for i, part in enumerate(parts):
            for layer in part.order:
                for needed in _layers_in(graph.needs[layer]):
                    earlier = part_of.get(needed, i)
                    if earlier != i:
                        before[i][earlier] = None
                        after[earlier][i] = None
        return cls(tuple(map(tuple, before)), tuple(map(tuple, after)))


def _layers_in(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _joined_rows(graph: Graph, parts: Sequence[Part]) -> list[Part]:
    """Parts in a row (one follows only the other, which leads only to it) become one."""
    edges = _Edges.of(graph, parts)
    follows = {
        i: edges.after[i][0]
        for i in range(len(parts))
        if len(edges.after[i]) == 1 and len(edges.before[edges.after[i][0]]) == 1
    }
    found = []
    for i, part in enumerate(parts):
        if i in follows.values():
            continue
        row = [part]
        while i in follows:
            i = follows[i]
            row.append(parts[i])
        found.append(_row(row) if len(row) > 1 else part)
    return found


def _row(row: Sequence[Part]) -> Part:
    return Part(tuple(layer for part in row for layer in part.order), tuple(row))


def _innermost_group(graph: Graph, parts: Sequence[Part]) -> list[Part] | None:
    """Replaces the smallest set of parts between a dominator and its post-dominator by one."""
    edges = _Edges.of(graph, parts)
    above = _dominators(edges.before)
    below = _dominators(edges.after)
    inside = (_between(first, above, below) for first in range(len(parts)))
    fitting = [mask for mask in inside if 1 < mask.bit_count() < len(parts) - 2]
    if not fitting:
        return None
    smallest = set(_layers_in(min(fitting, key=int.bit_count)))
    members = [part for i, part in enumerate(parts) if i in smallest]
    kept = [part for i, part in enumerate(parts) if i not in smallest]
    return [*kept, Part(_inner_order(graph, members), tuple(members))]


def _between(first: int, above: Sequence[int], below: Sequence[int]) -> int:
    """Parts that come from ``first`` and lead to the nearest part to which everything leads."""
    ends = below[first] & ~(1 << first)
    if not ends:
        return 0
    last = max(_layers_in(ends), key=lambda part: below[part].bit_count())
    return sum(
        1 << part
        for part in range(len(above))
        if part not in (first, last) and above[part] >> first & 1 and below[part] >> last & 1
    )


def _inner_order(graph: Graph, members: Sequence[Part]) -> Unit:
    own = sum(part.mask for part in members)
    edges = _Edges.of(graph, members)
    simple = tuple(layer for part in _depth_first(edges.before) for layer in members[part].order)
    alone = _cut_out(graph, own)
    number = {layer: i for i, layer in enumerate(_layers_in(own))}
    back = {i: layer for layer, i in number.items()}
    units = [tuple(number[layer] for layer in part.order) for part in members]
    start_order = tuple(number[layer] for layer in simple)
    start = Schedule(start_order, peak_bytes(alone, start_order), floor_bytes(alone))
    found = least_peak(alone, units, start, MOST_SETS)
    return tuple(back[layer] for layer in found.order)


def _cut_out(graph: Graph, own: int) -> Graph:
    """Some layers as a graph of their own: what they read from outside is given, what others
    read is kept."""
    layers = list(_layers_in(own))
    number = {layer: i for i, layer in enumerate(layers)}
    maps = sorted({t for layer in layers for t in graph.touches[layer]})
    at = {tensor: i for i, tensor in enumerate(maps)}

    def mask(of: int) -> int:
        return sum(1 << number[layer] for layer in _layers_in(of & own))

    outside = [t for t in maps if t in graph.given or graph.makers[t] & ~own]
    read_later = [t for t in maps if t in graph.kept or graph.users[t] & ~own]
    return Graph(
        needs=tuple(mask(graph.needs[layer]) for layer in layers),
        touches=tuple(tuple(at[t] for t in graph.touches[layer]) for layer in layers),
        users=tuple(mask(graph.users[t]) for t in maps),
        makers=tuple(mask(graph.makers[t]) for t in maps),
        sizes=tuple(graph.sizes[t] for t in maps),
        given=frozenset(at[t] for t in outside),
        kept=frozenset(at[t] for t in read_later),
        shared=tuple(tuple((at[t], size) for t, size in graph.shared[x]) for x in layers),
    )


def _depth_first(before: Sequence[Sequence[int]]) -> list[int]:
    """Every part after those before it, each as late as the walk from the end allows."""
    followed = {part for earlier in before for part in earlier}
    ends = [part for part in range(len(before)) if part not in followed]
    found: dict[int, None] = {}
    waiting = list(reversed(ends))
    while waiting:
        part = waiting[-1]
        missing = [earlier for earlier in before[part] if earlier not in found]
        if missing:
            waiting.extend(reversed(missing))
        else:
            found[waiting.pop()] = None
    return list(found)


def _dominators(before: Sequence[Sequence[int]]) -> list[int]:
    """Per part, those (as bits, itself included) on every way to it."""
    found = [0] * len(before)
    for part in _depth_first(before):
        common = -1
        for earlier in before[part]:
            common &= found[earlier]
        found[part] = (0 if common == -1 else common) | 1 << part
    return found

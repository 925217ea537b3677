"""Where the tensors of a branching block lie in a ring, by branch and bound.

Addresses are on a line; what is live at the same step must fit into a window of the ring's
size, then it also fits into the ring. An output may lie ``offset`` bytes before an input that
dies with this step (see ``offsets``), or behind it; any other two live tensors lie apart.

For every two tensors that are live together one lies lower, and then starts at least so many
bytes before the other. Given who lies lower everywhere, the least window is a longest path. Whether
some window suffices is decided by branching on pairs; what the longest paths rule out is never
branched on. Bisection over the window then finds the least one, from the least that any order of
the tensors of one step needs. Work is limited by a count, not by a clock, so the same block always
gets the same answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mapper.memory_plan.arena import first_fit
from mapper.memory_plan.layers import FeatureMap, Layer
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.offsets import overlap
from mapper.memory_plan.plan import Buffer, Placement

#: Decisions between two tensors that are tried for one size of the window, and in all.
MOST_NODES, MOST_NODES_IN_ALL = 400, 1_600
#: No path between two tensors.
NONE = -(1 << 60)

Matrix = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A placement of a block; ``lower_bound_bytes`` is equal to ``span_bytes`` if optimal."""

    span_bytes: int
    lower_bound_bytes: int
    placements: tuple[Placement, ...]


def place(layers: Sequence[Layer], segment_bytes: Mapping[str, int]) -> Ring:
    """The least ring for layers that run one after the other, in this order.

    ``segment_bytes`` is the unit of each layer's kernel, by layer name.
    """
    buffers = lifetimes(layers)
    before = _distances(layers, buffers, segment_bytes)
    pairs = [
        (a, b)
        for a, b in itertools.permutations(sorted(buffers), 2)
        if buffers[a].meets(buffers[b])
    ]
    starts_before = {pair: before.get(pair, buffers[pair[0]].size_bytes) for pair in pairs}
    return _solve(buffers, starts_before)


def linear(layers: Sequence[Layer]) -> Ring:
    """A greedy arena in which everything that is live lies apart."""
    buffers = lifetimes(layers)
    starts = _linear(buffers)
    span = _window(buffers, starts)
    return Ring(span_bytes=span, lower_bound_bytes=span, placements=_placements(buffers, starts))


def _placements(buffers: Mapping[str, Buffer], starts: Mapping[str, int]) -> tuple[Placement, ...]:
    return tuple(Placement(buffer=buffers[name], offset_bytes=at) for name, at in starts.items())


def _distances(
    layers: Sequence[Layer], buffers: Mapping[str, Buffer], segment_bytes: Mapping[str, int]
) -> dict[tuple[str, str], int]:
    """(output, input) -> bytes by which the output starts before an input that it overwrites."""
    found = {}
    for step, layer in enumerate(layers):
        for source in layer.inputs:
            if buffers[source.name].last == step and layer.may_overwrite(source):
                pair = overlap(seen_from(layer, source), segment_bytes[layer.name])
                found[layer.output.name, source.name] = pair.offset * pair.segment_bytes
    return found


def seen_from(layer: Layer, source: FeatureMap) -> Layer:
    """The layer with ``source`` as its first input."""
    others = tuple(i for i in layer.inputs if i.name != source.name)
    return replace(layer, inputs=(source, *others))


def _solve(buffers: Mapping[str, Buffer], starts_before: Mapping[tuple[str, str], int]) -> Ring:
    """The least window by bisection, the smallest that can be first.

    ``low`` is the least that is not known to be too small; a window that is given up on counts as
    too small for the search, and not for the bound.
    """
    pairs = _Pairs.of(buffers, starts_before)
    starts = _linear(buffers)
    span = _window(buffers, starts)
    low = bound = min(_least_of_a_step(buffers, starts_before), span)
    size, nodes = low, 0
    while low < span and nodes < MOST_NODES_IN_ALL:
        found = pairs.within(size)
        nodes += found.nodes
        if found.starts is not None:
            starts = dict(zip(buffers, found.starts, strict=True))
            span = _window(buffers, starts)
        else:
            bound = size + 1 if found.proven and bound == low else bound
            low = size + 1
        size = (low + span) // 2
    return Ring(
        span_bytes=span,
        lower_bound_bytes=min(bound, span),
        placements=_placements(buffers, starts),
    )


def _window(buffers: Mapping[str, Buffer], starts: Mapping[str, int]) -> int:
    """The most addresses between tensors that are live together."""
    ends = {name: starts[name] + buffer.size_bytes for name, buffer in buffers.items()}
    return max(
        ends[a] - starts[b] for a in buffers for b in buffers if buffers[a].meets(buffers[b])
    )


def _linear(buffers: Mapping[str, Buffer]) -> dict[str, int]:
    """A greedy arena without overlaps, for when the solver has no time to find better."""
    placed = first_fit(sorted(buffers.values(), key=lambda b: -b.size_bytes))
    starts = {p.buffer.name: p.offset_bytes for p in placed}
    return {name: starts[name] for name in buffers}


def _least_of_a_step(
    buffers: Mapping[str, Buffer], starts_before: Mapping[tuple[str, str], int]
) -> int:
    """What is live at some step in a row, where one tensor at most lies over the next one.

    Only a step's output overlaps anything, and only one input can be its next neighbour.
    """
    least = max(buffer.size_bytes for buffer in buffers.values())
    for step in {buffer.first for buffer in buffers.values()}:
        live = {name: b for name, b in buffers.items() if b.first <= step <= b.last}
        saved = (
            live[a].size_bytes - distance
            for (a, b), distance in starts_before.items()
            if a in live and b in live
        )
        least = max(least, sum(b.size_bytes for b in live.values()) - max(saved, default=0))
    return least


@dataclass(frozen=True, slots=True)
class _Answer:
    """Addresses within a window; without them, whether it is proven that there are none."""

    starts: tuple[int, ...] | None
    proven: bool
    nodes: int


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Tensors by number. ``before[a, b]``: bytes from the start of ``a`` to that of ``b`` if
    ``a`` is the lower one; ``together`` where both are live at some step."""

    sizes: Matrix
    before: Matrix
    together: NDArray[np.bool_]

    @classmethod
    def of(
        cls, buffers: Mapping[str, Buffer], starts_before: Mapping[tuple[str, str], int]
    ) -> _Pairs:
        number = {name: i for i, name in enumerate(buffers)}
        before = np.full((len(number), len(number)), NONE, np.int64)
        for (a, b), distance in starts_before.items():
            before[number[a], number[b]] = distance
        sizes = np.array([b.size_bytes for b in buffers.values()], np.int64)
        return cls(sizes, before, before > NONE)

    def within(self, window: int) -> _Answer:
        """Addresses of which all that are live together span at most ``window`` bytes."""
        paths = np.full_like(self.before, NONE)
        np.fill_diagonal(paths, 0)
        paths[self.together] = np.broadcast_to(self.sizes[:, None] - window, paths.shape)[
            self.together
        ]
        for middle in range(len(self.sizes)):
            paths = np.maximum(paths, paths[:, middle, None] + paths[None, middle])
        if (np.diagonal(paths) > 0).any():
            return _Answer(None, proven=True, nodes=0)
        waiting = [(paths, np.triu(self.together))]
        for node in range(MOST_NODES):
            if not waiting:
                return _Answer(None, proven=True, nodes=node)
            propagated = self._propagated(*waiting.pop())
            if propagated is None:
                continue
            paths, open_pairs = propagated
            if not open_pairs.any():
                return _Answer(tuple(int(x) for x in paths.max(axis=0)), proven=True, nodes=node)
            waiting += self._branches(paths, open_pairs)
        return _Answer(None, proven=False, nodes=MOST_NODES)

    def _propagated(
        self, paths: Matrix, open_pairs: NDArray[np.bool_]
    ) -> tuple[Matrix, NDArray[np.bool_]] | None:
        """Pairs of which only one order is left are put into it; ``None`` if one has none."""
        while True:
            impossible = self.before + paths.T > 0
            if (impossible & impossible.T & open_pairs).any():
                return None
            forced = open_pairs & (impossible | impossible.T)
            if not forced.any():
                return paths, open_pairs
            a, b = (int(x) for x in np.argwhere(forced)[0])
            low, high = (b, a) if impossible[a, b] else (a, b)
            paths = self._with(paths, low, high)
            open_pairs = open_pairs.copy()
            open_pairs[a, b] = False

    def _with(self, paths: Matrix, low: int, high: int) -> Matrix:
        """Longest paths when one tensor starts so far before another."""
        through = paths[:, low, None] + self.before[low, high] + paths[None, high]
        return np.asarray(np.maximum(paths, np.maximum(through, NONE)))

    def _branches(
        self, paths: Matrix, open_pairs: NDArray[np.bool_]
    ) -> list[tuple[Matrix, NDArray[np.bool_]]]:
        """Both orders of the pair with the least room; the roomier one is taken up first."""
        room = -(self.before + paths.T)
        least = np.where(open_pairs, np.minimum(room, room.T), np.iinfo(np.int64).max)
        a, b = (int(x) for x in np.unravel_index(int(least.argmin()), least.shape))
        rest = open_pairs.copy()
        rest[a, b] = False
        orders = [(a, b), (b, a)] if room[a, b] < room[b, a] else [(b, a), (a, b)]
        return [(self._with(paths, low, high), rest) for low, high in orders]

"""Where the tensors of a branching block lie in a ring, by an integer program.

Addresses are on a line; what is live at the same step must fit into a window of the ring's
size, then it also fits into the ring. An output may lie ``offset`` bytes before an input that
dies with this step (see ``offsets``), or behind it; any other two live tensors lie apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mapper.memory_plan.arena import first_fit
from mapper.memory_plan.layers import FeatureMap, Layer
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.offsets import overlap
from mapper.memory_plan.plan import Buffer, Placement

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

#: Seconds after which the best placement so far is taken, with its bound.
TIME_LIMIT_S = 2.0


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


def _distances(
    layers: Sequence[Layer], buffers: Mapping[str, Buffer], segment_bytes: Mapping[str, int]
) -> dict[tuple[str, str], int]:
    """(output, input) -> bytes by which the output starts before an input that it overwrites."""
    found = {}
    for step, layer in enumerate(layers):
        for source in layer.inputs:
            if buffers[source.name].last == step and _once(layer, source):
                pair = overlap(_seen_from(layer, source), segment_bytes[layer.name])
                found[layer.output.name, source.name] = pair.offset * pair.segment_bytes
    return found


def _once(layer: Layer, source: FeatureMap) -> bool:
    return sum(other.name == source.name for other in layer.inputs) == 1


def _seen_from(layer: Layer, source: FeatureMap) -> Layer:
    """The layer with ``source`` as its first input."""
    others = tuple(i for i in layer.inputs if i.name != source.name)
    return replace(layer, inputs=(source, *others))


def _solve(buffers: Mapping[str, Buffer], starts_before: Mapping[tuple[str, str], int]) -> Ring:
    """An address per tensor, which of each live pair comes first, and the size of the ring."""
    from scipy.optimize import Bounds, milp

    program = _Program.of(buffers, starts_before)
    found = milp(
        program.objective,
        integrality=program.is_integer,
        bounds=Bounds(program.low, program.high),
        constraints=program.constraints,
        options={"time_limit": TIME_LIMIT_S},
    )
    starts = _linear(buffers)
    if found.x is not None:
        better = {name: round(found.x[i]) for i, name in enumerate(buffers)}
        starts = min(starts, better, key=lambda s: _window(buffers, s))
    span = _window(buffers, starts)
    bound = span if found.status == 0 else _bound(buffers, found.mip_dual_bound)
    return Ring(
        span_bytes=span,
        lower_bound_bytes=bound,
        placements=tuple(
            Placement(buffer=buffers[name], offset_bytes=start) for name, start in starts.items()
        ),
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


def _bound(buffers: Mapping[str, Buffer], of_solver: float | None) -> int:
    largest = max(buffer.size_bytes for buffer in buffers.values())
    return max(largest, math.ceil((of_solver or 0.0) - 1e-6))


@dataclass(frozen=True, slots=True)
class _Program:
    """Columns: addresses, one choice per unordered pair (1: the first lies higher), the size."""

    objective: NDArray[np.float64]
    is_integer: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    constraints: LinearConstraint | tuple[()]

    @classmethod
    def of(
        cls, buffers: Mapping[str, Buffer], starts_before: Mapping[tuple[str, str], int]
    ) -> _Program:
        from scipy.optimize import LinearConstraint

        pairs = [pair for pair in starts_before if pair[0] < pair[1]]
        reach = float(sum(b.size_bytes for b in buffers.values()))
        names = {name: i for i, name in enumerate(buffers)}
        size = len(names) + len(pairs)
        rows: list[NDArray[np.float64]] = []
        upper: list[float] = []
        for number, (a, b) in enumerate(pairs):
            for lower, higher, sign in ((a, b, -1.0), (b, a, 1.0)):
                apart = np.zeros(size + 1)
                apart[names[lower]], apart[names[higher]] = 1, -1
                apart[len(names) + number] = 2 * reach * sign
                rows.append(apart)
                upper.append((2 * reach if sign > 0 else 0.0) - starts_before[lower, higher])
                within = np.zeros(size + 1)
                within[names[higher]], within[names[lower]], within[size] = 1, -1, -1
                rows.append(within)
                upper.append(-float(buffers[higher].size_bytes))
        chosen = [0.0] * len(names) + [1.0] * len(pairs)
        largest = float(max(b.size_bytes for b in buffers.values()))
        return cls(
            objective=np.array([0.0] * size + [1.0]),
            is_integer=np.array([int(x) for x in chosen] + [0]),
            low=np.array([0.0] * size + [largest]),
            high=np.array([x or reach for x in chosen] + [reach]),
            constraints=LinearConstraint(np.array(rows), -np.inf, np.array(upper)) if rows else (),
        )

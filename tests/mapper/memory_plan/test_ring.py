"""Does branch and bound place the tensors of a block as an integer program does?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from mapper.memory_plan.layers import FeatureMap, Layer
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.plan import Buffer
from mapper.memory_plan.ring import _distances, place
from tests.mapper.memory_plan.networks import layer


def block(rng: np.random.Generator, count: int) -> list[Layer]:
    """Layers that each read one or two of the last four maps."""
    maps = [FeatureMap(name="in", height=2, width=3, channels=int(rng.integers(1, 5)))]
    found = []
    for number in range(count):
        channels = int(rng.integers(1, 7))
        first = maps[-int(rng.integers(1, min(4, len(maps)) + 1))]
        second = [m for m in maps if m.channels == first.channels and m is not first]
        if second and rng.random() < 0.4:
            one = layer(f"l{number}", "elementwise", (first, second[-1]))
        else:
            one = layer(f"l{number}", "conv2d", (first,), channels)
        found.append(one)
        maps.append(one.output)
    return found


def least_by_integer_program(
    buffers: Mapping[str, Buffer], starts_before: Mapping[tuple[str, str], int]
) -> int:
    """Columns: addresses, one choice per pair (1: the first lies higher), the window."""
    pairs = [pair for pair in starts_before if pair[0] < pair[1]]
    names = {name: i for i, name in enumerate(buffers)}
    reach = 2.0 * sum(b.size_bytes for b in buffers.values())
    size = len(names) + len(pairs)
    rows, upper = [], []
    for number, (a, b) in enumerate(pairs):
        for lower, higher, sign in ((a, b, -1.0), (b, a, 1.0)):
            apart, within = np.zeros(size + 1), np.zeros(size + 1)
            apart[names[lower]], apart[names[higher]] = 1, -1
            apart[len(names) + number] = reach * sign
            upper.append((reach if sign > 0 else 0.0) - starts_before[lower, higher])
            within[names[higher]], within[names[lower]], within[size] = 1, -1, -1
            upper.append(-float(buffers[higher].size_bytes))
            rows += [apart, within]
    largest = float(max(b.size_bytes for b in buffers.values()))
    found = milp(
        np.array([0.0] * size + [1.0]),
        integrality=np.array([0] * len(names) + [1] * len(pairs) + [0]),
        bounds=Bounds(
            np.array([0.0] * size + [largest]),
            np.array([reach] * len(names) + [1.0] * len(pairs) + [reach]),
        ),
        constraints=LinearConstraint(np.array(rows), -np.inf, np.array(upper)),
    )
    return round(found.fun)


@pytest.mark.parametrize("seed", range(25))
def test_the_least_ring_of_random_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layers = block(rng, int(rng.integers(3, 7)))
    units = {one.name: 1 for one in layers}
    ring = place(layers, units)
    buffers = lifetimes(layers)
    before = _distances(layers, buffers, units)
    apart = {
        (a, b): before.get((a, b), buffers[a].size_bytes)
        for a, b in itertools.permutations(buffers, 2)
        if buffers[a].meets(buffers[b])
    }
    assert ring.span_bytes == ring.lower_bound_bytes
    assert ring.span_bytes == least_by_integer_program(buffers, apart)

"""Are orders optimal, and does the hierarchy find them?"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.order_search import layer
from mapper.memory_plan import hmcos
from mapper.memory_plan.layers import FeatureMap, Layer
from mapper.memory_plan.schedule import (
    Graph,
    Unit,
    best_order,
    graph_of,
    least_peak,
    live_bytes,
    peak_bytes,
    run,
)


def random_network(rng: np.random.Generator, count: int) -> list[Layer]:
    """Chains, branches and joins of random sizes; loose ends are joined in the end."""
    maps = [_map("in", rng)]
    found: list[Layer] = []
    for number in range(count):
        recent = maps[-6:]
        how_many = 1 if rng.random() < 0.5 else int(rng.integers(1, 4))
        chosen = {int(i) for i in rng.integers(0, len(recent), how_many)}
        sources = [maps[-1]] if rng.random() < 0.4 else [recent[i] for i in sorted(chosen)]
        found.append(layer(f"l{number}", sources, _map(f"m{number}", rng)))
        maps.append(found[-1].output)
    read = {i.name for one in found for i in one.inputs}
    loose = [m for m in maps if m.name not in read]
    if len(loose) > 1:
        found.append(layer("join", loose, _map("out", rng)))
    return found


def _map(name: str, rng: np.random.Generator) -> FeatureMap:
    return FeatureMap(name=name, height=1, width=1, channels=int(rng.integers(1, 64)))


def least_of_all_orders(graph: Graph) -> int:
    """By every set of finished layers, the least peak on the way to it."""
    reached = {0: live_bytes(graph, 0)}
    for _ in graph.needs:
        longer: dict[int, int] = {}
        for done, peak in reached.items():
            for one, needs in enumerate(graph.needs):
                if not done >> one & 1 and not needs & ~done:
                    highest, after, _ = run(graph, done, live_bytes(graph, done), (one,))
                    longer[after] = min(longer.get(after, 1 << 60), max(peak, highest))
        reached = longer
    return reached[graph.everything]


def is_order(graph: Graph, order: Unit) -> bool:
    done = 0
    for one in order:
        if graph.needs[one] & ~done:
            return False
        done |= 1 << one
    return done == graph.everything and len(order) == len(graph.needs)


@pytest.mark.parametrize("seed", range(40))
def test_small_networks_against_all_orders(seed: int) -> None:
    """The exact search always; the hierarchy has some freedom less, and misses one of these."""
    rng = np.random.default_rng(seed)
    layers = random_network(rng, int(rng.integers(5, 12)))
    graph = graph_of(layers)
    least = least_of_all_orders(graph)
    exact, found = best_order(layers), hmcos.schedule(layers)
    assert exact.peak_bytes == exact.bound_bytes == peak_bytes(graph, exact.order) == least
    assert is_order(graph, exact.order)
    assert is_order(graph, found.order)
    assert least <= found.peak_bytes == peak_bytes(graph, found.order) <= 1.15 * least


def test_the_hierarchy_is_optimal_nearly_always() -> None:
    best = 0
    for seed in range(60):
        rng = np.random.default_rng(1000 + seed)
        layers = random_network(rng, int(rng.integers(5, 14)))
        best += hmcos.schedule(layers).peak_bytes == best_order(layers).peak_bytes
    assert best >= 57


def test_a_search_that_stops_early_still_knows_a_bound() -> None:
    layers = random_network(np.random.default_rng(3), 60)
    graph = graph_of(layers)
    exact = best_order(layers, hmcos.schedule(layers).order)
    start = hmcos.Schedule(tuple(range(len(layers))), 1 << 40, 0)
    stopped = least_peak(graph, [(i,) for i in range(len(layers))], start, most_sets=3)
    assert stopped.order == start.order
    assert 0 < stopped.bound_bytes <= exact.peak_bytes


def test_what_touches_the_peak_is_split_until_it_helps() -> None:
    """Two branches from one input: a small branch first, though it was written last."""
    given, wide, narrow, out = (
        FeatureMap(name=name, height=1, width=1, channels=size)
        for name, size in (("in", 10), ("wide", 90), ("narrow", 1), ("out", 4))
    )
    peak = FeatureMap(name="peak", height=1, width=1, channels=95)
    layers = [
        layer("a", [given], wide),
        layer("b", [given], peak),
        layer("c", [peak], narrow),
        layer("d", [wide, narrow], out),
    ]
    graph = graph_of(layers)
    assert peak_bytes(graph, (0, 1, 2, 3)) == 195
    assert hmcos.schedule(layers).peak_bytes == 106

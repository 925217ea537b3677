"""Orders of irregular networks: as given, by the hierarchy (HMCOS), and the exact search.

    OMP_NUM_THREADS=1 python -m benchmarks.order_search

Networks are drawn at random, with a seed: stages wired by the Watts-Strogatz model (RandWire, Xie
et al., ICCV 2019: 32 nodes, 4 neighbours, rewired with 0.75), and cells in which every node adds
up two earlier ones and the cell joins its nodes (as NASNet's and DARTS's cells do). Peak of live
bytes, a bound for every order, and CPU seconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from mapper.memory_plan import hmcos
from mapper.memory_plan.layers import FeatureMap, Layer, Window
from mapper.memory_plan.schedule import best_order, graph_of, peak_bytes

SIDE, CHANNELS = 32, 16


def layer(name: str, inputs: Sequence[FeatureMap], output: FeatureMap) -> Layer:
    """One whose kernel does not matter: only what it reads and writes."""
    return Layer(
        name=name,
        kind="other",
        inputs=tuple(inputs),
        output=output,
        rows=Window(),
        columns=Window(),
        macs=0,
        operations=output.size_bytes,
        weight_bytes=0,
    )


def _square(name: str, inputs: Sequence[FeatureMap], channels: int, side: int) -> Layer:
    output = FeatureMap(name=name, height=side, width=side, channels=channels)
    return layer(name, inputs, output)


def rand_wire(rng: np.random.Generator, stages: int, nodes: int = 32) -> list[Layer]:
    """Stages of a rewired ring, edges directed from the lower to the higher node."""
    last = FeatureMap(name="image", height=SIDE, width=SIDE, channels=CHANNELS)
    found: list[Layer] = []
    for stage in range(stages):
        side, channels = SIDE >> stage, CHANNELS << stage
        edges = set()
        for node in range(nodes):
            for hop in (1, 2):
                end = (node + hop) % nodes
                if rng.random() < 0.75:
                    end = int(rng.choice([n for n in range(nodes) if n != node]))
                edges.add((min(node, end), max(node, end)))
        maps: list[FeatureMap] = []
        for node in range(nodes):
            sources = [maps[a] for a, b in sorted(edges) if b == node] or [last]
            found.append(_square(f"s{stage}n{node}", sources, channels, side))
            maps.append(found[-1].output)
        ends = [maps[n] for n in range(nodes) if not any(a == n for a, _ in edges)]
        found.append(_square(f"s{stage}out", ends, channels, side))
        last = found[-1].output
    return found


def cells(rng: np.random.Generator, count: int, nodes: int = 5) -> list[Layer]:
    """Each node adds two operations of two layers each; a cell sees the two cells before it."""
    image = FeatureMap(name="image", height=SIDE, width=SIDE, channels=CHANNELS)
    found: list[Layer] = []
    before = [image, image]
    for cell in range(count):
        side = max(4, SIDE >> (3 * cell // count))
        channels = CHANNELS << (3 * cell // count)
        states = list(dict.fromkeys(before))
        for node in range(nodes):
            parts = []
            for number, source in enumerate(rng.choice(len(states), 2, replace=len(states) < 2)):
                name = f"c{cell}n{node}o{number}"
                found.append(_square(f"{name}a", [states[int(source)]], channels, side))
                found.append(_square(f"{name}b", [found[-1].output], channels, side))
                parts.append(found[-1].output)
            found.append(_square(f"c{cell}n{node}", parts, channels, side))
            states.append(found[-1].output)
        found.append(_square(f"c{cell}", states[-nodes:], channels * nodes, side))
        before = [before[1], found[-1].output]
    return found


def main() -> None:
    networks = {
        **{f"RandWire, {n} stages": rand_wire(np.random.default_rng(n), n) for n in (1, 2, 3)},
        **{f"{n} cells": cells(np.random.default_rng(n), n) for n in (3, 8, 20)},
    }
    columns = (
        "network",
        "layers",
        "given B",
        "hierarchy B",
        "CPU s",
        "exact B",
        "bound B",
        "CPU s",
    )
    table = Table(*columns)
    for name, layers in networks.items():
        start = time.process_time()
        found = hmcos.schedule(layers)
        middle = time.process_time()
        exact = best_order(layers, found.order)
        end = time.process_time()
        given = peak_bytes(graph_of(layers), tuple(range(len(layers))))
        table.add_row(
            name,
            str(len(layers)),
            f"{given:,}",
            f"{found.peak_bytes:,}",
            f"{middle - start:.2f}",
            f"{exact.peak_bytes:,}",
            f"{exact.bound_bytes:,}",
            f"{end - middle:.2f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

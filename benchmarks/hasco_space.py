"""How many calls of the cost function until a mapping is within 1 % of the best?

On the hardware of HASCO's release (a point of its published grid for each of its intrinsics, the
middle one first, then drawn at random) with layers of the networks it was evaluated on. The best
is the exact search's, proven; searches end when they are within 1 % of it. HASCO's release spends
424 calls of its own cost model on a layer.

    OMP_NUM_THREADS=1 python benchmarks/hasco_space.py
    OMP_NUM_THREADS=1 python benchmarks/hasco_space.py --points 1 --layers 4 --seeds 20
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arch.load import load_architecture
from arch.spec import Architecture
from mapper.hierarchy import Execution, execution
from mapper.search import exact
from mapper.search.candidates import Candidates, Improvement
from mapper.search.coefficients import Coefficients
from mapper.search.exact import OBJECTIVES
from mapper.search.method import BUDGET
from mapper.search.methods import WALKS, explore
from mapper.search.network import same_work
from mapper.search.space import stage_orders
from mapper.workload.load import load_workload
from sim.prices import price

WITHIN = 1.01
NETWORKS = ("resnet50:dtype=int8", "mobilenet_v2:dtype=int8")
#: pku-liang/HASCO at 7a9d285, src/codesign/explorer.py.
SIDES, ANY_SIDE = (8, 16, 32), tuple(range(4, 33))
SCRATCHPADS, ANY_SCRATCHPAD = (128, 256, 512), tuple(range(128, 1025, 4))
LOCALS, ANY_LOCAL = (64, 128, 256), tuple(range(64, 513, 4))
BANKS, BUSES, ANY_BUS = tuple(range(1, 9)), (64, 128), (64, 128, 256)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What one intrinsic's accelerators may have, and how the array follows from x and y."""

    intrinsic: str
    sides: Sequence[int]
    scratchpads: Sequence[int]
    locals: Sequence[int]
    buses: Sequence[int]
    square: bool
    one_column: bool
    dataflows: Sequence[str] = ()

    def point(self, rng: np.random.Generator) -> dict[str, Any]:
        """Overrides of a random accelerator."""
        x = int(rng.choice(self.sides))
        y = x if self.square else int(rng.choice(self.sides))
        banks, local = int(rng.choice(BANKS)), int(rng.choice(self.locals))
        overrides = {
            "array.rows": x * y if self.one_column else y,
            "array.cols": 1 if self.one_column else x,
            "scratchpad.size": f"{int(rng.choice(self.scratchpads))} KiB",
            "scratchpad.read_bandwidth": f"{2 * banks} B/cycle",
            "scratchpad.write_bandwidth": f"{2 * banks} B/cycle",
            "local.size": f"{local * 1024 // (x * y)} B",
            "dram.bandwidth": f"{int(rng.choice(self.buses)) // 8} B/cycle",
        }
        if self.dataflows:
            overrides["array.dataflow"] = str(rng.choice(self.dataflows))
        return overrides


_SMALL: Mapping[str, Any] = {
    "sides": SIDES,
    "scratchpads": SCRATCHPADS,
    "locals": LOCALS,
    "buses": BUSES,
    "square": True,
}
_LARGE: Mapping[str, Any] = {
    "sides": ANY_SIDE,
    "scratchpads": ANY_SCRATCHPAD,
    "locals": ANY_LOCAL,
    "buses": ANY_BUS,
    "square": False,
}
GRIDS = (
    Grid(
        intrinsic="gemm",
        one_column=False,
        dataflows=("output_stationary", "weight_stationary"),
        **_SMALL,
    ),
    Grid(intrinsic="gemv", one_column=True, **_SMALL),
    Grid(intrinsic="dot", one_column=True, **_LARGE),
    Grid(intrinsic="conv", one_column=False, **_LARGE),
)


def hardware(grid: Grid, points: int, rng: np.random.Generator) -> Iterator[Architecture]:
    """The middle of the grid, then random points of it."""
    name = f"hasco_{grid.intrinsic}"
    yield load_architecture(name)
    for _ in range(points - 1):
        yield load_architecture(name, grid.point(rng))


def layers(architecture: Architecture, count: int) -> list[Execution]:
    """Evenly spaced ones of the networks' distinct convolutions (and final products)."""
    distinct = {}
    for spec in NETWORKS:
        network = load_workload(spec)
        for operator in network.operators:
            if operator.operation == "mac" and "G" not in operator.extents:
                distinct.setdefault(same_work(network, operator), (network, operator))
    every = list(distinct.values())
    at = np.linspace(0, len(every) - 1, min(count, len(every))).round().astype(int)
    return [execution(*every[i], architecture) for i in at]


class EndsWithin(Candidates):
    """Has its budget spent as soon as it is within 1 % of the optimum."""

    optimum = 0.0

    def note(self, candidate: Any) -> None:
        super().note(candidate)
        if self.best_value <= WITHIN * self.optimum:
            self.budget = self.calls


@dataclass(frozen=True, kw_only=True)
class Trial:
    """``calls`` to within 1 %, or none."""

    calls: int | None
    first: float
    last: float
    cpu_s: float


def trials(space: EndsWithin, optimum: float, name: str, seeds: int) -> Iterator[Trial]:
    for seed in range(1, seeds + 1):
        fresh = space.again(BUDGET)
        fresh.optimum = optimum
        began = time.process_time()
        explore(fresh, WALKS[name], seed)
        spent = time.process_time() - began
        history: list[Improvement] = fresh.history
        reached = [i.calls for i in history if i.value <= WITHIN * optimum]
        yield Trial(
            calls=reached[0] if reached else None,
            first=history[0].value / optimum,
            last=history[-1].value / optimum,
            cpu_s=spent,
        )


def space_of(run: Execution, architecture: Architecture, objective: str) -> EndsWithin:
    coefficients = Coefficients(
        run=run, leakage_w=architecture.leakage_w, price=price, objective=OBJECTIVES[objective]
    )
    orders = tuple(stage_orders(run))
    return EndsWithin(run, orders, tuple(coefficients.model(order) for order in orders), BUDGET)


def line(label: str, found: Sequence[Trial]) -> str:
    """One row of the table; a search that did not come within 1 % counts as the whole budget."""
    calls = np.array([BUDGET + 1 if t.calls is None else t.calls for t in found])
    median, tenth = np.percentile(calls, 50), np.percentile(calls, 90)
    reached = np.mean([t.calls is not None for t in found])
    at_once = np.mean([t.first <= WITHIN for t in found])
    worst = max(t.last for t in found)
    seconds = np.mean([t.cpu_s for t in found])

    def shown(value: float) -> str:
        return f"{value:7.0f}" if value <= BUDGET else f"  > {BUDGET}"

    return (
        f"{label:22}{len(found):8}{shown(median)}{shown(tenth)}{100 * reached:9.1f} %"
        f"{100 * at_once:9.1f} %{worst:9.3f}{seconds:9.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2, help="accelerators of each intrinsic")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--objective", choices=tuple(OBJECTIVES), default="edp")
    parser.add_argument("--intrinsics", nargs="+", default=[g.intrinsic for g in GRIDS])
    parser.add_argument("--methods", nargs="+", default=["heuristic", "q_learning", "random"])
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    all_found: dict[str, list[Trial]] = {name: [] for name in asked.methods}
    head = f"{'':22}{'searches':>8}{'median':>7}{'90 %':>7}{'within 1 %':>11}{'at once':>11}"
    head += f"{'worst':>9}{'CPU s':>9}"
    rows = []
    for grid in (g for g in GRIDS if g.intrinsic in asked.intrinsics):
        found: dict[str, list[Trial]] = {name: [] for name in asked.methods}
        for architecture in hardware(grid, asked.points, rng):
            for run in layers(architecture, asked.layers):
                best = exact.map_execution(run, architecture.leakage_w, price, asked.objective)
                space = space_of(run, architecture, asked.objective)
                for name in asked.methods:
                    more = list(trials(space, best.objective_value, name, asked.seeds))
                    found[name] += more
                    label = f"{grid.intrinsic} {run.operator.name} {name}"
                    print(line(label, more), flush=True)
        for name in asked.methods:
            rows.append(line(f"{grid.intrinsic} {name}", found[name]))
            all_found[name] += found[name]
    print(f"\n{asked.objective}; calls to within 1 % of the optimum\n{head}")
    print("\n".join(rows))
    print("\n".join(line(f"all {name}", found) for name, found in all_found.items()))


if __name__ == "__main__":
    main()

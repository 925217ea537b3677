"""How many calls of the cost function until a mapping is within 1 % of the best?

On the hardware of HASCO's release (a point of its published grid for each of its intrinsics, the
middle one first, then its corners, then drawn at random) with layers of the networks it was
evaluated on. The best is the exact search's, proven; searches end when they are within 1 % of it.
HASCO's release spends 424 calls of its own cost model on a layer. Every search begins with nothing
known but the lists of tilings, as the exact one does: the CPU seconds of both can be compared.

    OMP_NUM_THREADS=1 python benchmarks/hasco_space.py
    OMP_NUM_THREADS=1 python benchmarks/hasco_space.py --points 1 --layers 4 --seeds 20
"""

from __future__ import annotations

import argparse
import itertools
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
from mapper.search.pricing import Model
from mapper.search.space import StageOrder, stage_orders
from mapper.workload.load import load_workload
from mapper.workload.same_work import same_work
from sim.prices import price

WITHIN = 1.01
POINTS = ("middle", "least", "small_rich", "large_poor", "most")
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

    def corners(self) -> Iterator[dict[str, Any]]:
        """Overrides of small and large arrays with small and large memories and buses."""
        for side in (min(self.sides), max(self.sides)):
            for end in (min, max):
                yield self._overrides(
                    _Choice(
                        x=side,
                        y=side,
                        scratchpad=end(self.scratchpads),
                        local=end(self.locals),
                        banks=end(BANKS),
                        bus=end(self.buses),
                    )
                )

    def point(self, rng: np.random.Generator) -> dict[str, Any]:
        """Overrides of a random accelerator."""
        x = int(rng.choice(self.sides))
        y = x if self.square else int(rng.choice(self.sides))
        banks, local = int(rng.choice(BANKS)), int(rng.choice(self.locals))
        scratchpad, bus = int(rng.choice(self.scratchpads)), int(rng.choice(self.buses))
        chosen = _Choice(x=x, y=y, scratchpad=scratchpad, local=local, banks=banks, bus=bus)
        overrides = self._overrides(chosen)
        if self.dataflows:
            overrides["array.dataflow"] = str(rng.choice(self.dataflows))
        return overrides

    def _overrides(self, chosen: _Choice) -> dict[str, Any]:
        elements = chosen.x * chosen.y
        return {
            "array.rows": elements if self.one_column else chosen.y,
            "array.cols": 1 if self.one_column else chosen.x,
            "scratchpad.size": f"{chosen.scratchpad} KiB",
            "scratchpad.read_bandwidth": f"{2 * chosen.banks} B/cycle",
            "scratchpad.write_bandwidth": f"{2 * chosen.banks} B/cycle",
            "local.size": f"{chosen.local * 1024 // elements} B",
            "dram.bandwidth": f"{chosen.bus // 8} B/cycle",
        }


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """One point: sides of the array, KiB of memories, banks, bits of the bus."""

    x: int
    y: int
    scratchpad: int
    local: int
    banks: int
    bus: int


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


def hardware(grid: Grid, points: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Overrides of the middle of the grid (none), of its corners, then of random points of it."""
    ends = itertools.chain(({},), grid.corners())
    yield from itertools.islice(itertools.chain(ends, iter(lambda: grid.point(rng), None)), points)


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
    """``calls`` to within 1 %, or none; ``exact_s`` is what the proof took."""

    calls: int | None
    first: float
    last: float
    cpu_s: float
    exact_s: float


def trials(case: Case, name: str, seeds: int) -> Iterator[Trial]:
    optimum = case.optimum
    for seed in range(1, seeds + 1):
        fresh = EndsWithin(case.run, case.orders, case.models, BUDGET)
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
            exact_s=case.exact_s,
        )


@dataclass(frozen=True, kw_only=True)
class Case:
    """A layer on a point of a grid."""

    label: str
    intrinsic: str
    run: Execution
    orders: tuple[StageOrder, ...]
    models: tuple[Model, ...]
    optimum: float
    exact_s: float


def case_of(grid: Grid, where: str, run: Execution, leakage_w: float, objective: str) -> Case:
    coefficients = Coefficients(
        run=run, leakage_w=leakage_w, price=price, objective=OBJECTIVES[objective]
    )
    orders = tuple(stage_orders(run))
    for order, dim in itertools.product(orders, run.operator.extents):
        order.tilings(dim)
    began = time.process_time()
    best = exact.map_execution(run, leakage_w, price, objective)
    return Case(
        label=f"{grid.intrinsic} {where} {run.operator.name}",
        intrinsic=grid.intrinsic,
        run=run,
        orders=orders,
        models=tuple(coefficients.model(order) for order in orders),
        optimum=best.objective_value,
        exact_s=time.process_time() - began,
    )


def line(label: str, found: Sequence[Trial]) -> str:
    """One row of the table; a search that did not come within 1 % counts as the whole budget."""
    calls = np.array([BUDGET + 1 if t.calls is None else t.calls for t in found])
    median, tenth = np.percentile(calls, 50), np.percentile(calls, 90)
    reached = np.mean([t.calls is not None for t in found])
    at_once = np.mean([t.first <= WITHIN for t in found])
    worst = max(t.last for t in found)
    seconds, exact_s = np.mean([t.cpu_s for t in found]), np.mean([t.exact_s for t in found])

    def shown(value: float) -> str:
        return f"{value:7.0f}" if value <= BUDGET else f"  > {BUDGET}"

    return (
        f"{label:44}{len(found):8}{shown(median)}{shown(tenth)}{100 * reached:9.1f} %"
        f"{100 * at_once:9.1f} %{worst:9.3f}{seconds:9.2f}{exact_s:9.2f}"
    )


def cases(asked: argparse.Namespace) -> Iterator[Case]:
    rng, is_warm = np.random.default_rng(1), False
    for grid in GRIDS:
        points = list(hardware(grid, asked.points, rng))
        if grid.intrinsic not in asked.intrinsics:
            continue
        for number, overrides in enumerate(points):
            architecture = load_architecture(f"hasco_{grid.intrinsic}", overrides)
            where = POINTS[number] if number < len(POINTS) else f"random{number}"
            for run in layers(architecture, asked.layers):
                of = grid, where, run, architecture.leakage_w, asked.objective
                if not is_warm:
                    compile_all(case_of(*of), asked.methods)
                    is_warm = True
                yield case_of(*of)


def compile_all(case: Case, methods: Sequence[str]) -> None:
    """What is compiled is not what is timed."""
    for name in methods:
        list(trials(case, name, 1))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2, help="accelerators of each intrinsic")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--objective", choices=tuple(OBJECTIVES), default="edp")
    parser.add_argument("--intrinsics", nargs="+", default=[g.intrinsic for g in GRIDS])
    parser.add_argument("--methods", nargs="*", default=["heuristic", "q_learning", "random"])
    return parser.parse_args()


def main() -> None:
    asked = parsed()
    found: dict[tuple[str, str], list[Trial]] = {}
    for case in cases(asked):
        for name in asked.methods:
            more = list(trials(case, name, asked.seeds))
            print(line(f"{case.label} {name}", more), flush=True)
            for key in ((case.intrinsic, name), ("all", name)):
                found.setdefault(key, []).extend(more)
    head = f"{'':44}{'searches':>8}{'median':>7}{'90 %':>7}{'within 1 %':>11}{'at once':>11}"
    print(f"\n{asked.objective}; calls to within 1 % of the optimum")
    print(f"{head}{'worst':>9}{'CPU s':>9}{'exact':>9}")
    for (intrinsic, name), of_all in sorted(found.items(), key=lambda one: one[0][0] == "all"):
        print(line(f"{intrinsic} {name}", of_all))


if __name__ == "__main__":
    main()

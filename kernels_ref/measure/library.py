"""Measure library calls on this machine's GPU: ``python -m kernels_ref.measure.library --out DIR``.

Every result is written as it comes, so that a run that is stopped keeps what it has. Several
processes, each with a GPU of its own, may share the points (``--share 0/2`` and ``--share 1/2``),
and what earlier runs have measured is left out (``--done FILE``).
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import math
import multiprocessing
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernels_ref.library.kinds import draw
from kernels_ref.library.plans import NAMES, planned_points
from kernels_ref.library.points import FLOPS, MOST_FLOPS, LibraryPoint, kind_named
from kernels_ref.measure.kernels import (
    COLUMNS,
    Call,
    Card,
    Steady,
    cold_us,
    elapsed_us,
    recorded_event,
    set_count,
    work_steadily,
)

if TYPE_CHECKING:
    import torch

RAW_COLUMNS = (*COLUMNS, "sm_clock_MHz", "spread", "repeat", "gpu")

#: A graph has calls for this long, at least two, and no more than it has sets of buffers or
#: ``MOST_CALLS``, whichever is larger. Small calls would need very many sets to exceed the L2.
GRAPH_US = 5_000.0
MOST_CALLS = 48
MOST_SETS = 1024

#: Quick measurements: so many chunks of this length, of which the second half counts. Calls that
#: come near the peak get more of them, so that the clock settles.
QUICK_CHUNK_US = 4_000.0
QUICK_CHUNKS = 10
HOT_CHUNKS = 90
#: Such calls do this share of ``MOST_FLOPS`` in a microsecond.
HOT_PER_US = 1.5e-4

#: Brief measurements take the energy over a shorter window than others (0.5 s).
BRIEF_WINDOW_S = 0.16

#: Mixed measurements take the energy of one in so many convolutions.
ENERGY_EVERY = 10

#: A process that shares the GPU gives back what it has allocated when that exceeds this.
MOST_KEPT_BYTES = 12 * 2**30

#: What is held while the GPU is measured: nothing, or a lock of the processes that share the GPU.
Turn = AbstractContextManager[Any]

#: Results that a graph's calls keep, so that a call does not write where the last one did.
KEPT_RESULT_BYTES = 8 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    t_graph_us: float
    t_cold_us: float
    power_w: float
    sm_clock_mhz: int
    spread: float

    @property
    def cells(self) -> list[str]:
        energy_mj = self.power_w * self.t_graph_us / 1000
        values = (self.t_graph_us, self.t_cold_us, energy_mj, self.power_w)
        return [*(f"{value:.5g}" for value in values), str(self.sm_clock_mhz), f"{self.spread:.3g}"]


def calls_of(point: LibraryPoint, l2_bytes: int, generator: Any, device: str) -> list[Any]:
    """Calls of the point, each on buffers of its own."""
    kind = kind_named(point.kind)
    sets = min(MOST_SETS, set_count(kind.size_bytes(point.params, point.dtype), l2_bytes))
    operands = [
        draw(spec, sets, generator, device) for spec in kind.inputs(point.params, point.dtype)
    ]
    return [partial(kind.call, point.params, *tensors) for tensors in zip(*operands, strict=True)]


def capture_kept(calls: Sequence[Call], result_bytes: int) -> tuple[torch.cuda.CUDAGraph, Any]:
    """A graph of all calls and their results, of which as many are kept as there is room for."""
    import torch

    kept: deque[Any] = deque(maxlen=max(2, KEPT_RESULT_BYTES // max(1, result_bytes)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for call in calls:
            kept.append(call())
    return graph, kept


def calls_per_graph(call_us: float, sets: int) -> int:
    return max(2, min(max(MOST_CALLS, sets), math.ceil(GRAPH_US / call_us)))


def _captured(point: LibraryPoint, calls: Sequence[Call]) -> tuple[Any, Any, int]:
    """A graph of some milliseconds of calls, their results, and how many there are."""
    calls[0]()
    calls[1]()
    count = calls_per_graph(elapsed_us(calls[0]), len(calls))
    repeated = [calls[index % len(calls)] for index in range(count)]
    result_bytes = kind_named(point.kind).output(point.params, point.dtype).size_bytes
    return *capture_kept(repeated, result_bytes), count


def _draws_much_power(point: LibraryPoint, call_us: float) -> bool:
    """Whether the clock may have to fall: near the peak of the tensor cores."""
    flops = FLOPS[point.kind](point.params) if point.kind in FLOPS else 0.0
    return flops / call_us > MOST_FLOPS[point.dtype] * HOT_PER_US


def measure_quickly(point: LibraryPoint, card: Card, generator: Any, turn: Turn) -> Timed:
    """The time alone, of some tens of milliseconds; longer where the power limit may matter."""
    calls = calls_of(point, card.l2_bytes, generator, "cuda")
    graph, kept, count = _captured(point, calls)
    with turn:
        timed = _timed_quickly(point, card, graph, count)
    del graph, kept
    return timed


def _timed_quickly(point: LibraryPoint, card: Card, graph: Any, count: int) -> Timed:
    graph.replay()
    first_us = elapsed_us(graph.replay)
    replays = max(1, round(QUICK_CHUNK_US / first_us))
    chunks = HOT_CHUNKS if _draws_much_power(point, first_us / count) else QUICK_CHUNKS
    ends = [recorded_event()]
    for _ in range(chunks):
        for _ in range(replays):
            graph.replay()
        ends.append(recorded_event())
    ends[-2].synchronize()
    clock_mhz = card.sm_clock_mhz()
    ends[-1].synchronize()
    times = [a.elapsed_time(b) * 1000 / (replays * count) for a, b in pairwise(ends)]
    low, median, high = statistics.quantiles(times[len(times) // 2 :], n=4)
    return Timed(
        t_graph_us=median,
        t_cold_us=math.nan,
        power_w=math.nan,
        sm_clock_mhz=clock_mhz,
        spread=(high - low) / median,
    )


def measure_briefly(point: LibraryPoint, card: Card, generator: Any, turn: Turn) -> Timed:
    """Time and energy over a shorter window, no cold calls."""
    calls = calls_of(point, card.l2_bytes, generator, "cuda")
    graph, kept, count = _captured(point, calls)
    with turn:
        steady = work_steadily(graph, count, card, BRIEF_WINDOW_S)
    del graph, kept
    return _timed(steady, math.nan)


def measure(point: LibraryPoint, card: Card, generator: Any, turn: Turn) -> Timed:
    import torch

    kind = kind_named(point.kind)
    calls = calls_of(point, card.l2_bytes, generator, "cuda")
    graph, kept, count = _captured(point, calls)
    result_bytes = kind.output(point.params, point.dtype).size_bytes
    with turn:
        steady = work_steadily(graph, count, card)
    del graph, kept
    single: list[Call] = list(calls[:3])
    if point.kind == "block":  # the host would not keep up with its kernels
        graphs = [capture_kept([call], result_bytes) for call in single[:2]]
        single = [graph.replay for graph, _ in graphs]
        single[0]()
    with turn:
        cold = cold_us(single, card)
        torch.cuda.synchronize()
    return _timed(steady, cold)


def _timed(steady: Steady, cold: float) -> Timed:
    low, median, high = statistics.quantiles(steady.calls_us, n=4)
    return Timed(
        t_graph_us=median,
        t_cold_us=cold,
        power_w=steady.power_w,
        sm_clock_mhz=steady.sm_clock_mhz,
        spread=(high - low) / median,
    )


def try_out(point: LibraryPoint) -> Timed:
    """No GPU: run the call on tensors without data, which checks shapes and types."""
    calls = calls_of(point, 2**26, None, "meta")
    result: Any = calls[0]()
    expected = kind_named(point.kind).output(point.params, point.dtype)
    if result.numel() != expected.elements:
        raise ArithmeticError(f"{point}: result {tuple(result.shape)}, expected {expected}")
    return Timed(t_graph_us=1.0, t_cold_us=1.0, power_w=1.0, sm_clock_mhz=1, spread=0.0)


def key(kind: str, params: str, dtype: str, repeat: str) -> tuple[str, ...]:
    return kind, params, dtype, repeat


def point_key(point: LibraryPoint) -> tuple[str, ...]:
    return key(point.kind, json.dumps(point.params), point.dtype, str(int(point.repeat)))


def remaining(points: Sequence[LibraryPoint], done: Sequence[Path]) -> list[LibraryPoint]:
    seen = set()
    for path in done:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                seen.add(key(row["kind"], row["params"], row["dtype"], row.get("repeat", "0")))
    return [point for point in points if point_key(point) not in seen]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    points: Sequence[LibraryPoint]
    share: int
    seconds: float
    out: Path
    dry: bool
    how: str
    turn: Turn


def measure_mixed(point: LibraryPoint, card: Card, generator: Any, turn: Turn) -> Timed:
    """Briefly, but of most convolutions the time alone: they are many."""
    alone = point.kind == "conv2d" and sum(point.params.values()) % ENERGY_EVERY
    return (measure_quickly if alone else measure_briefly)(point, card, generator, turn)


HOW: dict[str, Callable[[LibraryPoint, Card, Any, Turn], Timed]] = {
    "full": measure,
    "brief": measure_briefly,
    "quick": measure_quickly,
    "mixed": measure_mixed,
}


def _setup(card: Card, seconds: float) -> dict[str, str]:
    """The card's record, with its power while nothing runs."""
    first, began_s = card.energy_mj(), time.perf_counter()
    time.sleep(seconds)
    idle_w = (card.energy_mj() - first) / 1000 / (time.perf_counter() - began_s)
    return {
        **card.setup(),
        "idle power (context open)": f"{idle_w:.1f} W",
        "t_cold_us of no work at all": f"{cold_us([lambda: None], card):.2f}",
    }


def measure_points(task: Task) -> None:
    import torch

    began_s = time.perf_counter()
    task.out.mkdir(parents=True, exist_ok=True)
    card = None if task.dry else Card()
    generator = None if card is None else torch.Generator("cuda").manual_seed(task.share)
    if card is not None:
        gc.freeze()
    if card is not None and task.share == 0:
        setup = json.dumps(_setup(card, 1.2), indent=1)
        (task.out / f"setup_{task.share}.json").write_text(setup)
    with (task.out / f"library_{task.share}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(RAW_COLUMNS)
        for point in task.points:
            if time.perf_counter() - began_s > task.seconds:
                break
            try:
                timed = (
                    try_out(point)
                    if card is None
                    else HOW[task.how](point, card, generator, task.turn)
                )
            except RuntimeError as error:  # what this library does not support, or no memory
                sys.stderr.write(f"FAILED {point}: {str(error)[:300]}\n")
                continue
            tail = [str(int(point.repeat)), str(task.share)]
            kind, params, dtype, _ = point_key(point)
            writer.writerow([kind, params, dtype, *timed.cells, *tail])
            file.flush()
            if card is not None and torch.cuda.memory_reserved() > MOST_KEPT_BYTES:
                torch.cuda.empty_cache()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.library")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True, help="folder for the CSV")
    parser.add_argument("--plan", choices=NAMES, default="library", help="which points")
    parser.add_argument("--how", choices=tuple(HOW), default="full", help="quick: times alone")
    parser.add_argument("--seed", type=int, default=0, help="of the random sizes")
    parser.add_argument("--share", default="0/1", help="which part of the points, as 0/2 or 1/2")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this long")
    parser.add_argument("--done", type=Path, nargs="*", default=[], help="CSVs of earlier runs")
    parser.add_argument("--dry-run", action="store_true", help="without a GPU: check the shapes")
    parser.add_argument("--workers", type=int, default=1, help="processes that prepare points")
    given = parser.parse_args(arguments)
    share, shares = (int(part) for part in given.share.split("/"))
    points = remaining(planned_points(given.plan, given.seed), given.done)[share::shares]
    context = multiprocessing.get_context("spawn")
    turn: Turn = context.Lock() if given.workers > 1 else nullcontext()
    tasks = [
        Task(
            points=points[worker :: given.workers],
            share=share * given.workers + worker,
            seconds=given.seconds,
            out=given.out,
            dry=given.dry_run,
            how=given.how,
            turn=turn,
        )
        for worker in range(given.workers)
    ]
    others = [context.Process(target=measure_points, args=(task,)) for task in tasks[1:]]
    for process in others:
        process.start()
    measure_points(tasks[0])
    for process in others:
        process.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())

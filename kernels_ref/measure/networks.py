"""Measure whole networks on a GPU: ``python -m kernels_ref.measure.networks --out DIR``.

Every network is one CUDA graph that is replayed without a pause on the same input: what fits into
the L2 stays there, also from one step to the next. Its kernels are listed by torch's profiler. A
fused network is compared with the eager one before it is timed.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernels_ref.library.networks import CASES, EAGER, FUSED, UNSEEN, Case, build
from kernels_ref.library.streams import prepared, streams
from kernels_ref.measure.collect import short_name
from kernels_ref.measure.kernels import Card, Steady, capture, elapsed_us, work_steadily

COLUMNS = ("workload", "epilogues", "t_graph_us", "energy_mJ", "power_W", "sm_clock_MHz", "spread")
KERNEL_COLUMNS = ("workload", "epilogues", "kernels")
WINDOW_S = 0.3
#: Batches that a dry run tries.
MOST_DRY = 2
#: Relative error of a fused network's result, of some fifty layers in bf16.
TOLERANCE = 0.05


def compare(case: Case, result: Any) -> None:
    """With the eager network on the same input."""
    eager = Case(name=case.name, parameters=case.parameters, epilogues=EAGER)
    module, inputs = build(eager, str(result.device))
    expected = module(*inputs).double()
    error = float((result.double() - expected).norm() / expected.norm())
    if not error < TOLERANCE:
        raise ArithmeticError(f"{case.workload}: fused and eager differ by {error}")
    sys.stderr.write(f"{case.workload}: fused and eager differ by {error:.4f}\n")


def steadily(module: Any, inputs: Any, card: Card) -> Steady:
    import torch

    side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            module(*inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = module(*inputs)
    steady = work_steadily(graph, 1, card, WINDOW_S)
    if not torch.isfinite(kept).all():
        raise ArithmeticError("the result is not finite")
    return steady


def kernels(module: Any, inputs: Any) -> list[Any]:
    """Name and time of every kernel of one step, in order."""
    import torch

    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        module(*inputs)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")]
    return [[short_name(e["name"]), e["dur"]] for e in sorted(work, key=lambda e: float(e["ts"]))]


def measure(case: Case, card: Card) -> tuple[list[Any], list[Any]]:
    """The cells of both tables after the first two."""
    module, inputs = build(case, "cuda")
    if case.epilogues == FUSED:
        compare(case, module(*inputs))
    steady = steadily(module, inputs, card)
    low, median, high = statistics.quantiles(steady.calls_us, n=4)
    energy_mj = steady.power_w * statistics.fmean(steady.calls_us) / 1000
    cells = [f"{value:.6g}" for value in (median, energy_mj, steady.power_w)]
    cells += [str(steady.sm_clock_mhz), f"{(high - low) / median:.4f}"]
    return cells, kernels(module, inputs)


def _dry(case: Case) -> tuple[list[Any], list[Any]]:
    """No GPU: the network runs once, which checks shapes and, of a fused one, its result."""
    module, inputs = build(case, "cpu")
    result = module(*inputs)
    if case.epilogues == FUSED:
        compare(case, result)
    return [1.0, 1.0, 1.0, 1, 0.0], []


#: A stream is called so often in a graph, which is replayed so often, the median of which counts.
STREAM_CALLS = 40
STREAM_REPLAYS = 21
STREAM_COLUMNS = ("kind", "params", "dtype", "t_graph_us")


def measure_streams(path: Path, seconds: float) -> None:
    """Times alone, of calls that find in the L2 what the last one left there."""
    import torch

    began_s = time.perf_counter()
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(STREAM_COLUMNS)
        for stream in streams(0):
            if time.perf_counter() - began_s > seconds:
                return
            call = prepared(stream, "cuda")
            call()
            graph = capture([call] * STREAM_CALLS)
            graph.replay()
            times = [elapsed_us(graph.replay) for _ in range(STREAM_REPLAYS)]
            cell = f"{statistics.median(times) / STREAM_CALLS:.6g}"
            writer.writerow([stream.kind, json.dumps(stream.params), "bf16", cell])
            del graph, call
            torch.cuda.empty_cache()


PLANS = {"seen": CASES, "unseen": UNSEEN}


def main(arguments: Sequence[str] | None = None) -> int:
    import torch

    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.networks")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True, help="folder for the CSVs")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--plan", choices=("streams", *PLANS), default="seen")
    parser.add_argument("--dry-run", action="store_true", help="without a GPU: smallest batches")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    card = None if given.dry_run else Card()
    began_s = time.perf_counter()
    if card is not None:
        (given.out / "networks_setup.json").write_text(json.dumps(card.setup(), indent=1))
    if given.plan == "streams":
        with torch.inference_mode():
            measure_streams(given.out / "streams.csv", given.seconds)
        return 0
    times = (given.out / f"networks_{given.plan}.csv").open("w", newline="")
    lists = (given.out / f"network_kernels_{given.plan}.csv").open("w", newline="")
    with times, lists, torch.inference_mode():
        writers = [csv.writer(file, lineterminator="\n") for file in (times, lists)]
        for writer, columns in zip(writers, (COLUMNS, KERNEL_COLUMNS), strict=True):
            writer.writerow(columns)
        for case in PLANS[given.plan]:
            if time.perf_counter() - began_s > given.seconds:
                break
            if card is None and dict(case.parameters)["batch"] > MOST_DRY:
                continue
            try:
                cells, found = _dry(case) if card is None else measure(case, card)
            except (RuntimeError, ArithmeticError) as error:
                sys.stderr.write(f"FAILED {case}: {str(error)[:300]}\n")
                continue
            writers[0].writerow([case.workload, case.epilogues, *cells])
            writers[1].writerow([case.workload, case.epilogues, json.dumps(found)])
            times.flush()
            lists.flush()
            if card is not None:
                torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Which kernels a library call starts: ``python -m kernels_ref.measure.launched --out DIR``.

Runs every point once under torch's profiler and writes each kernel's name, grid, block, shared
memory and time, which is how the tiles that a library chooses become visible.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernels_ref.library.plans import NAMES, planned_points
from kernels_ref.library.points import LibraryPoint
from kernels_ref.measure.library import calls_of

BATCH = 16
#: Each point is called so often, of which the faster call counts.
CALLS = 2
COLUMNS = ("kind", "params", "dtype", "kernels")


def _trace(points: Sequence[LibraryPoint], generator: Any) -> list[dict[str, Any]]:
    """Profile ``CALLS`` calls of each point; marks named by number tell them apart."""
    import torch

    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ready = []
    for point in points:
        calls = calls_of(point, 0, generator, "cuda")
        calls[0]()
        ready.append(calls)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=activities) as profile:
        for turn in range(CALLS):
            for number, calls in enumerate(ready):
                with torch.profiler.record_function(f"point {number}"):
                    calls[turn % len(calls)]()
                    torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def _kernels(events: Sequence[dict[str, Any]], count: int) -> list[list[dict[str, Any]]]:
    """Kernels of the faster call of each point; a kernel runs within its mark, as every call is
    waited for."""
    marks = sorted(
        (event["ts"], int(event["name"].split()[1]))
        for event in events
        if event.get("cat") == "user_annotation" and event["name"].startswith("point ")
    )
    starts = [start for start, _ in marks]
    calls: list[list[dict[str, Any]]] = [[] for _ in marks]
    for event in sorted(events, key=lambda e: float(e.get("ts", 0))):
        if event.get("cat") not in ("kernel", "gpu_memset", "gpu_memcpy"):
            continue
        given = event["args"]
        calls[bisect.bisect_right(starts, event["ts"]) - 1].append(
            {
                "name": event["name"],
                "us": event["dur"],
                "grid": given.get("grid"),
                "block": given.get("block"),
                "smem": given.get("shared memory"),
                "regs": given.get("registers per thread"),
            }
        )
    found: list[list[list[dict[str, Any]]]] = [[] for _ in range(count)]
    for (_, number), kernels in zip(marks, calls, strict=True):
        found[number].append(kernels)
    return [min(each, key=lambda kernels: sum(k["us"] for k in kernels)) for each in found]


def launched(points: Sequence[LibraryPoint], seconds: float) -> Iterator[tuple[LibraryPoint, Any]]:
    import torch

    began_s = time.perf_counter()
    generator = torch.Generator("cuda").manual_seed(0)
    for first in range(0, len(points), BATCH):
        if time.perf_counter() - began_s > seconds:
            return
        batch = points[first : first + BATCH]
        try:
            yield from zip(batch, _kernels(_trace(batch, generator), len(batch)), strict=True)
        except RuntimeError as error:  # what a library does not support
            sys.stderr.write(f"FAILED batch {first}: {str(error)[:200]}\n")
        torch.cuda.empty_cache()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.launched")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plan", choices=NAMES, default="library", help="which points")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--kind", default="", help="points of this kind alone")
    parser.add_argument("--most", type=int, default=10**6)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args(arguments)
    share, shares = (int(part) for part in given.share.split("/"))
    planned = [p for p in planned_points(given.plan, given.seed) if not p.repeat]
    points = [p for p in planned if given.kind in ("", p.kind)][share::shares]
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / f"launched_{share}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for point, kernels in launched(points[: given.most], given.seconds):
            params = json.dumps(point.params)
            writer.writerow([point.kind, params, point.dtype, json.dumps(kernels)])
            file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

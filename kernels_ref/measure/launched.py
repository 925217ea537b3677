"""Which kernels a library call starts: ``python -m kernels_ref.measure.launched --out DIR``.

Runs every point under torch's profiler and writes each kernel's name, grid, block, shared memory
and time, which is how the tiles that a library chooses become visible; and for how long any kernel
of the call was running, since a library may spread its kernels over several streams. Operands are
views of pools of random numbers, each call's elsewhere, so that none is found in a cache. Several
processes may share the GPU (each with a seed or a share of its own): most of the time goes into the
library's choice of kernels, on the host.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import json
import lzma
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernels_ref.library.kinds import FLOATS, TORCH_NAMES, Spec
from kernels_ref.library.plans import NAMES, planned_points
from kernels_ref.library.points import LibraryPoint, kind_named

if TYPE_CHECKING:
    import torch

BATCH = 128
#: Each point is called so often, of which the faster call counts; once if it took longer.
CALLS = 2
LONG_S = 0.006
COLUMNS = ("kind", "params", "dtype", "busy_us", "kernels")

#: Of each type of data, a pool of so many bytes.
POOL_BYTES = 768 * 2**20
#: What was allocated is given back when it exceeds this.
MOST_KEPT_BYTES = 5 * 2**30


class Pools:
    """Random numbers of every type, of which operands are views."""

    def __init__(self, seed: int) -> None:
        import torch

        generator = torch.Generator("cuda").manual_seed(seed)
        self._pools: dict[str, torch.Tensor] = {}
        for name in FLOATS:
            kind: torch.dtype = getattr(torch, TORCH_NAMES[name])
            options: Any = {"dtype": kind, "device": "cuda", "generator": generator}
            self._pools[name] = torch.randn(POOL_BYTES // kind.itemsize, **options).mul_(0.1)
        torch.cuda.synchronize()
        self._next = 0

    def view(self, spec: Spec) -> torch.Tensor:
        """The next elements of the pool, from its start again if there are too few."""
        pool = self._pools[spec.dtype]
        if self._next + spec.padded_elements > pool.numel():
            self._next = 0
        first = self._next
        self._next += spec.padded_elements
        return pool[first : first + spec.elements].view(spec.shape)


def fits(point: LibraryPoint) -> bool:
    specs = kind_named(point.kind).inputs(point.params, point.dtype)
    return all(spec.dtype in FLOATS for spec in specs) and (
        sum(spec.size_bytes for spec in specs) < POOL_BYTES * 0.99
    )


def _trace(points: Sequence[LibraryPoint], pools: Pools) -> list[dict[str, Any]]:
    """Profile the calls of each point; marks named by number tell them apart."""
    import torch

    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for number, point in enumerate(points):
            _call(number, point, pools)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def _call(number: int, point: LibraryPoint, pools: Pools) -> None:
    import torch

    kind = kind_named(point.kind)
    results = []
    try:
        for _ in range(CALLS):
            operands = [pools.view(spec) for spec in kind.inputs(point.params, point.dtype)]
            call = partial(kind.call, point.params, *operands)
            with torch.profiler.record_function(f"point {number}"):
                results.append(call())
                began_s = time.perf_counter()
                torch.cuda.synchronize()
            if time.perf_counter() - began_s > LONG_S:
                return
    except RuntimeError as error:  # what a library does not support, or no memory
        sys.stderr.write(f"FAILED {point}: {str(error)[:200]}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One call's kernels: names and shapes with how many and their time, and the time in which
    at least one was running."""

    kernels: list[dict[str, Any]]
    busy_us: float


def _launch(events: Sequence[Mapping[str, Any]]) -> Launch:
    merged: dict[str, dict[str, Any]] = {}
    busy, end = 0.0, 0.0
    for event in sorted(events, key=lambda e: float(e["ts"])):
        given, first, us = event["args"], float(event["ts"]), float(event["dur"])
        busy += max(0.0, first + us - max(end, first))
        end = max(end, first + us)
        shape = {
            "grid": given.get("grid"),
            "block": given.get("block"),
            "smem": given.get("shared memory"),
            "regs": given.get("registers per thread"),
        }
        key = f"{event['name']} {shape}"
        own = merged.setdefault(key, {"name": event["name"], "count": 0, "us": 0.0, **shape})
        own["count"] += 1
        own["us"] = round(own["us"] + us, 3)
    return Launch(kernels=list(merged.values()), busy_us=round(busy, 3))


def _launches(events: Sequence[dict[str, Any]], count: int) -> list[Launch | None]:
    """The faster call of each point; a kernel runs within its mark, as every call is waited for."""
    marks = sorted(
        (event["ts"], int(event["name"].split()[1]))
        for event in events
        if event.get("cat") == "user_annotation" and event["name"].startswith("point ")
    )
    starts = [start for start, _ in marks]
    calls: list[list[dict[str, Any]]] = [[] for _ in marks]
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy"):
            number = bisect.bisect_right(starts, event["ts"]) - 1
            if number >= 0:
                calls[number].append(event)
    found: list[list[Launch]] = [[] for _ in range(count)]
    for (_, number), kernels in zip(marks, calls, strict=True):
        if kernels:
            found[number].append(_launch(kernels))
    return [min(each, key=lambda launch: launch.busy_us, default=None) for each in found]


def launched(
    points: Sequence[LibraryPoint], seconds: float, seed: int
) -> Iterator[tuple[LibraryPoint, Launch]]:
    import torch

    began_s = time.perf_counter()
    pools = Pools(seed)
    for first in range(0, len(points), BATCH):
        if time.perf_counter() - began_s > seconds:
            return
        batch = points[first : first + BATCH]
        for point, launch in zip(batch, _launches(_trace(batch, pools), len(batch)), strict=True):
            if launch is not None:
                yield point, launch
        if torch.cuda.memory_reserved() > MOST_KEPT_BYTES:
            torch.cuda.empty_cache()


def listed_points(path: Path) -> list[LibraryPoint]:
    """The points of a CSV of measurements."""
    with path.open(newline="") as file:
        return [
            LibraryPoint(kind=row["kind"], params=json.loads(row["params"]), dtype=row["dtype"])
            for row in csv.DictReader(file)
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.launched")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plan", choices=NAMES, default="library", help="which points")
    parser.add_argument("--csv", type=Path, nargs="*", default=[], help="points of these first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", default="0/1", help="which part of the points, as 0/2 or 1/2")
    parser.add_argument("--kind", default="", help="points of this kind alone")
    parser.add_argument("--most", type=int, default=10**6)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args(arguments)
    share, shares = (int(part) for part in given.share.split("/"))
    planned = [p for p in planned_points(given.plan, given.seed) if not p.repeat][: given.most]
    planned = [p for path in given.csv for p in listed_points(path)] + planned
    points = [p for p in planned if given.kind in ("", p.kind) and fits(p)][share::shares]
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"launched_{given.plan}_{given.seed}_{share}.csv.xz"
    began_s, done = time.perf_counter(), 0
    with lzma.open(path, "wt", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for point, launch in launched(points, given.seconds, given.seed):
            params = json.dumps(point.params)
            kernels = json.dumps(launch.kernels)
            writer.writerow([point.kind, params, point.dtype, launch.busy_us, kernels])
            done += 1
    sys.stderr.write(f"{done} of {len(points)} points in {time.perf_counter() - began_s:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

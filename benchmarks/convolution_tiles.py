"""What a tile of each of cuDNN's kernels takes: ``python -m benchmarks.convolution_tiles``.

Of the profiled convolutions (``h200_convolutions.csv.xz``) that one kernel computes without groups,
by the label of that kernel: fits the time of a step along the sum, of a tile, of the start, and the
bandwidth. Prints how well these tell the kernel's time, and writes
``sim/gpu/data/h200_convolution_tiles.json``.
"""

from __future__ import annotations

import csv
import json
import lzma
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from sim.gpu.conv_tiles import ConvTile, Work, tile_times, work_of
from sim.gpu.demand import Array, Call

PROFILED = Path("kernels_ref/data/h200_convolutions.csv.xz")
OUT = Path("sim/gpu/data/h200_convolution_tiles.json")
SIZES = ("N", "C", "H", "K", "R", "stride", "groups")
#: Classes with fewer rows are left out, and no more than so many rows are fitted to.
LEAST_ROWS, MOST_ROWS = 500, 4000
LABEL = re.compile(r"(sm90|sm80|sm80 i|sm80 w) (\d+)x(\d+)x(\d+)_g1|(mma)\d+ \w+ (\d+)x(\d+)_(\d+)x")
#: How many tiles run at once, and whether the channels of every tap are padded to the tile's depth.
AT_ONCE = (120, 132, 264, 528)


def class_of(label: str) -> tuple[str, tuple[int, int, int]] | None:
    """The engine and tile that a label names, if it is of a tiled kernel."""
    found = LABEL.fullmatch(label) or LABEL.match(label)
    if found is None:
        return None
    engine, *sides = [part for part in found.groups() if part is not None]
    rows, columns, depth = (int(side) for side in sides)
    return engine, (rows, columns, depth)


def fitted(work: Work, time_us: Array, tile: tuple[int, int, int]) -> tuple[float, ConvTile]:
    found = [
        _one(work, time_us, ConvTile.started(tile, at_once=at_once, padded=padded))
        for at_once in AT_ONCE
        for padded in (False, True)
    ]
    return min(found, key=lambda pair: pair[0])


def _one(work: Work, time_us: Array, start: ConvTile) -> tuple[float, ConvTile]:
    def at(logs: Array) -> ConvTile:
        step, tile, begin, rate = (float(f"{value:.4g}") for value in np.exp(logs))
        return replace(start, step_us=step, tile_us=tile, start_us=begin, bytes_per_us=rate)

    def residuals(logs: Array) -> Array:
        step, tile, begin, rate = np.exp(logs)
        own = replace(start, step_us=step, tile_us=tile, start_us=begin, bytes_per_us=rate)
        return np.asarray(np.log(tile_times([own], work)[0] / time_us))

    first = np.log([start.step_us, start.tile_us, start.start_us, start.bytes_per_us])
    best = at(least_squares(residuals, first, loss="soft_l1", f_scale=0.1).x)
    errors = np.abs(tile_times([best], work)[0] / time_us - 1)
    return float(errors.mean()), best


def _call(row: Mapping[str, str]) -> Call:
    return Call(kind="conv2d", params={n: int(row[n]) for n in SIZES}, dtype=row["dtype"])


def main() -> int:
    members: dict[tuple[str, str, tuple[int, int, int]], list[Mapping[str, str]]]
    members = defaultdict(list)
    with lzma.open(PROFILED, "rt", newline="") as file:
        for row in csv.DictReader(file):
            found = class_of(row["longest"])
            if found and row["groups"] == row["longest_runs"] == "1":
                bits = "32" if row["dtype"] == "fp32" else "16"
                members[found[0], bits, found[1]].append(row)
    document = {}
    for (engine, bits, tile), rows in sorted(members.items(), key=lambda item: item[0]):
        if len(rows) < LEAST_ROWS:
            continue
        # Rows are in the order of sizes: so that all are among them.
        chosen: Sequence[Mapping[str, str]] = rows[:: -(-len(rows) // MOST_ROWS)]
        time_us = np.array([float(row["longest_us"]) for row in chosen])
        error, best = fitted(work_of([_call(row) for row in chosen]), time_us, tile)
        name = f"{engine} {bits} {'x'.join(map(str, tile))}"
        print(f"{name:24s} {len(rows):5d} rows  mean {error:6.1%}  {best}", flush=True)
        document[name] = asdict(best)
    OUT.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

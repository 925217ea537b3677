"""Gather profiled convolutions: ``python -m kernels_ref.measure.profiled --out CSV.xz CSV.xz ...``.

Of what ``launched`` wrote, keeps each call once: how many kernels, the time in which any ran and
the sum of all their times, and of the kernel that took longest its label, how often it ran, its
time in all and its blocks, and the time of those that only lay out, pad, convert or add up. Shapes
that are to judge predictions, of the plan ``fresh`` with the seeds ``--unseen``, are left out.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernels_ref.library.plans import planned_points
from kernels_ref.measure.names import is_helper, label

SHAPE = ("groups", "R", "stride", "C", "K", "H", "N")
COLUMNS = (
    "dtype",
    *SHAPE,
    *("kernels", "busy_us", "total_us", "longest_us", "longest_runs", "blocks", "helpers_us"),
    "longest",
)


def _digits(value: float) -> str:
    """Three digits, which is as well as a time repeats."""
    return f"{float(f'{value:.3g}'):g}"


def _cells(row: Mapping[str, str]) -> tuple[Any, ...]:
    kernels: list[dict[str, Any]] = json.loads(row["kernels"])
    params: dict[str, int] = json.loads(row["params"])
    longest = max(kernels, key=lambda kernel: float(kernel["us"]))
    return (
        row["dtype"],
        *_shape(params),
        sum(kernel["count"] for kernel in kernels),
        _digits(float(row["busy_us"])),
        _digits(sum(kernel["us"] for kernel in kernels)),
        _digits(longest["us"]),
        longest["count"],
        math.prod(longest["grid"] or [0]),
        _digits(sum(kernel["us"] for kernel in kernels if is_helper(kernel["name"]))),
        label(longest["name"]),
    )


def _rows(paths: Iterable[Path]) -> Iterator[tuple[Any, ...]]:
    csv.field_size_limit(1 << 24)
    for path in paths:
        with lzma.open(path, "rt", newline="") as file:
            yield from (_cells(row) for row in csv.DictReader(file) if row["kind"] == "conv2d")


def unseen_shapes(seeds: Iterable[int]) -> set[tuple[Any, ...]]:
    """Whatever their type."""
    points = (point for seed in seeds for point in planned_points("fresh", seed))
    return {_shape(point.params) for point in points if point.kind == "conv2d"}


def _shape(params: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(params[name] for name in SHAPE)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.profiled")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--unseen", type=int, nargs="*", default=[], help="seeds to leave out")
    parser.add_argument("csv", type=Path, nargs="+", help="what launched wrote")
    given = parser.parse_args(arguments)
    unseen = unseen_shapes(given.unseen)
    unique: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for cells in _rows(sorted(given.csv)):
        if cells[1:8] not in unseen:
            unique.setdefault(cells[:8], cells)
    with lzma.open(given.out, "wt", newline="", preset=9 | lzma.PRESET_EXTREME) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(unique[key] for key in sorted(unique))
    return 0


if __name__ == "__main__":
    sys.exit(main())

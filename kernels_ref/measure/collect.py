"""Gather what several runs measured: ``python -m kernels_ref.measure.collect --out DIR CSV ...``.

Writes ``NAME_library.csv`` (every point once, sorted) and, if there are any, ``NAME_repeats.csv``
(second measurements) and ``NAME_launched.csv`` (kernels that each point starts, with names cut to
what tells them apart).
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernels_ref.measure.kernels import COLUMNS

KEPT = (*COLUMNS, "sm_clock_MHz")
NAME_LENGTH = 90


def short_name(name: str) -> str:
    """A kernel's name without return type, namespaces and arguments."""
    for noise in ("void ", "(anonymous namespace)::", "at::native::", "cutlass::Kernel2<", "c10::"):
        name = name.replace(noise, "")
    return re.split(r"\(|\{lambda", name)[0][:NAME_LENGTH]


def _read(paths: Iterable[Path]) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 24)  # one cell has the kernels of a whole block
    rows = []
    for path in paths:
        with path.open(newline="") as file:
            rows += list(csv.DictReader(file))
    return [{k: "" if v == "nan" else v for k, v in row.items()} for row in rows]


def _write(path: Path, columns: Sequence[str], rows: Iterable[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda r: (r["kind"], r["dtype"], r["params"])))


def _shortened(row: dict[str, str]) -> dict[str, str]:
    kernels = [
        [short_name(k["name"]), round(k["us"], 2), k["grid"], k["block"], k["smem"]]
        for k in json.loads(row["kernels"])
    ]
    return {**row, "kernels": json.dumps(kernels)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.collect")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="h200", help="what the files' names begin with")
    parser.add_argument("csv", type=Path, nargs="+", help="what the measuring programs wrote")
    given = parser.parse_args(arguments)
    launched = [path for path in given.csv if path.name.startswith("launched")]
    rows = _read(path for path in given.csv if path not in launched)
    unique: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        unique.setdefault((row["kind"], row["params"], row["dtype"], row["repeat"]), row)
    first = [row for row in unique.values() if row["repeat"] == "0"]
    _write(given.out / f"{given.name}_library.csv", KEPT, first)
    repeated = [row for row in unique.values() if row["repeat"] == "1"]
    if repeated:
        _write(given.out / f"{given.name}_repeats.csv", KEPT, repeated)
    if launched:
        columns = ("kind", "params", "dtype", "kernels")
        _write(given.out / f"{given.name}_launched.csv", columns, map(_shortened, _read(launched)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

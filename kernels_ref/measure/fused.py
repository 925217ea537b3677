"""Check and time the fused kernels on this machine's GPU: ``python -m kernels_ref.measure.fused``.

Each result is compared with its definition, then our kernel and torch's are timed in a graph of
calls on rotating buffers. Without ``--out`` the table is only printed; ``--list`` names all.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from arch.errors import InputError
from kernels_ref.fused.record import Fused, relative_error
from kernels_ref.fused.registry import FUSED
from kernels_ref.measure.fused_sizes import SIZES
from kernels_ref.measure.kernels import Card, elapsed_us, set_count
from kernels_ref.measure.library import calls_per_graph, capture_kept

COLUMNS = (
    "kernel", "sizes", "relative_error", "tolerance", "triton_us", "torch_us", "ratio",
    "torch_call", "torch_own", "tflops", "gb_per_s",
)  # fmt: skip
SAMPLES = 15
MOST_SETS = 16

Sizes = dict[str, int]


def time_us(calls: Sequence[Callable[[], Any]]) -> float:
    """Median time of a call in graph replays."""
    for call in calls[:2]:
        call()
    count = calls_per_graph(elapsed_us(calls[0]), len(calls))
    graph, kept = capture_kept([calls[i % len(calls)] for i in range(count)], 1 << 20)
    graph.replay()
    samples = [elapsed_us(graph.replay) / count for _ in range(SAMPLES)]
    del graph, kept
    return statistics.median(samples)


def measured(kernel: Fused, sizes: Sizes, card: Card, generator: Any) -> list[str]:
    counts = kernel.counts(sizes)
    sets = min(MOST_SETS, set_count(counts.bytes, card.l2_bytes))
    inputs = [kernel.inputs(sizes, generator) for _ in range(sets)]
    error = relative_error(kernel, inputs[0])
    ours = time_us([partial(kernel.triton, *given) for given in inputs])
    theirs = time_us([kernel.baseline(*given) for given in inputs])
    return [
        kernel.name, json.dumps(sizes), f"{error:.3g}", f"{kernel.tolerance:.3g}", f"{ours:.4g}",
        f"{theirs:.4g}", f"{ours / theirs:.3f}", kernel.baseline_name, str(int(kernel.own)),
        f"{counts.flops / ours / 1e6:.4g}", f"{counts.bytes / ours / 1e3:.4g}",
    ]  # fmt: skip


def checked(kernel: Fused, sizes: Sizes, generator: Any) -> list[str]:
    error = relative_error(kernel, kernel.inputs(sizes, generator))
    return [kernel.name, json.dumps(sizes), f"{error:.3g}", f"{kernel.tolerance:.3g}"]


def rows(names: Sequence[str], card: Card, check: bool) -> Iterator[list[str]]:
    import torch

    generator = torch.Generator("cuda").manual_seed(0)
    for name in names:
        for sizes in SIZES[name]:
            if check:
                yield checked(FUSED[name], sizes, generator)
            else:
                yield measured(FUSED[name], sizes, card, generator)


def write(directory: Path, found: Sequence[list[str]], card: Card) -> None:
    """A CSV, and where it comes from."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "h200_fused.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS[: len(found[0])], *found])
    setup = {"command": "`python -m kernels_ref.measure.fused --out DIR`", **card.setup()}
    lines = ["# h200_fused.csv", "", "| what | value |", "|---|---|"]
    lines += [f"| {what} | {value} |" for what, value in setup.items()]
    (directory / "h200_fused.md").write_text("\n".join(lines) + "\n")


def listing() -> str:
    return "".join(
        f"{kernel.name}: {kernel.what}\n    {kernel.source}; beside {kernel.baseline_name}\n"
        for kernel in FUSED.values()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.fused")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, help="folder for the CSV")
    parser.add_argument("--kernel", nargs="*", default=list(FUSED), choices=list(FUSED))
    parser.add_argument("--check", action="store_true", help="compare results, time nothing")
    parser.add_argument("--list", action="store_true", help="say which kernels there are")
    given = parser.parse_args(arguments)
    if given.list:
        sys.stdout.write(listing())
        return 0
    if given.out is not None and given.out.exists() and not given.out.is_dir():
        parser.error(f"--out {given.out} is not a folder")
    try:
        card = Card()
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return run(given.kernel, card, check=given.check, directory=given.out)


def run(names: Sequence[str], card: Card, *, check: bool, directory: Path | None) -> int:
    """Print every row as it comes; 1 if a result is farther from the reference than it may be."""
    found = []
    for row in rows(names, card, check):
        found.append(row)
        sys.stdout.write(",".join(row) + "\n")
        sys.stdout.flush()
    if directory is not None:
        write(directory, found, card)
    return 0 if all(float(row[2]) <= float(row[3]) for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())

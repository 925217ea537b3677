"""Check and time the fused kernels on this machine's GPU: ``python -m kernels_ref.measure.fused``.

Each result is compared with its definition, then our kernel and torch's own are timed in a graph
of calls on rotating buffers.
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

from kernels_ref.fused import FUSED, Fused
from kernels_ref.measure.kernels import Card, elapsed_us, set_count
from kernels_ref.measure.library import calls_per_graph, capture_kept

COLUMNS = ("kernel", "sizes", "relative_error", "tolerance", "triton_us", "torch_us", "ratio")
SAMPLES = 15
PRODUCTS = (
    {"M": 8192, "N": 8192, "K": 8192},
    {"M": 4096, "N": 4096, "K": 4096},
    {"M": 512, "N": 4096, "K": 4096},
    {"M": 64, "N": 14336, "K": 4096},
)
WEIGHTS = (
    {"M": 1, "N": 14336, "K": 4096},
    {"M": 16, "N": 4096, "K": 14336},
    {"M": 128, "N": 14336, "K": 4096},
    {"M": 4096, "N": 4096, "K": 4096},
)
ROWS = ({"R": 128, "C": 4096}, {"R": 4096, "C": 4096}, {"R": 16384, "C": 8192})
SIZES: dict[str, Sequence[dict[str, int]]] = {
    "gemm_int8": PRODUCTS,
    "gemm_fp8": PRODUCTS,
    "gemm_w4a16": WEIGHTS,
    "gemm_lut4": WEIGHTS,
    "gemm_ternary": WEIGHTS,
    "flash_attention": (
        {"B": 4, "H": 32, "Hkv": 8, "Sq": 2048, "Skv": 2048, "D": 128, "causal": 1},
        {"B": 1, "H": 16, "Hkv": 16, "Sq": 8192, "Skv": 8192, "D": 64, "causal": 1},
        {"B": 2, "H": 16, "Hkv": 16, "Sq": 4096, "Skv": 4096, "D": 128, "causal": 0},
        {"B": 8, "H": 32, "Hkv": 8, "Sq": 500, "Skv": 500, "D": 64, "causal": 1},
    ),
    "decode_attention": (
        {"B": 16, "H": 32, "Hkv": 8, "Skv": 4096, "D": 128},
        {"B": 64, "H": 32, "Hkv": 8, "Skv": 8000, "D": 128},
        {"B": 1, "H": 32, "Hkv": 8, "Skv": 16384, "D": 128},
    ),
    "layer_norm": ROWS,
    "rms_norm": ROWS,
}


def _time_us(calls: Sequence[Callable[[], Any]]) -> float:
    """Median time of a call in graph replays."""
    for call in calls[:2]:
        call()
    count = calls_per_graph(elapsed_us(calls[0]), len(calls))
    graph, kept = capture_kept([calls[i % len(calls)] for i in range(count)], 1 << 20)
    graph.replay()
    samples = [elapsed_us(graph.replay) / count for _ in range(SAMPLES)]
    del graph, kept
    return statistics.median(samples)


def _error(kernel: Fused, inputs: tuple[Any, ...]) -> float:
    exact = kernel.reference(*inputs).double()
    return float((kernel.triton(*inputs).double() - exact).norm() / exact.norm())


def _library(kernel: Fused, inputs: tuple[Any, ...]) -> Callable[..., Any]:
    """torch's own; where there is none, a product with weights that were expanded beforehand."""
    import torch

    if kernel.library is not None:
        return kernel.library
    (n, x) = inputs[2].shape[0], inputs[0]
    weights = torch.randn((n, x.shape[1]), dtype=x.dtype, device=x.device)
    return lambda x, *rest: torch.matmul(x, weights.t())


def measured(card: Card, generator: Any) -> Iterator[list[str]]:
    for name, kernel in FUSED.items():
        for sizes in SIZES[name]:
            moved = kernel.counts(sizes).bytes
            sets = min(32, set_count(moved, card.l2_bytes))
            inputs = [kernel.inputs(sizes, generator) for _ in range(sets)]
            error = _error(kernel, inputs[0])
            ours = _time_us([partial(kernel.triton, *given) for given in inputs])
            own = _library(kernel, inputs[0])
            theirs = _time_us([partial(own, *given) for given in inputs])
            numbers = (f"{error:.3g}", f"{kernel.tolerance:.3g}", f"{ours:.4g}", f"{theirs:.4g}")
            yield [name, json.dumps(sizes), *numbers, f"{ours / theirs:.3f}"]


def main(arguments: Sequence[str] | None = None) -> int:
    import torch

    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.fused")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator("cuda").manual_seed(0)
    with (given.out / "h200_fused.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in measured(Card(), generator):
            writer.writerow(row)
            file.flush()
            sys.stdout.write(",".join(row) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

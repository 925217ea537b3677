"""Microbenchmarks of this machine's GPU: ``python -m kernels_ref.measure.micro --out DIR``.

Bandwidth against size without rotation (so that what fits stays in the L2), rate of tensor cores
against the depth of a product, what an empty graph node and a launch by the host cost, and the rate
of the special functions.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kernels_ref.measure.kernels import elapsed_us
from kernels_ref.measure.library import capture_kept
from kernels_ref.triton_kernels.probe import dispatched

COLUMNS = ("benchmark", "parameter", "value", "unit")
SAMPLES = 15
LAUNCHES = 2000
#: Blocks of the dispatch test last so long that none ends before the last has started.
DISPATCH_NS = 20_000


def _graph_us(call: Callable[[], Any], count: int) -> float:
    call()
    graph, kept = capture_kept([call] * count, 1 << 24)
    graph.replay()
    found = statistics.median(elapsed_us(graph.replay) for _ in range(SAMPLES)) / count
    del graph, kept
    return found


def _bandwidth() -> Iterator[tuple[str, str, float, str]]:
    import torch

    for exponent in range(14, 32):
        x = torch.randn((1 << exponent) // 4, device="cuda")
        total = torch.zeros((), device="cuda")
        read_us = _graph_us(partial(torch.sum, x, dim=0, out=total), 20)
        yield "read", str(1 << exponent), (1 << exponent) / read_us / 1e3, "GB/s"
        y = torch.empty_like(x)
        copy_us = _graph_us(partial(y.copy_, x), 20)
        yield "copy", str(2 << exponent), (2 << exponent) / copy_us / 1e3, "GB/s"


def _tensor_rate() -> Iterator[tuple[str, str, float, str]]:
    import torch

    for depth in (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192):
        a = torch.randn((4096, depth), device="cuda", dtype=torch.bfloat16)
        b = torch.randn((4096, depth), device="cuda", dtype=torch.bfloat16)
        time_us = _graph_us(partial(torch.matmul, a, b.t()), 10)
        yield "bf16 product 4096x4096", str(depth), 2 * 4096**2 * depth / time_us / 1e6, "TFLOP/s"


def _launches() -> Iterator[tuple[str, str, float, str]]:
    import torch

    x = torch.zeros(1, device="cuda")
    yield "graph node", "1 element", _graph_us(lambda: x.add_(1), LAUNCHES), "us"
    torch.cuda.synchronize()
    began_s = time.perf_counter()
    for _ in range(LAUNCHES):
        x.add_(1)
    torch.cuda.synchronize()
    yield "launch", "1 element", (time.perf_counter() - began_s) * 1e6 / LAUNCHES, "us"


def _dispatch() -> Iterator[tuple[str, str, float, str]]:
    """How fast blocks start, and whether every SM has one before any has two."""
    import torch

    sms = torch.cuda.get_device_properties(0).multi_processor_count
    for count in (sms, 2 * sms, 8 * sms):
        spreads, most = [], []
        for _ in range(SAMPLES):
            start, sm = dispatched(count, DISPATCH_NS)
            begun = (start - start.min()).double().cpu()
            spreads.append(float(begun.max()))
            most.append(int(torch.bincount(sm.long().cpu()[:sms], minlength=sms).max()))
        yield "last block starts after", str(count), statistics.median(spreads), "ns"
        yield "blocks of the first 132 on one SM", str(count), max(most), "blocks"


def _special() -> Iterator[tuple[str, str, float, str]]:
    import torch

    x = torch.randn(1 << 22, device="cuda")
    once = _graph_us(lambda: torch.exp(x), 20)
    yield "exp fp32", str(x.numel()), x.numel() / once / 1e3, "Gexp/s"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.micro")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / "h200_micro.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for part in (_bandwidth, _tensor_rate, _launches, _special, _dispatch):
            for name, parameter, value, unit in part():
                writer.writerow([name, parameter, f"{value:.4g}", unit])
                file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

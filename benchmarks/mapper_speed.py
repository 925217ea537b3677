"""Prints how long the exact search takes for whole networks.

    python -m benchmarks.mapper_speed
    python -m benchmarks.mapper_speed --threads 2

CPU seconds of all threads and seconds on the clock, after a first search has loaded the compiled
code. Equal operators are searched once.
"""

from __future__ import annotations

import argparse
import time

from arch.load import load_architecture
from mapper.search.method import Method
from mapper.search.network import map_workload
from mapper.workload.load import load_workload
from sim.prices import price

CASES = (
    ("ws16", "resnet18", {}),
    ("ws16", "resnet50", {}),
    ("ws16", "llama3.1-70b:layers=1,seq=2048", {}),
    ("ws16", "llama3.1-70b:layers=1,phase=decode,ctx=8192", {}),
    ("eyeriss", "conv2d:C=64,H=56,K=64,R=3", {}),
    ("ws16", "conv2d:C=64,H=56,K=64,R=3", {"array.dataflow": "free"}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="operators searched at once")
    method = Method(threads=parser.parse_args().threads)
    for spec in ("gemm:M=96,N=96,K=96", "conv2d:C=16,H=16,K=16,R=3", "resnet18:image=32"):
        map_workload(load_workload(spec), load_architecture("ws16"), price)
    for device, spec, overrides in CASES:
        sizes = {"dram.size": "1 TiB", **overrides} if device == "ws16" else overrides
        workload, architecture = load_workload(spec), load_architecture(device, sizes)
        started, began = time.process_time(), time.perf_counter()
        found = map_workload(workload, architecture, price, "edp", method)
        seconds, elapsed = time.process_time() - started, time.perf_counter() - began
        distinct = sum(result.calls > 0 for result in found.values())
        proven = all(result.optimal for result in found.values())
        print(
            f"{device:<8} {spec:<45} {len(found):>4} operators, {distinct:>3} distinct, "
            f"{'all optimal' if proven else 'not all optimal'}: {seconds:.2f} CPU s, "
            f"{elapsed:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()

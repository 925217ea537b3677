"""How long the optimal plan of every convolutional network of the zoo takes, and what it proves.

    OMP_NUM_THREADS=1 python -m benchmarks.plan_speed [NAME ...]

Bytes of the ring with its lower bound (no plan with the same choices needs less), and CPU seconds
without the import of the network.
"""

from __future__ import annotations

import itertools
import sys
import time

from rich.console import Console
from rich.table import Table

from mapper.memory_plan.layers import Layer, layers_of
from mapper.memory_plan.plan import MemoryPlan
from mapper.memory_plan.planners import Request, plan
from mapper.memory_plan.stages import cuts
from mapper.workload.load import load_workload

NETWORKS = (
    *(f"mcunet_{name}" for name in ("vww0", "vww1", "vww2", "in0", "in1", "in2", "in3", "in4")),
    *(f"mlperf_{name}" for name in ("ad", "ic", "kws")),
    *("mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large"),
    *("resnet18", "resnet50", "resnet152", "shufflenet_v2", "mobileone_s0"),
    *("efficientnet_b0", "efficientnet_b7", "densenet121", "densenet201"),
    *("hardnet39ds", "hardnet68", "hardnet85", "vovnet27-slim", "vovnet39", "vovnet57"),
)


def cycles(layer: Layer, macs: int, accesses: int) -> float:
    """Two cycles per multiply-accumulate, four per ring access."""
    return 2.0 * macs + layer.operations + 4 * accesses


def timed(request: Request) -> tuple[MemoryPlan, float]:
    start = time.process_time()
    found = plan("optimal", request)
    return found, time.process_time() - start


def main() -> None:
    columns = ("network", "layers", "longest block", "ring B", "lower bound B", "gap", "CPU s")
    table = Table(*columns)
    for name in sys.argv[1:] or NETWORKS:
        workload = load_workload(name)
        layers = layers_of(workload)
        points = cuts(layers)
        found, seconds = timed(Request(workload=workload, cycles=cycles))
        table.add_row(
            name,
            str(len(layers)),
            str(max(b - a for a, b in itertools.pairwise(points))),
            f"{found.pool_bytes:,}",
            f"{found.lower_bound_bytes:,}",
            f"{found.pool_bytes / found.lower_bound_bytes - 1:.1%}",
            f"{seconds:.2f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

"""Trains the Q-network that ``--search q_learning`` begins with.

Layers and hardware are drawn at random (matrix products and convolutions; arrays, memories and
bandwidths of three base architectures), none of them those of ``benchmarks/hasco_space.py``. Each
episode is one search; the network goes on learning from one to the next.

    OMP_NUM_THREADS=1 python benchmarks/train_q_network.py --episodes 300
"""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path

import numpy as np

from arch.load import load_architecture
from arch.spec import Architecture
from mapper.hierarchy import execution
from mapper.search.candidates import BudgetSpent, Candidates
from mapper.search.coefficients import Coefficients
from mapper.search.exact import OBJECTIVES
from mapper.search.q_learning import Learner
from mapper.search.q_network import QNetwork
from mapper.search.space import stage_orders
from mapper.search.starts import NothingFits
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.prices import price

BUDGET = 200
SIZES = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)
IMAGES = (8, 12, 16, 20, 24, 32, 40, 48)
BASES = {
    "hasco_gemm": ("scratchpad.size", "local.size"),
    "ws16": ("gb.size", "rf_w.size"),
    "edge_npu": ("gbuf.size", "acc.size"),
}


def a_layer(rng: np.random.Generator) -> Workload:
    channels, filters = (int(rng.choice(SIZES)) for _ in range(2))
    if rng.random() < 0.3:
        rows = int(rng.choice(SIZES))
        return load_workload(f"gemm:M={rows},N={filters},K={channels},dtype=int8")
    image, kernel = int(rng.choice(IMAGES)), int(rng.choice((1, 3, 5)))
    stride = int(rng.choice((1, 2)))
    spec = f"conv2d:N=1,C={channels},H={image},K={filters},R={kernel},stride={stride},dtype=int8"
    return load_workload(spec)


def some_hardware(rng: np.random.Generator) -> Architecture:
    base = str(rng.choice(list(BASES)))
    outer, inner = BASES[base]
    side = int(rng.choice((8, 12, 16, 24)))
    overrides = {
        outer: f"{int(rng.choice((48, 96, 192, 384)))} KiB",
        inner: f"{int(rng.choice((192, 384, 768, 1536)))} B",
        "array.rows": side,
        "array.cols": side,
        "dram.bandwidth": f"{int(rng.choice((4, 12, 24)))} B/cycle",
    }
    return load_architecture(base, overrides)


def episode(network: QNetwork, rng: np.random.Generator) -> str:
    """One search of a layer on some hardware; how far it came from where it began."""
    workload, architecture = a_layer(rng), some_hardware(rng)
    run = execution(workload, workload.operators[0], architecture)
    coefficients = Coefficients(
        run=run,
        leakage_w=architecture.leakage_w,
        price=price,
        objective=OBJECTIVES[str(rng.choice(list(OBJECTIVES)))],
    )
    orders = tuple(stage_orders(run))
    models = tuple(coefficients.model(order) for order in orders)
    space = Candidates(run, orders, models, BUDGET)
    with contextlib.suppress(BudgetSpent, NothingFits):
        Learner(space, network, rng).run()
    values = [improvement.value for improvement in space.history]
    gained = values[0] / values[-1] if values else 1.0
    return f"{workload.name} on {architecture.name}: {space.calls} calls, gained {gained:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="end after this time")
    parser.add_argument("--out", type=Path, default=Path("mapper/search/data/q_network.npz"))
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    network = QNetwork.untrained(rng)
    began = time.monotonic()
    for number in range(asked.episodes):
        print(f"{number + 1:4} {episode(network, rng)}", flush=True)
        if time.monotonic() - began > 60 * asked.minutes:
            break
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(asked.out, **network.arrays())
    print(f"wrote {asked.out}")


if __name__ == "__main__":
    main()

"""How many calls are predicted per second: analytical, and with thread blocks over time.

Calls of all kinds in a random order, so that few of a batch are of one class of kernels.

OMP_NUM_THREADS=1 python benchmarks/gpu_speed.py
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from arch.load import load_architecture
from dse.validation import MEASURED, read_rows
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.event import block_times
from sim.gpu.predict import kernels_of, load_of, predict

ROUNDS = 5


def main() -> None:
    rows, _ = read_rows(Path(str(MEASURED / "h200_library.csv")))
    order = np.random.default_rng(0).permutation(len(rows))
    calls = [rows[i].call for i in order]
    model = gpu_model(chip_of(load_architecture("h200")))
    predict(calls, model)
    print("  calls at once   predictions per CPU second    of kernels")
    for size in (1, 16, 256, 1024, len(calls)):
        chosen = [calls[i : i + size] for i in range(0, min(len(calls), 50 * size), size)]
        began_s = time.process_time()
        for _ in range(ROUNDS):
            for part in chosen:
                predict(part, model)
        spent_s = time.process_time() - began_s
        each = [len(kernels_of(call)) for part in chosen for call in part]
        rates = [ROUNDS * count / spent_s for count in (len(each), sum(each))]
        print(f"{size:15,d}   {rates[0]:22,.0f}   {rates[1]:14,.0f}")
    began_s = time.process_time()
    load = load_of(calls, model)
    for number in range(len(load.owner)):
        block_times(load.demand, number, 1.0, model.chip)
    spent_s = time.process_time() - began_s
    print(f"event simulation: {len(load.owner) / spent_s:,.0f} kernels per CPU second")


if __name__ == "__main__":
    main()

"""How many kernels are predicted per second: analytical, and with thread blocks over time.

OMP_NUM_THREADS=1 python benchmarks/gpu_speed.py
"""

from __future__ import annotations

import time
from pathlib import Path

from arch.load import load_architecture
from dse.validation import MEASURED, read_rows
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.event import block_times
from sim.gpu.predict import load_of, predict

ROUNDS = 5


def main() -> None:
    rows, _ = read_rows(Path(str(MEASURED / "h200_library.csv")))
    calls = [row.call for row in rows]
    model = gpu_model(chip_of(load_architecture("h200")))
    predict(calls, model)
    print("kernels at once   predictions per CPU second")
    for size in (1, 16, 256, len(calls)):
        chosen = [calls[i : i + size] for i in range(0, min(len(calls), 50 * size), size)]
        began_s = time.process_time()
        for _ in range(ROUNDS):
            for part in chosen:
                predict(part, model)
        spent_s = time.process_time() - began_s
        print(f"{size:15,d}   {ROUNDS * sum(map(len, chosen)) / spent_s:22,.0f}")
    began_s = time.process_time()
    load = load_of(calls, model)
    for number in range(len(load.owner)):
        block_times(load.demand, number, 1.0, model.chip)
    spent_s = time.process_time() - began_s
    print(f"event simulation: {len(load.owner) / spent_s:,.0f} kernels per CPU second")


if __name__ == "__main__":
    main()

"""How many kernels are predicted per second.

OMP_NUM_THREADS=1 python benchmarks/gpu_speed.py
"""

from __future__ import annotations

import time
from pathlib import Path

from arch.load import load_architecture
from dse.validation import MEASURED, read_rows
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.predict import predict

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


if __name__ == "__main__":
    main()

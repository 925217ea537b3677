"""The cycles in the configurations of the STM32 boards: one fit per core to published runs.

    python -m benchmarks.mcu_boards

X-CUBE-AI 7.3 on Cortex-M4, M7 and M33, from ``kernels_ref/data/mcu_published.csv``: MLPerf
Tiny v1.0 and, for M7, TinyEngine's table. Each rate is drawn to a prior by its logarithm, since
four networks do not tell seven rates apart. Prints the rates and what is left of each run.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import least_squares

from benchmarks.mcu_cycles import Floats, Run, runs
from mapper.memory_plan.layers import layers_of
from mapper.workload.load import load_workload

#: Quantities and the cycles that the fit is drawn to.
PRIOR = {
    "conv2d mac": 1.5,
    "conv2d output": 15.0,
    "depthwise mac": 3.0,
    "depthwise output": 25.0,
    "dense mac": 2.2,
    "other operation": 2.0,
    "layer": 300.0,
}
RIDGE = 0.08
LIBRARY = "x-cube-ai 7.3"
SOURCES = ("MLPerf Tiny v1.0 STMicroelectronics", "TinyEngine README table")


def amounts(network: str) -> list[float]:
    """How much of each quantity a network has."""
    counts = dict.fromkeys(PRIOR, 0.0)
    for layer in layers_of(load_workload(network)):
        counts["layer"] += 1
        if layer.macs:
            counts[f"{layer.kind} mac"] += layer.macs
            if f"{layer.kind} output" in counts:
                counts[f"{layer.kind} output"] += layer.output.size_bytes
        else:
            counts["other operation"] += layer.operations
    return list(counts.values())


def fitted(rows: list[Run]) -> tuple[Floats, Floats]:
    """Cycles per quantity, and the relative error of every run."""
    counts = np.array([amounts(run.network) for run in rows])
    cycles = np.array([run.cycles for run in rows])
    start = np.log(list(PRIOR.values()))

    def residuals(logs: Floats) -> Floats:
        wrong = np.log(counts @ np.exp(logs) / cycles)
        return np.concatenate([wrong, RIDGE * (logs - start)])

    rates = np.exp(least_squares(residuals, start).x)
    return rates, counts @ rates / cycles - 1


def main() -> None:
    chosen = [run for run in runs() if run.library == LIBRARY and run.source in SOURCES]
    table = Table("core", *(f"per {name}" for name in PRIOR), "left over")
    for core in sorted({run.core for run in chosen}):
        rows = [run for run in chosen if run.core == core]
        rates, errors = fitted(rows)
        left = zip(rows, errors, strict=True)
        text = ", ".join(f"{run.network.partition(':')[0]} {error:+.1%}" for run, error in left)
        table.add_row(core, *(f"{rate:.3g}" for rate in rates), text)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()

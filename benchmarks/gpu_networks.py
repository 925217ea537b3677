"""Whole networks on an H200: ``python benchmarks/gpu_networks.py [unseen|seen]``.

Prints time and energy of a step as measured (``kernels_ref/data/h200_unseen_networks.csv`` or
``h200_networks.csv``) and as ``dse simulate`` says. No constant was fitted to either; which kernels
a network runs was checked against the latter only.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from arch.load import load_architecture
from mapper.cost import Metrics
from mapper.workload.load import load_workload
from sim.kernel_models import evaluate

DATA = Path(__file__).parents[1] / "kernels_ref" / "data"
MEASURED = {"seen": DATA / "h200_networks.csv", "unseen": DATA / "h200_unseen_networks.csv"}
COLUMNS = (
    "| network | epilogues | measured us | predicted us | error % | mJ | predicted | error % |"
)


def predicted(workload: str, epilogues: str) -> Metrics:
    architecture = load_architecture("h200", {"epilogues": epilogues})
    return evaluate(load_workload(workload), architecture, {}, "analytical")


def main(arguments: Sequence[str]) -> int:
    measured = MEASURED[arguments[0] if arguments else "unseen"]
    print(f"{COLUMNS}\n|{'---|' * (COLUMNS.count('|') - 1)}")
    errors: dict[str, list[tuple[float, float]]] = {}
    with measured.open(newline="") as file:
        for row in csv.DictReader(file):
            found = predicted(row["workload"], row["epilogues"])
            time_us, energy_mj = found.latency_ps / 1e6, found.energy_pj / 1e9
            measured_us, measured_mj = float(row["t_graph_us"]), float(row["energy_mJ"])
            error = time_us / measured_us - 1, energy_mj / measured_mj - 1
            errors.setdefault(row["epilogues"], []).append(error)
            name = row["workload"].removesuffix(",dtype=bf16")
            print(
                f"| {name} | {row['epilogues']} | {measured_us:,.0f} | {time_us:,.0f} "
                f"| {100 * error[0]:+.1f} | {measured_mj:,.1f} | {energy_mj:,.1f} "
                f"| {100 * error[1]:+.1f} |"
            )
    for name, each in {
        **errors,
        "all": [pair for part in errors.values() for pair in part],
    }.items():
        times, energies = (
            statistics.fmean(abs(e) for e in part) for part in zip(*each, strict=True)
        )
        print(f"{name}: time MAPE {100 * times:.1f} %, energy {100 * energies:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

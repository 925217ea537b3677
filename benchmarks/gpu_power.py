"""Where errors of energy come from: power at the measured times and clocks, times, and both.

python benchmarks/gpu_power.py

Rows are those that judge the model of an H200 (``dse validate h200``) and have a measured power.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from arch.load import load_architecture
from dse.validation import MEASURED, SPLITS
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.demand import Array, Call
from sim.gpu.predict import GpuModel, load_of, predict

CONVOLUTION = "conv2d"


def measured_rows(split: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for name in SPLITS[split]:
        with Path(str(MEASURED / name)).open(newline="") as file:
            rows += [row for row in csv.DictReader(file) if float(row["power_W"] or "nan") > 0]
    return rows


def column(rows: list[dict[str, str]], name: str) -> Array:
    return np.array([float(row[name]) for row in rows])


def power_w(rows: list[dict[str, str]], calls: list[Call], model: GpuModel) -> Array:
    """Modelled power at the measured times and clocks."""
    load, time_us = load_of(calls, model), column(rows, "t_graph_us")
    slowdown = (model.chip.clock_mhz / column(rows, "sm_clock_MHz"))[load.owner]
    kernel_us = load.demand.time_us(slowdown)
    share = kernel_us / np.bincount(load.owner, kernel_us)[load.owner]
    energy = model.machine.energy_uj(load, slowdown, share * time_us[load.owner])
    return np.asarray(
        (model.chip.idle_w + np.bincount(load.owner, energy) / time_us) * load.devices
    )


def main() -> None:
    model = gpu_model(chip_of(load_architecture("h200")))
    rows = measured_rows("held-out")
    calls = [Call(kind=r["kind"], params=json.loads(r["params"]), dtype=r["dtype"]) for r in rows]
    found, time_us = predict(calls, model), column(rows, "t_graph_us")
    power = column(rows, "power_W")
    errors = (
        np.abs(power_w(rows, calls, model) / power - 1),
        np.abs(found.time_us / time_us - 1),
        np.abs(found.power_w * found.time_us / (power * time_us) - 1),
    )
    kinds = np.array([call.kind for call in calls])
    print(f"{'kernels':24s} rows  power at measured time    time  energy")
    groups = {"all": kinds != "", "without convolutions": kinds != CONVOLUTION}
    groups |= {kind: kinds == kind for kind in sorted(set(kinds))}
    for name, chosen in groups.items():
        at_measured, time, energy = (float(error[chosen].mean()) for error in errors)
        print(f"{name:24s} {chosen.sum():4d} {at_measured:23.1%} {time:7.1%} {energy:7.1%}")


if __name__ == "__main__":
    main()

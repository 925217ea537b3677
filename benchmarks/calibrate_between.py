"""Fit the kernels between products: ``python benchmarks/calibrate_between.py [--write]``.

Constants of each kind are fitted to its single kernels in ``kernels_ref/data/h200_streams.csv``, by
the mean absolute relative error; prints what four-fold cross-validation says. Whole networks are
not looked at.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import differential_evolution

from arch.load import load_architecture
from sim.devices.gpu import chip_of
from sim.gpu.between import KINDS, between, between_key
from sim.gpu.convolution import output_side
from sim.gpu.demand import Array, Call

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "kernels_ref" / "data" / "h200_streams.csv"
FITTED = ROOT / "sim" / "gpu" / "data" / "h200_between.json"
FOLDS = 4
#: As they are called in the measurements.
NAMES = {"add": "sum", "silu": "activation"}
BOUNDS = {
    "launch_us": (0.5, 8.0),
    "l2": (0.02, 1.5),
    "hbm": (0.2, 0.98),
    "kept": (0.0, 1.0),
    "result_ns": (0.0, 0.05),
    "row_ns": (0.0, 0.05),
    "step_ns": (0.0, 600.0),
}
#: What only windows have, and what only chains have.
OF_WINDOWS, OF_CHAINS = ("result_ns", "row_ns"), ("step_ns",)


def call_of(kind: str, p: dict[str, int]) -> Call:
    elements = p["N"] * p["C"] * p["H"] ** 2
    result, side, rows = elements, p["H"], 0
    if kind.endswith("_pool"):
        rows = p["R"]
        side = int(output_side(np.array(p["H"]), np.array(p["R"]), np.array(p["stride"])))
        result = p["N"] * p["C"] * side**2
    if kind == "mean":
        result = p["N"] * p["C"]
    if kind == "join":
        elements = result = p["N"] * (p["C"] + p["K"]) * p["H"] ** 2
    params = {"n": result, "moved": 2 * (elements + result), "R": rows, "side": side}
    return Call(kind=NAMES.get(kind, kind), params=params, dtype="bf16")


def names_of(kind: str) -> list[str]:
    left_out = () if kind.endswith("_pool") else OF_WINDOWS
    chains = () if kind in ("max_pool", "mean") else OF_CHAINS
    return [name for name in BOUNDS if name not in (*left_out, *chains)]


def fitted(calls: Sequence[Call], measured: Array) -> dict[str, float]:
    chip = chip_of(load_architecture("h200"))
    names = names_of(calls[0].kind)

    def constants(values: NDArray[np.float64]) -> dict[str, float]:
        return dict.fromkeys(BOUNDS, 0.0) | dict(zip(names, map(float, values), strict=True))

    def error(values: NDArray[np.float64]) -> float:
        times = between(calls, constants(values), chip).time_us()
        return float(np.abs(times / measured - 1).mean())

    bounds = [BOUNDS[name] for name in names]
    found = differential_evolution(error, bounds, seed=0, maxiter=150, tol=1e-7, polish=False)
    return {name: float(f"{value:.4g}") for name, value in constants(found.x).items()}


def errors(calls: Sequence[Call], measured: Array, found: dict[str, float]) -> Array:
    chip = chip_of(load_architecture("h200"))
    return np.abs(between(calls, found, chip).time_us() / measured - 1)


def main(arguments: Sequence[str]) -> int:
    rows: dict[str, list[tuple[Call, float]]] = {kind: [] for kind in KINDS}
    with MEASURED.open(newline="") as file:
        for row in csv.DictReader(file):
            call = call_of(row["kind"], json.loads(row["params"]))
            rows[call.kind].append((call, float(row["t_graph_us"])))
    constants, held_out = {}, []
    for kind, points in rows.items():
        calls, times = [call for call, _ in points], np.array([us for _, us in points])
        fold, unseen = np.arange(len(times)) % FOLDS, []
        for number in range(FOLDS):
            inside, outside = (np.flatnonzero(m) for m in (fold != number, fold == number))
            found = fitted([calls[i] for i in inside], times[inside])
            unseen += list(errors([calls[i] for i in outside], times[outside], found))
        constants[between_key(calls[0])] = found = fitted(calls, times)
        fit = errors(calls, times, found).mean()
        held_out += unseen
        print(f"{kind:12} {len(times)} kernels, not seen {np.mean(unseen):.1%}, fitted {fit:.1%}")
    print(f"all, not seen: {np.mean(held_out):.1%}")
    if "--write" in arguments:
        FITTED.write_text(json.dumps(constants, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Cycles of int8 kernels on Cortex-M cores: one fit to published runs, each run left out once.

    python benchmarks/mcu_cycles.py            # the table of leave-one-out errors
    python benchmarks/mcu_cycles.py --rates    # and the fitted cycles of every library and core

A library's cycles are linear in multiply-accumulates and values made, by kind of layer (as in
``arch/families/mcu.py``). The logarithm of each rate is a sum of a part of the library, a part of
the core and a part common to all, each drawn to zero, so that a library that was measured on
another core, or on other networks, says something about the run that is left out. Energy is the
mean power of the same library on the same board, over its other networks, times the predicted
time.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import least_squares

from mapper.memory_plan.layers import layers_of
from mapper.workload.load import load_workload

#: Quantities that rates belong to, with cycles that the fit is drawn to.
RATES = {
    "conv2d mac": 2.0,
    "conv2d output": 15.0,
    "depthwise mac": 4.0,
    "depthwise output": 25.0,
    "dense mac": 2.5,
}
#: Per operation of other layers, and per call of a kernel: too small here to be told apart.
OTHER_CYCLES, LAYER_CYCLES = 2.0, 300.0
#: How strongly the parts are drawn to zero.
RIDGE = {"common": 0.02, "library": 0.08, "core": 0.1, "stack": 0.15}
#: How strongly a library's and a board's speed as a whole are drawn to the others'.
SCALE_RIDGE = {"library": 0.16, "stack": 0.3}
#: In 2023 three vendors ran the visual wake words network in about half the cycles that their
#: kernels take for the same layers of other networks (nobody says how; dead channels, probably).
#: One factor, common to them, stands for it.
SHORTENED = "mobilenet_v1:image=96,width=0.25,classes=2"
SHORTENING = ("x-cube-ai 8.1", "plumerai 2023", "skymizer mbed", "skymizer zephyr")
#: The leave-one-out errors are judged on these cores.
JUDGED = ("cortex-m4", "cortex-m7")
Floats = NDArray[np.float64]
#: network -> what the rates multiply, and the cycles that are not fitted
Known = dict[str, tuple[Floats, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    source: str
    board: str
    core: str
    library: str
    network: str
    clock_mhz: float
    cycles: float
    latency_ms: float
    energy_uj: float | None


def runs() -> list[Run]:
    path = resources.files("kernels_ref").joinpath("data/mcu_published.csv")
    found = []
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        clock, latency = float(row["clock_mhz"]), float(row["latency_ms"])
        found.append(
            Run(
                source=row["source"],
                board=row["board"],
                core=row["core"],
                library=row["library"],
                network=row["network"],
                clock_mhz=clock,
                cycles=clock * 1e3 * latency,
                latency_ms=latency,
                energy_uj=float(row["energy_uj"]) if row["energy_uj"] else None,
            )
        )
    return found


def quantities(network: str) -> tuple[Floats, float]:
    """What the rates multiply, and the cycles that are not fitted."""
    counts = dict.fromkeys(RATES, 0.0)
    fixed = 0.0
    for layer in layers_of(load_workload(network)):
        fixed += LAYER_CYCLES
        if not layer.macs:
            fixed += OTHER_CYCLES * layer.operations
            continue
        counts[f"{layer.kind} mac"] += layer.macs
        if f"{layer.kind} output" in counts:
            counts[f"{layer.kind} output"] += layer.output.size_bytes
    return np.array(list(counts.values())), fixed


@dataclass(frozen=True, slots=True)
class Fit:
    """The linear map from parameters to log rates: one-hot blocks for library, core and stack."""

    groups: dict[str, list[str]]
    parameters: Floats

    def rates(self, run: Run) -> Floats:
        return np.exp(np.log(list(RATES.values())) + _design(self.groups, run) @ self.parameters)


def keys(run: Run) -> dict[str, str]:
    return {
        "common": "",
        "library": run.library,
        "core": run.core,
        "stack": f"{run.library} on {run.board}",
    }


def _design(groups: dict[str, list[str]], run: Run) -> Floats:
    """Rates x parameters."""
    blocks = []
    for group, names in groups.items():
        chosen = np.array([float(name == keys(run)[group]) for name in names])
        blocks.append(np.kron(chosen, np.eye(len(RATES))))
        if group in SCALE_RIDGE:
            blocks.append(np.kron(chosen, np.ones((len(RATES), 1))))
    shortened = float(run.network == SHORTENED and run.library in SHORTENING)
    blocks.append(np.full((len(RATES), 1), shortened))
    return np.concatenate(blocks, axis=1)


def _ridge(groups: dict[str, list[str]]) -> Floats:
    """In the order of the design's columns; the shortening is not drawn anywhere."""
    parts = []
    for group, names in groups.items():
        parts.append(np.full(len(names) * len(RATES), RIDGE[group]))
        if group in SCALE_RIDGE:
            parts.append(np.full(len(names), SCALE_RIDGE[group]))
    return np.concatenate([*parts, [0.001]])


def fit(rows: Sequence[Run], groups: dict[str, list[str]], known: Known) -> Fit:
    start = np.log(list(RATES.values()))
    designs = np.array([_design(groups, run) for run in rows])
    amounts = np.array([known[run.network][0] for run in rows])
    fixed = np.array([known[run.network][1] for run in rows])
    measured = np.array([run.cycles for run in rows])
    ridge = _ridge(groups)

    def parts(x: Floats) -> Floats:
        return np.asarray(np.exp(start + designs @ x) * amounts)

    def residuals(x: Floats) -> Floats:
        total = parts(x).sum(axis=1) + fixed
        return np.concatenate([np.log(total / measured), ridge * x])

    def jacobian(x: Floats) -> Floats:
        each = parts(x)
        shares = each / (each.sum(axis=1) + fixed)[:, None]
        return np.concatenate([np.einsum("rk,rkp->rp", shares, designs), np.diag(ridge)])

    solved = least_squares(residuals, np.zeros(len(ridge)), jac=jacobian)  # type: ignore[arg-type]
    return Fit(groups, solved.x)


def predicted(found: Fit, run: Run, known: Known) -> float:
    amounts, fixed = known[run.network]
    return float(found.rates(run) @ amounts + fixed)


def power_w(run: Run, others: Sequence[Run]) -> float | None:
    """Mean power of the same build on its other networks."""
    same = [
        o.energy_uj / o.latency_ms * 1e-3
        for o in others
        if o.energy_uj and (o.source, o.board, o.library) == (run.source, run.board, run.library)
    ]
    return float(np.mean(same)) if same else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", action="store_true", help="print the fitted cycles")
    options = parser.parse_args()
    rows = runs()
    known: Known = {n: quantities(n) for n in dict.fromkeys(r.network for r in rows)}
    groups = {g: sorted({keys(run)[g] for run in rows}) for g in RIDGE}
    console = Console(width=130)
    console.print(leave_one_out(rows, groups, known))
    if options.rates:
        console.print(rate_table(fit(rows, groups, known), rows))


def leave_one_out(rows: Sequence[Run], groups: dict[str, list[str]], known: Known) -> Table:
    table = Table("library", "board", "network", "measured ms", "predicted", "error", "energy")
    times, energies = [], []
    for i, run in enumerate(rows):
        if run.core not in JUDGED or not run.source.startswith("MLPerf"):
            continue
        others = [*rows[:i], *rows[i + 1 :]]
        latency = predicted(fit(others, groups, known), run, known) / (run.clock_mhz * 1e3)
        times.append(latency / run.latency_ms - 1)
        watts = power_w(run, others)
        energy = ""
        if watts is not None and run.energy_uj:
            energies.append(watts * latency * 1e3 / run.energy_uj - 1)
            energy = f"{energies[-1]:+.1%}"
        table.add_row(
            run.library,
            f"{run.board} ({run.source.split()[2]})",
            run.network.partition(":")[0],
            f"{run.latency_ms:.2f}",
            f"{latency:.2f}",
            f"{times[-1]:+.1%}",
            energy,
        )
    table.caption = f"{summary('latency', times)}\n{summary('energy', energies)}"
    return table


def summary(name: str, errors: Sequence[float]) -> str:
    size = np.abs(errors)
    return (
        f"{name}: {len(size)} runs, median error {np.median(size):.1%}, "
        f"90th percentile {np.quantile(size, 0.9):.1%}, worst {size.max():.1%}"
    )


def rate_table(found: Fit, rows: Sequence[Run]) -> Table:
    table = Table("library", "core", *(f"cycles per {name}" for name in RATES))
    seen = {}
    for run in rows:
        seen.setdefault((run.library, run.core), run)
    for (library, core), run in sorted(seen.items()):
        table.add_row(library, core, *(f"{rate:.2f}" for rate in found.rates(run)))
    return table


if __name__ == "__main__":
    main()

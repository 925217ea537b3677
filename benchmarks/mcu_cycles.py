"""Cycles of int8 kernels on Cortex-M cores: one model of published runs, each run left out once.

    python -m benchmarks.mcu_cycles            # the table of leave-one-out errors (minutes)
    python -m benchmarks.mcu_cycles --rates    # instead, the rates of every library and core

Cycles are linear in multiply-accumulates and values made, by kind of layer (as in
``arch/families/mcu.py``); rates of libraries, cores and boards are related as ``mcu_rates`` says.
How strongly is found anew for every run that is left out, from the others alone. Many runs were
submitted more than once, so the table has a second column of errors for which all runs of the
same library, board and network are left out together. Energy is the mean power of the same
build on its other networks, times the predicted time.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.mcu_kernels import BUILD_OF, BUILDS
from benchmarks.mcu_rates import Floats, Runs, fit, most_evident, predicted
from mapper.memory_plan.layers import Layer, layers_of
from mapper.workload.load import load_workload

#: Kinds of work, with cycles around which rates are sought where nothing is known of the kernels.
RATES = {
    "conv2d mac": 2.0,
    "conv2d output": 15.0,
    "depthwise mac": 4.0,
    "depthwise output": 25.0,
    "dense mac": 2.5,
}
#: Per operation of other layers, and per call of a kernel: too small here to be told apart.
OTHER_CYCLES, LAYER_CYCLES = 2.0, 300.0
#: Half of the visual wake words network does nothing: the weights of so many output channels are
#: all zero in the benchmark's file (mlcommons/tiny, vww_96_int8.tflite). These libraries, of
#: 2023, are as fast as if they leave such channels out. Live channels of each layer with weights:
#: a depthwise layer has those of the convolution before it.
PRUNED = "mobilenet_v1:image=96,width=0.25,classes=2"
PRUNING = ("x-cube-ai 8.1", "plumerai 2023", "skymizer mbed", "skymizer zephyr")
LIVE_OF_PAIRS = (8, 16, 32, 32, 64, 60, 107, 57, 30, 19, 19, 27, 32)
LIVE_CHANNELS = (*(live for live in LIVE_OF_PAIRS for _ in range(2)), 22, 2)
#: What relates runs; the first group is all of them.
GROUPS = ("all", "kernels", "library", "core", "board", "kernels on core", "library on board")
#: The leave-one-out errors are judged on these cores.
JUDGED = ("cortex-m4", "cortex-m7")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    source: str
    board: str
    core: str
    kernels: str
    library: str
    network: str
    clock_mhz: float
    cycles: float
    latency_ms: float
    energy_uj: float | None

    @property
    def configuration(self) -> tuple[str, str, str]:
        return self.library, self.board, self.network

    def group(self, name: str) -> tuple[str, ...]:
        """What runs of the same group have in common."""
        return {
            "all": (),
            "kernels": (self.kernels,),
            "library": (self.library,),
            "core": (self.core,),
            "board": (self.board,),
            "kernels on core": (self.kernels, self.core),
            "library on board": (self.library, self.board),
        }[name]


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
                kernels=row["kernels"],
                library=row["library"],
                network=row["network"],
                clock_mhz=clock,
                cycles=clock * 1e3 * latency,
                latency_ms=latency,
                energy_uj=float(row["energy_uj"]) if row["energy_uj"] else None,
            )
        )
    return found


def work(network: str, *, pruned: bool = False) -> tuple[Floats, float]:
    """How much of each kind of work, and the cycles that are not fitted."""
    counts = dict.fromkeys(RATES, 0.0)
    fixed = 0.0
    live = iter(LIVE_CHANNELS)
    share_in = 1.0
    for layer in layers_of(load_workload(network)):
        fixed += LAYER_CYCLES
        if not layer.macs:
            fixed += OTHER_CYCLES * layer.operations * share_in
            continue
        share_out = next(live) / layer.output.channels if pruned else 1.0
        counts[f"{layer.kind} mac"] += layer.macs * share_out * _used(layer, share_in)
        if f"{layer.kind} output" in counts:
            counts[f"{layer.kind} output"] += layer.output.size_bytes * share_out
        share_in = share_out
    return np.array(list(counts.values())), fixed


def prior(network: str, library: str) -> Floats:
    """Logarithms of the rates that are expected: those of a network's layers, by their amounts."""
    cycles, amounts = (dict.fromkeys(RATES, 0.0) for _ in range(2))
    layers = [x for x in layers_of(load_workload(network)) if x.macs and library in BUILD_OF]
    for layer in layers:
        rates = BUILDS[BUILD_OF[library]].of(layer, RATES["depthwise output"])
        for name, amount, rate in zip(
            ("mac", "output"), (layer.macs, layer.output.size_bytes), rates, strict=True
        ):
            kind = f"{layer.kind} {name}"
            if kind in RATES:
                cycles[kind] += amount * rate
                amounts[kind] += amount
    expected = [cycles[k] / amounts[k] if amounts[k] else RATES[k] for k in RATES]
    return np.log(expected)


def _used(layer: Layer, share_in: float) -> float:
    """The share of the input's channels that each value of the output needs."""
    return 1.0 if layer.kind == "depthwise" else share_in


def as_arrays(rows: Sequence[Run]) -> Runs:
    keys = [(run.network, run.network == PRUNED and run.library in PRUNING) for run in rows]
    known = {key: work(key[0], pruned=key[1]) for key in dict.fromkeys(keys)}
    pairs = dict.fromkeys((run.network, run.library) for run in rows)
    priors = {pair: prior(*pair) for pair in pairs}
    same = [[[float(a.group(g) == b.group(g)) for b in rows] for a in rows] for g in GROUPS]
    return Runs(
        amounts=np.array([known[key][0] for key in keys]),
        fixed=np.array([known[key][1] for key in keys]),
        log_cycles=np.log([run.cycles for run in rows]),
        prior=np.array([priors[run.network, run.library] for run in rows]),
        same=np.array(same),
    )


def power_w(run: Run, others: Sequence[Run]) -> float | None:
    """Mean power of the same build on its other networks."""
    same = [
        o.energy_uj / o.latency_ms * 1e-3
        for o in others
        if o.energy_uj and (o.source, o.board, o.library) == (run.source, run.board, run.library)
    ]
    return float(np.mean(same)) if same else None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that was not seen: time without it, and without all runs of its configuration."""

    run: Run
    latency_ms: float
    without_reruns_ms: float
    energy_error: float | None

    @property
    def error(self) -> float:
        return self.latency_ms / self.run.latency_ms - 1

    @property
    def error_without_reruns(self) -> float:
        return self.without_reruns_ms / self.run.latency_ms - 1


def leave_one_out(rows: Sequence[Run]) -> list[LeftOut]:
    """Every judged run; what relates runs is found without its whole configuration."""
    arrays = as_arrays(rows)
    judged = [i for i, r in enumerate(rows) if r.core in JUDGED and r.source.startswith("MLPerf")]
    found = {}
    for configuration in dict.fromkeys(rows[i].configuration for i in judged):
        others = np.array([i for i, r in enumerate(rows) if r.configuration != configuration])
        sizes = most_evident(arrays, others)
        strict = fit(arrays, others, sizes)
        for i in judged:
            if rows[i].configuration == configuration:
                rest = np.array([j for j in range(len(rows)) if j != i])
                near = fit(arrays, rest, sizes)
                per_ms = rows[i].clock_mhz * 1e3
                times = (predicted(arrays, fitted, i) / per_ms for fitted in (near, strict))
                found[i] = _left_out(rows, i, *times)
    return [found[i] for i in judged]


def _left_out(rows: Sequence[Run], at: int, latency_ms: float, strict_ms: float) -> LeftOut:
    run = rows[at]
    watts = power_w(run, [*rows[:at], *rows[at + 1 :]])
    energy = None
    if watts is not None and run.energy_uj:
        energy = watts * latency_ms * 1e3 / run.energy_uj - 1
    return LeftOut(run, latency_ms, strict_ms, energy)


def errors_table(found: Sequence[LeftOut]) -> Table:
    columns = ("library", "board", "network", "measured ms", "predicted", "error")
    table = Table(*columns, "without re-runs", "energy")
    for one in found:
        table.add_row(
            one.run.library,
            f"{one.run.board} ({one.run.source.split()[2]})",
            one.run.network.partition(":")[0],
            f"{one.run.latency_ms:.2f}",
            f"{one.latency_ms:.2f}",
            f"{one.error:+.1%}",
            f"{one.error_without_reruns:+.1%}",
            "" if one.energy_error is None else f"{one.energy_error:+.1%}",
        )
    configurations = {one.run.configuration: one.error_without_reruns for one in found}
    energies = [one.energy_error for one in found if one.energy_error is not None]
    table.caption = "\n".join(
        [
            summary("latency", [one.error for one in found]),
            summary("latency, configurations", list(configurations.values())),
            summary("energy", energies),
        ]
    )
    return table


def summary(name: str, errors: Sequence[float]) -> str:
    size = np.abs(errors)
    return (
        f"{name}: {len(size)}, median error {np.median(size):.1%}, "
        f"90th percentile {np.quantile(size, 0.9):.1%}, worst {size.max():.1%}, "
        f"above 20 %: {(size > 0.2).sum()}"
    )


def rate_table(rows: Sequence[Run]) -> Table:
    arrays = as_arrays(rows)
    everything = np.arange(len(rows))
    found = fit(arrays, everything, most_evident(arrays, everything))
    table = Table("library", "core", *(f"cycles per {name}" for name in RATES))
    seen = {}
    for i, run in enumerate(rows):
        seen.setdefault((run.library, run.core), i)
    for (library, core), i in sorted(seen.items()):
        table.add_row(library, core, *(f"{rate:.2f}" for rate in np.exp(found.rates[i])))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", action="store_true", help="print the fitted cycles instead")
    options = parser.parse_args()
    rows = runs()
    table = rate_table(rows) if options.rates else errors_table(leave_one_out(rows))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

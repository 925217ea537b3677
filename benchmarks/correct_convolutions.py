"""Fit what corrects the times of convolutions: ``python -m benchmarks.correct_convolutions``.

After ``benchmarks.calibrate_gpu``, on measured rows (never the unseen ones) and on the 181,000
convolutions that were only profiled (``h200_convolutions.csv.xz``). What such a call would take in
a graph is estimated from its kernels by trees fitted to the calls of which both are known. Each
group of convolutions (``convolution.correction_group``) has trees of its own, fitted in two rounds:
to absolute errors of logarithms, and on top of that with errors weighted by how much too long a
time was predicted, which is the relative error. A tenth of the shapes is left out and judges what
is written to ``sim/gpu/data/h200_convolutions.npz``. Needs LightGBM (extra ``calibrate``).
"""

from __future__ import annotations

import csv
import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.calibrate_gpu import DATA as TRAINING
from benchmarks.calibrate_gpu import H200, OUT, training_rows
from sim.gpu.convolution import correction_group, output_side
from sim.gpu.demand import Array, Call
from sim.gpu.features import features
from sim.gpu.power import steady
from sim.gpu.predict import GpuModel, load_of
from sim.gpu.trees import packed, saved_trees

Flags = NDArray[np.bool_]

DATA = Path("kernels_ref/data")
PROFILED = DATA / "h200_convolutions.csv.xz"
#: Measured after the constants were fitted.
TYPICAL = DATA / "h200_typical_library.csv"
TREES = Path("sim/gpu/data/h200_convolutions.npz")
SIZES = ("N", "C", "H", "K", "R", "stride", "groups")
#: Measured rows count this many times as much as profiled ones.
MEASURED_WEIGHT = 3.0
#: One in so many shapes is left out of the fit that is judged.
FOLDS = 10
ROUNDS = 2
#: Bounds of the weights of the second round.
LEAST_WEIGHT, MOST_WEIGHT = 0.3, 3.0
GROUPS = ("depthwise", "grouped", "plain", "dense", "fp32")
#: Trees of each round.
TREES_EACH = 250
SETTINGS = {
    "objective": "l1",
    "num_leaves": 63,
    "max_depth": 11,
    "learning_rate": 0.1,
    "min_data_in_leaf": 6,
    "feature_fraction": 0.4,
    "lambda_l2": 1.0,
    "max_bin": 255,
    "num_threads": 1,
    "boost_from_average": False,
    "verbose": -1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A call under the profiler: how many kernels, the time in which any ran, the sum of all their
    times; of the longest its runs, time and blocks; and the time of those that only help."""

    call: Call
    kernels: int
    busy_us: float
    total_us: float
    longest_us: float
    longest_runs: int
    blocks: int
    helpers_us: float


def profiled_calls() -> list[Profiled]:
    with lzma.open(PROFILED, "rt", newline="") as file:
        found = [_profiled(row) for row in csv.DictReader(file)]
    return [one for one in found if possible(one.call)]


def _profiled(row: Mapping[str, str]) -> Profiled:
    params = {name: int(row[name]) for name in SIZES}
    return Profiled(
        call=Call(kind="conv2d", params=params, dtype=row["dtype"]),
        kernels=int(row["kernels"]),
        busy_us=float(row["busy_us"]),
        total_us=float(row["total_us"]),
        longest_us=float(row["longest_us"]),
        longest_runs=int(row["longest_runs"]),
        blocks=int(row["blocks"]),
        helpers_us=float(row["helpers_us"]),
    )


def possible(call: Call) -> bool:
    """Whether a convolution has any result."""
    h, r, stride = (np.array([float(call.params[n])]) for n in ("H", "R", "stride"))
    return bool(output_side(h, r, stride)[0] >= 1)


def name(call: Call) -> str:
    return " ".join([call.dtype, *(str(call.params[size]) for size in SIZES)])


def _columns(q: Profiled, limited: float) -> list[float]:
    """``limited``: how much the kernel model expects the power limit to slow the call down."""
    logs = [q.busy_us, q.total_us, q.total_us / q.busy_us, q.longest_us / q.total_us]
    logs += [q.call.params["groups"], q.longest_us / q.longest_runs, max(1, q.blocks)]
    logs += [q.busy_us / q.kernels]
    others = [q.kernels, q.helpers_us / q.total_us, q.longest_runs, q.call.params["N"], limited]
    return [*(float(np.log2(value)) for value in logs), *others]


def in_graphs(found: Sequence[Profiled], measured: Mapping[str, float], limited: Array) -> Array:
    """Times in a graph, of all calls, from the calls of which they are known."""
    table = np.array([_columns(q, slow) for q, slow in zip(found, limited, strict=True)])
    busy = np.array([q.busy_us for q in found])
    known = [i for i, q in enumerate(found) if name(q.call) in measured]
    ratios = np.log([measured[name(found[i].call)] / busy[i] for i in known])
    groups = np.random.default_rng(0).integers(5, size=len(known))
    errors = np.zeros(len(known))
    for fold in range(5):
        own = groups == fold
        trees = _graph_trees().fit(table[known][~own], ratios[~own])
        errors[own] = np.expm1(trees.predict(table[known][own]) - ratios[own])
    show("graph from profile", errors, busy[known])
    return np.asarray(busy * np.exp(_graph_trees().fit(table[known], ratios).predict(table)))


def _graph_trees() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        loss="absolute_error",
        max_iter=300,
        max_leaf_nodes=12,
        learning_rate=0.06,
        min_samples_leaf=6,
        l2_regularization=1.0,
        max_features=0.5,
        early_stopping=False,
        random_state=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Calls, what their times are functions of, and by how much (a logarithm) the kernel model
    must be corrected."""

    groups: NDArray[np.str_]
    features: list[str]
    table: Array
    logs: Array
    time_us: Array
    measured: Flags
    left_out: Flags


def left_out(calls: Sequence[Call]) -> Flags:
    """One shape in so many, whatever its type."""
    seen: dict[tuple[int, ...], bool] = {}
    drawn = np.random.default_rng(0).integers(FOLDS, size=len(calls)) == 0
    shapes = [tuple(call.params[size] for size in SIZES) for call in calls]
    return np.array([seen.setdefault(s, bool(d)) for s, d in zip(shapes, drawn, strict=True)])


def samples_of(model: GpuModel) -> Samples:
    rows = [row for row in training_rows([*TRAINING, TYPICAL]) if row.call.kind == "conv2d"]
    measured = {name(row.call): row.time_us for row in rows}
    profiled = profiled_calls()
    new = [i for i, q in enumerate(profiled) if name(q.call) not in measured]
    calls = list({name(row.call): row.call for row in rows}.values())
    calls += [q.call for q in profiled]
    load = load_of(calls, model)
    highest_us = load.demand.time_us()[np.argsort(load.owner)]
    steady_us = steady(load, model.machine).time_us
    count = len(measured)
    limited = np.log(steady_us / highest_us)[count:]
    known_us = np.array([*measured.values(), *in_graphs(profiled, measured, limited)])
    kept = [*range(count), *(count + i for i in new)]
    # Features are of the time at the highest clock: what the power limit does comes afterwards.
    found = features(calls, highest_us)
    return Samples(
        groups=np.array([correction_group(calls[i]) for i in kept]),
        features=list(found),
        table=np.column_stack(list(found.values()))[kept].astype(np.float32),
        logs=np.log(known_us / steady_us)[kept],
        time_us=known_us[kept],
        measured=np.arange(len(kept)) < count,
        left_out=left_out([calls[i] for i in kept]),
    )


def fit(samples: Samples, used: Flags) -> list[lightgbm.Booster]:
    """The relative error of a time ``t`` predicted as ``p`` grows with ``p / t``."""
    table, logs = samples.table[used], samples.logs[used]
    own = np.where(samples.measured[used], MEASURED_WEIGHT, 1.0)
    weights, start, found = own, np.zeros(len(logs)), []
    for number in range(ROUNDS):
        data = lightgbm.Dataset(table, logs, weight=weights, init_score=start)
        found.append(lightgbm.train({**SETTINGS, "seed": number}, data, TREES_EACH))
        start = start + found[-1].predict(table)
        weights = own * np.clip(np.exp(start - logs), LEAST_WEIGHT, MOST_WEIGHT)
    return found


def show(what: str, errors: Array, time_us: Array) -> None:
    size, long = np.abs(errors), time_us > 50
    print(f"{what:28s} {len(size):6d} rows  mean {size.mean():6.1%}  median", end="")
    print(f" {np.median(size):6.1%}  bias {errors.mean():+6.1%}", end="")
    print(f"  above 50 us {size[long].mean():6.1%} ({long.sum()})", flush=True)


def fitted(samples: Samples) -> dict[str, list[lightgbm.Booster]]:
    """By group, on all shapes but those left out, which judge the trees."""
    errors, groups = np.zeros(len(samples.logs)), {}
    for group in GROUPS:
        own = samples.groups == group
        groups[group] = fit(samples, own & ~samples.left_out)
        judged = own & samples.left_out
        total = np.sum([each.predict(samples.table[judged]) for each in groups[group]], axis=0)
        errors[judged] = np.expm1(total - samples.logs[judged])
        show(group, errors[judged], samples.time_us[judged])
    for what, rows in (
        ("all", samples.left_out),
        ("measured", samples.left_out & samples.measured),
    ):
        show(f"{what}, kernel model", np.expm1(-samples.logs[rows]), samples.time_us[rows])
        show(f"{what}, with trees", errors[rows], samples.time_us[rows])
    return groups


def nodes_of(booster: lightgbm.Booster) -> list[list[list[float]]]:
    """Trees as lists of nodes, children after their parents."""
    found = []
    for tree in booster.dump_model()["tree_info"]:
        nodes: list[list[float]] = []
        _append(tree["tree_structure"], nodes)
        found.append(nodes)
    return found


def _append(node: Mapping[str, Any], nodes: list[list[float]]) -> int:
    own = len(nodes)
    if "leaf_value" in node:
        nodes.append([node["leaf_value"]])
        return own
    nodes.append([])
    low = _append(node["left_child"], nodes)
    high = _append(node["right_child"], nodes)
    nodes[own] = [node["split_feature"], node["threshold"], low, high]
    return own


def main() -> None:
    model = GpuModel(chip=H200, constants=json.loads(OUT.read_text()))
    samples = samples_of(model)
    trees = {
        group: packed([tree for booster in boosters for tree in nodes_of(booster)])
        for group, boosters in fitted(samples).items()
    }
    saved_trees(TREES, samples.features, trees)


if __name__ == "__main__":
    main()

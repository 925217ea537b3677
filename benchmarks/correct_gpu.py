"""Fit what corrects predicted times: ``python -m benchmarks.correct_gpu [GROUP ...]``.

After ``benchmarks.calibrate_gpu``, on the same rows, never the unseen ones, and on calls that were
only profiled (``h200_profiled.csv.gz``): the times of their kernels stand for the call's time in a
graph after a first set of trees, fitted to calls of which both are known, has put them right. The
fit minimises the relative error: absolute errors of logarithms, weighted by how much too long the
last round's prediction was. Prints what five-fold cross-validation by shape gives, and writes
``sim/gpu/data/h200_corrections.json``. Those of convolutions: ``benchmarks.correct_convolutions``.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.calibrate_gpu import H200, OUT, training_rows
from sim.gpu.demand import Array, Call
from sim.gpu.features import features, group_of
from sim.gpu.power import steady
from sim.gpu.predict import GpuModel, load_of

DATA = Path("kernels_ref/data")
CORRECTIONS = Path("sim/gpu/data/h200_corrections.json")
FOLDS = 5
ROUNDS = 2
#: Measured rows count this many times as much as profiled ones.
MEASURED_WEIGHT = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Of one group's trees."""

    trees: int
    leaves: int
    rate: float


SIZES = {
    "gemm": Size(trees=250, leaves=16, rate=0.06),
    "bmm": Size(trees=160, leaves=10, rate=0.06),
    "sdpa": Size(trees=120, leaves=10, rate=0.06),
    "rows": Size(trees=100, leaves=8, rate=0.06),
}
#: A group is corrected if that takes away at least this share of its error in cross-validation.
LEAST_GAIN = 0.03
DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A call's kernels under the profiler: how many, their time in all, of the longest, and of
    those that only lay out or pad."""

    call: Call
    kernels: int
    total_us: float
    longest_us: float
    helpers_us: float


def profiled_calls() -> list[Profiled]:
    with gzip.open(DATA / "h200_profiled.csv.gz", "rt", newline="") as file:
        return [
            Profiled(
                call=Call(kind=r["kind"], params=json.loads(r["params"]), dtype=r["dtype"]),
                kernels=int(r["kernels"]),
                total_us=float(r["total_us"]),
                longest_us=float(r["longest_us"]),
                helpers_us=float(r["helpers_us"]),
            )
            for r in csv.DictReader(file)
        ]


def name(call: Call) -> str:
    return f"{call.kind} {json.dumps(call.params, sort_keys=True)} {call.dtype}"


def boosted(size: Size, seed: int = 0) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        loss="absolute_error",
        max_iter=size.trees,
        max_leaf_nodes=size.leaves,
        max_depth=DEPTH,
        learning_rate=size.rate,
        min_samples_leaf=6,
        l2_regularization=1.0,
        max_features=0.4,
        early_stopping=False,
        random_state=seed,
    )


def fit(size: Size, table: Array, logs: Array, weights: Array) -> HistGradientBoostingRegressor:
    """The relative error of a time ``t`` predicted as ``p`` grows with ``p / t``."""
    own = weights
    for _ in range(ROUNDS):
        found = boosted(size).fit(table, logs, sample_weight=own)
        own = weights * np.clip(np.exp(found.predict(table) - logs), 0.3, 3.0)
    return found


def table_of(calls: Sequence[Call], time_us: Array) -> tuple[list[str], Array]:
    """Features by name; kinds of one group have the same ones."""
    table: Array | None = None
    names: list[str] = []
    for kind in sorted({call.kind for call in calls}):
        index = [i for i, call in enumerate(calls) if call.kind == kind]
        found = features([calls[i] for i in index], time_us[index])
        names = list(found)
        table = np.zeros((len(calls), len(names))) if table is None else table
        table[index] = np.column_stack([found[n] for n in names])
    assert table is not None
    return names, np.asarray(table)


def in_graphs(group: Sequence[Profiled], measured: Mapping[str, float]) -> Array:
    """Times in a graph of profiled calls, from those of which they are known."""

    def columns(q: Profiled) -> list[float]:
        p = q.call.params
        logs = [np.log2(q.total_us), np.log2(q.longest_us / q.total_us)]
        return [*logs, q.kernels, q.helpers_us / q.total_us, np.log2(p.get("groups", 1))]

    table = np.array([columns(q) for q in group])
    total = np.array([q.total_us for q in group])
    known = [i for i, q in enumerate(group) if name(q.call) in measured]
    if len(known) < 50:
        return total
    ratios = np.log([measured[name(group[i].call)] / total[i] for i in known])
    size = Size(trees=200, leaves=10, rate=0.06)
    found = boosted(size).fit(table[known], ratios)
    return np.asarray(total * np.exp(found.predict(table)))


def folds(names: Iterable[str]) -> Array:
    """A number for every shape, the same wherever it occurs."""
    seen: dict[str, int] = {}
    rng = np.random.default_rng(0)
    return np.array([seen.setdefault(n, int(rng.integers(FOLDS))) for n in names])


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    names: tuple[str, ...]
    features: list[str]
    table: Array
    logs: Array
    measured: Array


def samples_of(group: str, model: GpuModel, profiled: Sequence[Profiled]) -> Samples:
    rows = [row for row in training_rows() if group_of(row.call) == group]
    measured = {name(row.call): row.time_us for row in rows}
    extra = [q for q in profiled if group_of(q.call) == group]
    times = in_graphs(extra, measured) if extra else np.zeros(0)
    new = [i for i, q in enumerate(extra) if name(q.call) not in measured]
    calls = [row.call for row in rows] + [extra[i].call for i in new]
    known_us = np.concatenate([np.array([row.time_us for row in rows]), times[new]])
    load = load_of(calls, model)
    # Features are of the time at the highest clock: what the power limit does comes afterwards.
    highest_us = load.demand.time_us()[np.argsort(load.owner)]
    found = steady(load, model.machine)
    names, table = table_of(calls, highest_us)
    return Samples(
        names=tuple(name(call) for call in calls),
        features=names,
        table=table,
        logs=np.log(known_us / found.time_us),
        measured=np.arange(len(calls)) < len(rows),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Trees fitted on all folds but one (or on all, if it is None)."""

    size: Size
    samples: Samples
    profiled: bool
    fold: int | None

    @property
    def left_out(self) -> Array:
        return np.asarray(folds(self.samples.names) == self.fold)


def run(task: Task) -> HistGradientBoostingRegressor:
    samples = task.samples
    used = ~task.left_out & (samples.measured | task.profiled)
    weights = np.where(samples.measured, MEASURED_WEIGHT, 1.0)
    return fit(task.size, samples.table[used], samples.logs[used], weights[used])


def cross_validated(tasks: Sequence[Task], found: Sequence[HistGradientBoostingRegressor]) -> Array:
    """Relative errors of the measured rows, each predicted without its shape."""
    samples = tasks[0].samples
    errors = np.zeros(len(samples.logs))
    for task, trees in zip(tasks, found, strict=True):
        judged = task.left_out & samples.measured
        if judged.any():
            errors[judged] = np.expm1(trees.predict(samples.table[judged]) - samples.logs[judged])
    return errors[samples.measured]


def exported(trees: HistGradientBoostingRegressor, names: Sequence[str]) -> dict[str, Any]:
    """Trees as lists of nodes; the constant that boosting starts from is a tree of one leaf."""
    rows: list[list[list[float]]] = [[[_short(float(trees._baseline_prediction.ravel()[0]))]]]
    for (predictor,) in trees._predictors:
        rows.append([_node(node) for node in predictor.nodes])
    return {"features": list(names), "trees": rows}


def _node(node: Any) -> list[float]:
    if node["is_leaf"]:
        return [_short(float(node["value"]))]
    split = int(node["feature_idx"]), _short(float(node["num_threshold"]))
    return [*split, int(node["left"]), int(node["right"])]


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def show(group: str, what: str, errors: Array) -> None:
    size = np.abs(errors)
    print(f"{group:8s} {what:24s} {len(size):5d} rows  mean {size.mean():6.1%}", end="")
    print(f"  median {np.median(size):6.1%}  bias {errors.mean():+6.1%}", flush=True)


def correction(
    group: str, model: GpuModel, profiled: Sequence[Profiled], pool: Executor
) -> dict[str, Any] | None:
    """Of the ways to fit the one that cross-validation prefers, if it helps at all."""
    samples = samples_of(group, model, profiled)
    before = np.expm1(-samples.logs[samples.measured])
    show(group, "kernel model", before)
    ways = [False] if samples.measured.all() else [False, True]
    tasks = [
        Task(size=SIZES[group], samples=samples, profiled=way, fold=fold)
        for way in ways
        for fold in (*range(FOLDS), None)
    ]
    found = list(pool.map(run, tasks))
    best, least = None, (1 - LEAST_GAIN) * float(np.abs(before).mean())
    for first in range(0, len(tasks), FOLDS + 1):
        last = first + FOLDS
        errors = cross_validated(tasks[first:last], found[first:last])
        show(group, "with profiled calls" if tasks[first].profiled else "with trees", errors)
        if np.abs(errors).mean() < least:
            best, least = found[last], float(np.abs(errors).mean())
    return None if best is None else exported(best, samples.features)


def main(wanted: Sequence[str]) -> None:
    model = GpuModel(chip=H200, constants=json.loads(OUT.read_text()))
    profiled = profiled_calls()
    document = json.loads(CORRECTIONS.read_text()) if CORRECTIONS.exists() else {}
    # A process that is forked would inherit locks of the threads that the first fit started.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for group in wanted or sorted(SIZES):
            document.pop(group, None)
            found = correction(group, model, profiled, pool)
            if found is not None:
                document[group] = found
            CORRECTIONS.write_text(json.dumps(document, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

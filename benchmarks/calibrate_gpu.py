"""Fit the constants of the GPU kernel model: ``python -m benchmarks.calibrate_gpu [CLASS ...]``.

Uses the training rows of ``dse validate``, never those that judge,
and writes ``sim/gpu/data/h200.json``. With classes, only their constants are fitted again; with
``power``, only energies; with ``blocks``, only what the layers of a network have besides, which is
to be done again after ``benchmarks.correct_gpu``. Every
constant is a rate, a latency or an energy of a class of kernels, fitted to measured times by the
least absolute relative error (a soft L1 loss, so that single outliers do not bend it; powers by
the logarithm) and held near its start where the data say nothing.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from arch.load import load_architecture
from benchmarks.gpu_start_constants import POWER, STARTS, Constants, start_of
from dse.validation import SPLITS
from sim.devices.gpu import chip_of
from sim.gpu.collective import INSIDE
from sim.gpu.correction import fitted_corrections
from sim.gpu.demand import Array, Call
from sim.gpu.power import SCALES, Load, joined_prices, prices_of
from sim.gpu.predict import MODELS, GpuModel, class_of, load_of, predict
from sim.gpu.workload import in_order

DATA = [Path("kernels_ref/data") / name for name in SPLITS["train"]]
OUT = Path("sim/gpu/data/h200.json")

H200 = chip_of(load_architecture("h200"))


#: A class whose energies are those of all kernels.
PLAIN = dict.fromkeys(SCALES.values(), 1.0)
#: How near to that a class stays: as if a tenfold energy were 23 % of error in one more row.
CLASS_PRIOR = 0.1

#: Shares of a peak, which are 1 at most.
SHARES = ("hbm", "copy_hbm", "rate", "l2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    call: Call
    time_us: float
    cold_us: float
    power_w: float
    clock_mhz: float


def training_rows(paths: Sequence[Path] = tuple(DATA)) -> list[Row]:
    rows = []
    for path in paths:
        with path.open(newline="") as file:
            rows += [_row(line) for line in csv.DictReader(file)]
    return rows


def _row(line: dict[str, str]) -> Row:
    """Cold times and powers are NaN where they were not measured."""
    params = json.loads(line["params"])
    return Row(
        call=Call(kind=line["kind"], params=params, dtype=line["dtype"]),
        time_us=float(line["t_graph_us"]),
        cold_us=float(line["t_cold_us"] or "nan"),
        power_w=float(line["power_W"] or "nan"),
        clock_mhz=float(line["sm_clock_MHz"]),
    )


def fitted(
    start: Constants, residuals: Callable[[Constants], Array], prior: float = 0.02
) -> Constants:
    """Positive constants that make the residuals small."""
    names, first = list(start), np.log(list(start.values()))

    def vector(x: Array) -> Array:
        with np.errstate(all="ignore"):
            found = residuals(dict(zip(names, np.exp(x), strict=True)))
        return np.concatenate(
            [np.nan_to_num(found, nan=3, posinf=3, neginf=-3), prior * (x - first)]
        )

    limits = np.array([0.0 if name.split("|")[-1] in SHARES else np.inf for name in names])
    first = np.minimum(first, limits - 1e-3)
    solved = least_squares(
        vector,
        first,
        bounds=(-np.inf, limits),
        loss="soft_l1",
        f_scale=0.05,
        max_nfev=40,
        diff_step=1e-2,
    )
    return {name: float(f"{v:.4g}") for name, v in zip(names, np.exp(solved.x), strict=True)}


def log_error(rows: Sequence[Row], model: GpuModel) -> Array:
    measured = np.array([row.time_us for row in rows])
    return np.asarray(np.log(predict([row.call for row in rows], model).time_us / measured))


def relative_error(rows: Sequence[Row], model: GpuModel) -> Array:
    """What the model is judged by; it matters where errors are large."""
    return np.asarray(np.expm1(np.minimum(log_error(rows, model), 3.0)))


def in_blocks(constants: Mapping[str, Any]) -> GpuModel:
    """Kernels of blocks are corrected like others."""
    return GpuModel(chip=H200, constants=constants, corrections=fitted_corrections())


def with_class(constants: Mapping[str, Any], key: str, own: Constants) -> GpuModel:
    scales = {name: constants.get(key, PLAIN).get(name, 1.0) for name in PLAIN}
    return GpuModel(chip=H200, constants={**constants, key: {**scales, **own}})


def fit_class(key: str, rows: Sequence[Row], constants: dict[str, Constants]) -> None:
    own = fitted(start_of(key), lambda c: relative_error(rows, with_class(constants, key, c)))
    constants[key] = dict(with_class(constants, key, own).constants[key])


def _fit_one(task: tuple[str, list[Row], dict[str, Constants]]) -> tuple[str, Constants]:
    """Times, then energies, of one class; classes do not depend on each other."""
    key, rows, constants = task
    fit_class(key, rows, constants)
    fit_scales(key, [row for row in rows if row.power_w > 0], constants)
    return key, constants[key]


def classes(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.call.kind != "block":
            found[MODELS[row.call.kind].key(row.call)].append(row)
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Kernels as they were measured, whose power depends on their energies alone."""

    rows: Sequence[Row]
    load: Load
    time_us: Array
    slowdown: Array

    @property
    def logs(self) -> Array:
        return np.log([row.power_w for row in self.rows])

    def power_w(self, constants: Mapping[str, Constants]) -> Array:
        """Modelled power at the measured times and clocks."""
        machine = GpuModel(chip=H200, constants=constants).machine
        prices = joined_prices(
            [
                prices_of(
                    row.call.dtype, 1, constants[class_of(row.call, constants)], constants["power"]
                )
                for row in self.rows
            ]
        )
        load = replace(self.load, prices=prices)
        energy = machine.energy_uj(load, self.slowdown, self.time_us)
        return np.asarray((H200.idle_w + energy / self.time_us) * load.devices)


def drawn(rows: Sequence[Row], constants: Mapping[str, Constants]) -> Drawn:
    """Calls of one kernel each."""
    model = GpuModel(chip=H200, constants=constants)
    return Drawn(
        rows=rows,
        load=in_order(load_of([row.call for row in rows], model)),
        time_us=np.array([row.time_us for row in rows]),
        slowdown=np.array([H200.clock_mhz / row.clock_mhz for row in rows]),
    )


def fit_power(rows: Sequence[Row], constants: dict[str, Constants]) -> None:
    """Energies of operations and bytes of all kernels, then how much each class differs."""
    kernels = [row for row in rows if row.call.kind != "block" and row.power_w > 0]
    fixed = {k: v for k, v in constants["power"].items() if k not in POWER}
    by_class = classes(kernels)
    for key in by_class:
        constants[key] = {**constants[key], **PLAIN}

    measured = drawn(kernels, constants)

    def residuals(c: Constants) -> Array:
        return np.log(measured.power_w({**constants, "power": {**fixed, **c}})) - measured.logs

    constants["power"] = {**fixed, **fitted(POWER, residuals)}
    for key, own in by_class.items():
        fit_scales(key, own, constants)


def fit_scales(key: str, rows: Sequence[Row], constants: dict[str, Constants]) -> None:
    """What the energies of a class are, relative to those of all kernels."""
    if not rows:
        return
    measured = drawn(rows, constants)

    def residuals(c: Constants) -> Array:
        changed = {**constants, key: {**constants[key], **c}}
        return np.log(measured.power_w(changed)) - measured.logs

    constants[key] |= fitted(PLAIN, residuals, prior=CLASS_PRIOR)


def fit_limits(rows: Sequence[Row], constants: dict[str, Constants]) -> None:
    alone = [row for row in rows if row.power_w > 0 and row.call.params.get("tp", 1) == 1]
    hot = [row.power_w for row in alone if row.clock_mhz < 1900]
    cold = [row.cold_us - row.time_us for row in rows if row.time_us < 200 and row.cold_us > 0]
    constants["power"]["limit"] = round(float(np.median(hot)) / H200.power_limit_w, 4)
    constants["power"]["cold_us"] = round(float(np.median(cold)), 3)


def fit_blocks(rows: Sequence[Row], constants: dict[str, Constants]) -> None:
    """The elementwise kernels inside of blocks, and the sums over GPUs, from whole blocks."""
    blocks = [row for row in rows if row.call.kind == "block" and row.call.params["tp"] == 1]
    start = {f"{k}|{n}": v for k in ("hot", "strided") for n, v in STARTS[k].items()}

    def parted(c: Constants) -> dict[str, Constants]:
        parts: dict[str, Constants] = {"hot": dict(PLAIN), "strided": dict(PLAIN)}
        for name, value in c.items():
            parts[name.split("|")[0]][name.split("|")[1]] = value
        return parts

    found = fitted(
        start,
        lambda c: log_error(blocks, in_blocks({**constants, **parted(c)})),
        prior=0.15,
    )
    constants.update(parted(found))
    _fit_sums(rows, constants)


def _fit_sums(rows: Sequence[Row], constants: dict[str, Constants]) -> None:
    shared = [row for row in rows if row.call.kind == "block" and row.call.params["tp"] > 1]
    alone = constants["collective.all_reduce"]
    constants[INSIDE] = {**alone, **start_of(INSIDE)}
    own = fitted(
        start_of(INSIDE),
        lambda c: relative_error(shared, in_blocks(with_class(constants, INSIDE, c).constants)),
    )
    constants[INSIDE] |= own


def show(name: str, errors: Array) -> None:
    share = np.abs(np.expm1(errors))
    middle = float(np.median(share))
    print(f"{name:24s} {len(errors):4d} rows  mean {share.mean():6.1%}  median {middle:6.1%}")


def main(wanted: Sequence[str]) -> None:
    rows = training_rows()
    constants: dict[str, Constants] = json.loads(OUT.read_text()) if OUT.exists() else {}
    constants.setdefault("power", dict(POWER))
    fit_limits(rows, constants)
    by_class = classes(rows)
    for key in by_class:
        constants.setdefault(key, {**PLAIN, **start_of(key)})
    if list(wanted) == ["power"]:
        fit_power(rows, constants)
        _fit_sums(rows, constants)
        _save(constants)
        return
    if list(wanted) == ["blocks"]:
        _blocks_too(rows, constants)
        return
    power_too = not wanted
    chosen = {
        key: own
        for key, own in by_class.items()
        if not wanted or any(key.startswith(prefix) for prefix in wanted)
    }
    for round_number in range(2 if power_too else 1):
        with ProcessPoolExecutor() as pool:
            tasks = [(key, own, constants) for key, own in chosen.items()]
            constants.update(pool.map(_fit_one, tasks))
        for key, own in chosen.items():
            error = log_error(own, GpuModel(chip=H200, constants=constants))
            show(f"{round_number} {key}", error)
        if power_too:
            fit_power(rows, constants)
            print({k: round(v, 3) for k, v in constants["power"].items()})
        _save(constants)
    _blocks_too(rows, constants)


def _blocks_too(rows: Sequence[Row], constants: dict[str, Constants]) -> None:
    fit_blocks(rows, constants)
    blocks = [row for row in rows if row.call.kind == "block" and row.call.params["tp"] == 1]
    show("blocks", log_error(blocks, in_blocks(constants)))
    _save(constants)


def _save(constants: Mapping[str, Constants]) -> None:
    OUT.write_text(json.dumps(constants, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

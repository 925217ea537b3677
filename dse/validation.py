"""Predictions against measurements: rows of a CSV, errors by kind, the worst rows."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from arch.errors import InputError, Problem, unknown
from kernels_ref.library.kinds import KINDS
from mapper.workload.models.layer import LAYERS
from sim.gpu.chip import BYTES
from sim.gpu.collective import KINDS as COLLECTIVES
from sim.gpu.constants import fitted_constants
from sim.gpu.demand import Array, Call
from sim.gpu.predict import GpuModel, class_of, kernels_of, predict

COLUMNS = ("kind", "params", "dtype", "t_graph_us")
#: Columns that measurements have besides; of these, ``energy_mJ`` is compared where it is given.
OTHER_COLUMNS = ("t_cold_us", "energy_mJ", "power_W", "sm_clock_MHz", "repeat")
#: The sizes that each kind must have.
PARAMS: dict[str, tuple[str, ...]] = {
    **{name: kind.params for name, kind in KINDS.items()},
    "block": ("model", "B", "S", "ctx"),
    **dict.fromkeys(COLLECTIVES, ("bytes", "gpus")),
}
#: Sizes that a kind may have besides.
OPTIONAL = {"block": ("tp",)}

#: Errors are also given of kernels that take longer than this.
LONG_US = 50.0
MEASURED = files("kernels_ref") / "data"
TRAINING = (
    "h200_library.csv",
    "h200_hard_library.csv",
    "h200_hard2_library.csv",
    "h200_groups_library.csv",
    "h200_seen_library.csv",
    "h200_seen2_library.csv",
    "h200_more_library.csv",
    "h200_others_library.csv",
)
#: What is shipped: the rows that constants were fitted to, and those that only judge: the latest,
#: an earlier set, and ``two-gpus``.
SPLITS = {
    "train": TRAINING,
    "held-out": ("h200_unseen2_library.csv",),
    "held-out-before": ("h200_unseen_library.csv",),
    "all": (*TRAINING, "h200_unseen_library.csv", "h200_unseen2_library.csv"),
    "two-gpus": ("h200_unseen_collectives.csv",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One row. ``line`` is where it stands in the file; an energy that was not measured is NaN."""

    call: Call
    time_us: float
    energy_mj: float
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How far predictions are from measurements, as shares of what was measured."""

    group: str
    rows: int
    mape: float
    median: float
    p90: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    rows: tuple[Measured, ...]
    time_us: Array
    energy_mj: Array
    warnings: tuple[str, ...]

    @property
    def time_error(self) -> Array:
        return np.asarray(self.time_us / np.array([row.time_us for row in self.rows]) - 1)

    @property
    def energy_error(self) -> Array:
        return np.asarray(self.energy_mj / np.array([row.energy_mj for row in self.rows]) - 1)


def read_rows(path: Path) -> tuple[list[Measured], list[str]]:
    """Rows of a CSV and what was ignored in it; ``InputError`` with every row that is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets write a byte-order mark
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Problem(f"cannot read '{path}': {error}", where="--csv")) from error
    reader = csv.DictReader(text.splitlines())
    if not reader.fieldnames:
        message = f"the file is empty; its first line must name the columns {', '.join(COLUMNS)}"
        raise InputError(Problem(message, where=str(path)))
    missing = [name for name in COLUMNS if name not in reader.fieldnames]
    if missing:
        columns = "column" if len(missing) == 1 else "columns"
        message = f"no {columns} {', '.join(missing)}; needed are {', '.join(COLUMNS)}"
        raise InputError(Problem(message, where=str(path)))
    twice = sorted({n for n in reader.fieldnames if reader.fieldnames.count(n) > 1})
    if twice:
        message = f"the first line names {', '.join(twice)} more than once"
        raise InputError(Problem(message, where=str(path)))
    rows, problems = [], []
    ignored: set[tuple[str, str]] = set()
    for line in reader:
        try:
            rows.append(_row(line, reader.line_num, ignored))
        except ValueError as error:
            problems.append(Problem(str(error), where=f"{path}:{reader.line_num}"))
    if problems:
        raise InputError(problems[:20])
    if not rows:
        raise InputError(Problem("there are no rows", where=str(path)))
    unused = [name for name in reader.fieldnames if name not in (*COLUMNS, *OTHER_COLUMNS)]
    return rows, [
        *(f"unknown column '{name}' ignored" for name in unused),
        *(f"{kind}: unknown size '{name}' ignored" for kind, name in sorted(ignored)),
    ]


def _row(line: Mapping[str, str], number: int, ignored: set[tuple[str, str]]) -> Measured:
    if None in line or None in line.values():
        raise ValueError("the row has more or fewer cells than the first line has columns")
    kind, dtype = line["kind"], line["dtype"]
    if kind not in PARAMS:
        raise ValueError(unknown("kind", kind, list(PARAMS)))
    if dtype not in BYTES:
        raise ValueError(unknown("data type", dtype, list(BYTES)))
    try:
        params = json.loads(line["params"])
    except json.JSONDecodeError as error:
        raise ValueError(f"params is not JSON: {error}") from error
    if not isinstance(params, dict):
        raise ValueError(f"params is {line['params']!r}, a JSON object is needed")
    ignored |= {(kind, name) for name in params if name not in _known(kind)}
    missing = [f"'{name}'" for name in PARAMS[kind] if name not in params]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        needed = ", ".join(PARAMS[kind])
        raise ValueError(f"{kind} needs {needed}; {', '.join(missing)} {are} missing")
    checked = {name: _size(name, params[name]) for name in PARAMS[kind]}
    checked |= {
        name: _size(name, params[name]) for name in OPTIONAL.get(kind, ()) if name in params
    }
    _divides(checked)
    call = Call(kind=kind, params=checked, dtype=dtype)
    _modelled(call)
    return Measured(
        call=call,
        time_us=_positive("t_graph_us", line["t_graph_us"]),
        energy_mj=_energy(line.get("energy_mJ") or "nan"),
        line=number,
    )


def _energy(text: str) -> float:
    """NaN where it was not measured."""
    return math.nan if text.lower() == "nan" else _positive("energy_mJ", text)


def _positive(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is '{text}', a number above 0 is needed")
    return value


#: The least that sizes may be, where it is not 1.
LEAST = {"causal": 0, "ctx": 0, "gpus": 2}
#: Sizes that must be multiples of another one.
MULTIPLES = (("C", "groups"), ("K", "groups"), ("H", "Hkv"))


def _divides(params: Mapping[str, Any]) -> None:
    for name, unit in MULTIPLES:
        if unit in params and params[name] % params[unit]:
            raise ValueError(f"{name} is {params[name]}, not a multiple of {unit} {params[unit]}")


def _modelled(call: Call) -> None:
    try:
        for kernel in kernels_of(call):
            class_of(kernel, fitted_constants())
    except InputError as error:
        raise ValueError(str(error)) from error


def _known(kind: str) -> tuple[str, ...]:
    return (*PARAMS[kind], *OPTIONAL.get(kind, ()))


def _size(name: str, value: object) -> Any:
    if name == "model":
        model = str(value).lower().replace("_", "-")
        if model not in LAYERS:
            raise ValueError(unknown("model", str(value), list(LAYERS)))
        return model
    if isinstance(value, bool):
        return int(value)
    least = LEAST.get(name, 1)
    if not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}, a whole number of at least {least} is needed")
    return value


def compare(
    rows: Sequence[Measured],
    model: GpuModel,
    warnings: Sequence[str] = (),
    overhead_us: float = 0.0,
) -> Comparison:
    """``overhead_us`` is what a measurement by the host's clock has besides the kernel."""
    found = predict([row.call for row in rows], model)
    return Comparison(
        rows=tuple(rows),
        time_us=found.time_us + overhead_us,
        energy_mj=found.energy_mj,
        warnings=tuple(warnings),
    )


def shipped(split: str) -> tuple[list[Measured], list[str]]:
    """Rows of the measurements of an H200 that are shipped, and warnings."""
    found = [read_rows(Path(str(MEASURED / name))) for name in SPLITS[split]]
    rows = [row for part, _ in found for row in part]
    return rows, [warning for _, warnings in found for warning in warnings]


def errors(group: str, shares: Array) -> Errors:
    size = np.abs(shares)
    return Errors(
        group=group,
        rows=len(shares),
        mape=float(size.mean()),
        median=float(np.median(size)),
        p90=float(np.quantile(size, 0.9)),
        bias=float(shares.mean()),
    )


Chosen = Callable[[Measured], bool]


def _groups(rows: Sequence[Measured]) -> Iterator[tuple[str, Chosen]]:
    yield "all", lambda row: True
    yield f"all > {LONG_US:.0f} us", lambda row: row.time_us > LONG_US
    for kind in sorted({row.call.kind for row in rows}):
        yield kind, lambda row, kind=kind: row.call.kind == kind  # type: ignore[misc]
        for dtype in sorted({row.call.dtype for row in rows if row.call.kind == kind}):
            yield (
                f"  {dtype}",
                lambda row, key=(kind, dtype): (row.call.kind, row.call.dtype) == key,  # type: ignore[misc]
            )


def time_table(comparison: Comparison) -> list[Errors]:
    return list(_table(comparison.rows, comparison.time_error))


def energy_table(comparison: Comparison) -> list[Errors]:
    return list(_table(comparison.rows, comparison.energy_error))


def _table(rows: Sequence[Measured], shares: Array) -> Iterator[Errors]:
    known = ~np.isnan(shares)
    for name, chosen in _groups(rows):
        mask = np.array([chosen(row) for row in rows]) & known
        if mask.any():
            yield errors(name, shares[mask])


def worst(comparison: Comparison, count: int) -> list[int]:
    """Numbers of the rows with the largest errors of time."""
    return [int(i) for i in np.argsort(-np.abs(comparison.time_error))[:count]]


def noise(path: Path, repeats: Path) -> Errors:
    """How much a second measurement differs from the first: no model can do better."""
    first = {_identity(row): row.time_us for row in read_rows(path)[0]}
    second = read_rows(repeats)[0]
    return errors(
        "second measurement", np.array([r.time_us / first[_identity(r)] - 1 for r in second])
    )


def _identity(row: Measured) -> tuple[str, str, str]:
    return row.call.kind, json.dumps(row.call.params, sort_keys=True), row.call.dtype

"""``dse validate``: a device's kernel model against measured kernels."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from arch.errors import InputError, Problem
from arch.load import load_architecture
from dse import validation
from dse.cli import arguments, inputs
from dse.cli.console import messages, print_json, results, table
from dse.validation_plot import write_scatter
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model

SPLIT_NAMES = "|".join(validation.SPLITS)
#: Measurements of which some were made twice.
SHIPPED = Path(str(validation.MEASURED / "h200_library.csv"))
REPEATED = Path(str(validation.MEASURED / "h200_repeats.csv"))
#: Measurements with energies; the constants were fitted to some of them.
WITH_ENERGIES = Path(str(validation.MEASURED / "h200_seen_library.csv"))


def run(
    device: Annotated[str, typer.Argument(help="A GPU: h200, h100_sxm, a100_80g, or a YAML file.")],
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Measurements; those shipped of an H200 if left out."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar=SPLIT_NAMES, help="Which of the shipped rows."),
    ] = None,
    worst: Annotated[int, typer.Option(help="How many of the worst rows to show.")] = 10,
    efficiency: Annotated[
        float, typer.Option(help="Factor on the rate of the tensor cores, for GPUs not fitted.")
    ] = 1.0,
    overhead: Annotated[
        float,
        typer.Option(
            metavar="US", help="Added to each time: what a host's clock measures besides."
        ),
    ] = 0.0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a scatter plot (PNG or SVG).")
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """Predict measured kernels and say how far off the predictions are.

    Columns of the CSV: kind, params (a JSON object), dtype, t_graph_us, and if measured energy_mJ;
    docs/kernels.md lists the kinds.
    """
    chosen = _split(split, csv)
    inputs.positive("--worst", worst)
    _check_factors(efficiency, overhead)
    if plot is not None:
        inputs.picture_file("--plot", plot)
    model = gpu_model(chip_of(load_architecture(device), efficiency))
    rows, warnings = validation.read_rows(csv) if csv else validation.shipped(chosen)
    found = validation.compare(rows, model, warnings, overhead)
    if plot is not None:
        write_scatter(plot, found)
        messages().print(f"plot: {plot}")
    if as_json:
        print_json(_document(device, chosen, found, worst))
        return
    for warning in found.warnings:
        messages().print(f"warning: {warning}")
    _print(device, chosen, found, worst)
    if csv is None:
        _print_errors("noise of the measurement", [validation.noise(SHIPPED, REPEATED)])


def _split(split: str | None, csv: Path | None) -> str:
    """What the rows are called."""
    if csv is None:
        chosen = "held-out" if split is None else split
        inputs.choice("--split", chosen, tuple(validation.SPLITS))
        return chosen
    if split is not None:
        message = "is of the measurements that are shipped; a CSV of yours is used as a whole"
        raise InputError(Problem(message, where="--split"))
    return csv.name


def _check_factors(efficiency: float, overhead: float) -> None:
    if not 0 < efficiency <= 10:
        message = f"{efficiency} is out of range; allowed more than 0, up to 10"
        raise InputError(Problem(message, where="--efficiency"))
    if not 0 <= overhead <= 1e6:
        message = f"{overhead} is out of range; allowed 0 to 1000000 (microseconds)"
        raise InputError(Problem(message, where="--overhead"))


def _document(device: str, split: str, found: validation.Comparison, worst: int) -> dict[str, Any]:
    energies = validation.energy_table(found)
    return {
        "device": device,
        "split": split,
        "warnings": [*found.warnings, *([] if energies else [_without_energies()])],
        "time": [asdict(line) for line in validation.time_table(found)],
        "energy": [asdict(line) for line in energies],
        "worst": [_row(found, number) for number in validation.worst(found, worst)],
        "rows": [_row(found, number) for number in range(len(found.rows))],
    }


def _row(found: validation.Comparison, number: int) -> dict[str, Any]:
    row = found.rows[number]
    return {
        "line": row.line,
        "kind": row.call.kind,
        "params": dict(row.call.params),
        "dtype": row.call.dtype,
        "measured_us": row.time_us,
        "predicted_us": round(float(found.time_us[number]), 4),
        "predicted_mJ": round(float(found.energy_mj[number]), 5),
        "error": round(float(found.time_error[number]), 5),
    }


def _print(device: str, split: str, found: validation.Comparison, worst: int) -> None:
    _print_errors(f"time on {device}, rows: {split}", validation.time_table(found))
    energies = validation.energy_table(found)
    if energies:
        _print_errors(f"energy on {device}, rows: {split}", energies)
    else:
        line = f"energy on {device}, rows: {split}: {_without_energies()}"
        results().print(line, soft_wrap=True, highlight=False, markup=False)
    lines = []
    for number in validation.worst(found, worst):
        row = found.rows[number]
        sizes = " ".join(f"{name}={value}" for name, value in row.call.params.items())
        error = found.time_error[number]
        times = f"{row.time_us:.2f}", f"{found.time_us[number]:.2f}"
        lines.append((f"{row.call.kind} {row.call.dtype}", sizes, *times, f"{error:+.0%}"))
    columns = ("worst rows", "sizes", ">measured us", ">predicted", ">error")
    results().print(table("", columns, lines))


def _without_energies() -> str:
    return f"no row has measured energies (--csv {WITH_ENERGIES} has some)"


def _print_errors(title: str, lines: list[validation.Errors]) -> None:
    columns = (title, ">rows", ">MAPE", ">median", ">p90", ">bias")
    cells = [
        (e.group, str(e.rows), f"{e.mape:.1%}", f"{e.median:.1%}", f"{e.p90:.1%}", f"{e.bias:+.1%}")
        for e in lines
    ]
    results().print(table("", columns, cells))

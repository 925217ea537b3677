"""Other GPUs from their data sheets: published tables against the model fitted on an H200.

python benchmarks/gpu_zero_shot.py

One factor on the rates of the arithmetic units is chosen on every twentieth row, and judged on the
others (of LLMCompass's 17 rows: chosen on all of them). ``overhead`` is what a host's clock or
single calls have besides the kernel: LLMCompass's paper gives 21 us, the others were measured with
events around calls by the host, for which we take what a launch costs on our own host
(h200_micro.csv). Both tables are of single calls with a wait after each, so that the power limit,
which is on a mean over many milliseconds, does not lower the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from arch.load import load_architecture
from dse.validation import MEASURED, Measured, read_rows
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.demand import Array
from sim.gpu.predict import predict_unlimited_us

FACTORS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)
EVERY = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    architecture: str
    overhead_us: float


TABLES = (
    Table(name="h100_neusight", architecture="h100_sxm", overhead_us=5.2),
    Table(name="a100_neusight", architecture="a100_80g", overhead_us=5.2),
    Table(name="a100_llmcompass", architecture="a100_80g", overhead_us=21.0),
)


def roofline_us(rows: list[Measured], architecture: str) -> Array:
    """Peaks of arithmetic and HBM alone, by the sizes of the products."""
    chip = chip_of(load_architecture(architecture))
    found = []
    for row in rows:
        p, size = row.call.params, 4 if row.call.dtype == "fp32" else 2
        batch, m, n, k = p.get("B", 1), p["M"], p["N"], p["K"]
        compute = batch * m * n * k / (chip.rate(row.call.dtype) * chip.sms * chip.clock_mhz)
        moved = batch * (m * k + n * k + m * n) * size
        found.append(max(compute, moved / chip.hbm_bytes_per_us))
    return np.array(found)


def errors(table: Table, rows: list[Measured], factor: float) -> Array:
    chip = chip_of(load_architecture(table.architecture), factor)
    found = predict_unlimited_us([row.call for row in rows], gpu_model(chip)) + table.overhead_us
    return np.asarray(np.abs(found / np.array([row.time_us for row in rows]) - 1))


def main() -> None:
    print(f"{'table':16s} {'rows':>5s} {'roofline':>9s} {'no factor':>9s}  factor    MAPE  median")
    for table in TABLES:
        rows, _ = read_rows(Path(str(MEASURED / f"{table.name}.csv")))
        few = len(rows) < 2 * EVERY
        judged = rows if few else [row for i, row in enumerate(rows) if i % EVERY]
        chosen_on = rows if few else rows[::EVERY]
        factor = min(FACTORS, key=lambda f: float(errors(table, chosen_on, f).mean()))
        times = np.array([row.time_us for row in judged])
        peaks = np.abs(roofline_us(judged, table.architecture) / times - 1)
        plain, found = errors(table, judged, 1.0), errors(table, judged, factor)
        print(
            f"{table.name:16s} {len(judged):5d} {peaks.mean():9.1%} {plain.mean():9.1%}"
            f"  {factor:6.1f} {found.mean():7.1%} {np.median(found):7.1%}"
        )


if __name__ == "__main__":
    main()

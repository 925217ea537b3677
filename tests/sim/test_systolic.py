"""Are exposed folds of a systolic array timed as SCALE-Sim times them?

Its compute cycles (version 3.0.0, ``InterfaceBandwidth: CALC``, traces off) as measured with
``python benchmarks/scalesim.py --peer PYTHON``.
"""

from __future__ import annotations

import math

import pytest

from arch.load import load_architecture
from benchmarks.scalesim import MEASURED
from mapper.search.network import map_workload
from mapper.workload.load import load_workload
from sim.models import cost_model
from sim.prices import price


def simulated_ps(arch: str, gemm: tuple[int, int, int], overrides: dict[str, object]) -> int:
    m, n, k = gemm
    workload = load_workload(f"gemm:M={m},N={n},K={k}")
    architecture = load_architecture(arch, overrides)
    found = map_workload(workload, architecture, price, "edp")
    mappings = {name: result.mapping for name, result in found.items()}
    return cost_model("event").evaluate(workload, architecture, mappings).latency_ps


@pytest.mark.parametrize("layer", MEASURED)
@pytest.mark.parametrize("arch", ["scalesim_ws16", "scalesim_os16"])
def test_cycles_are_those_of_scalesim(arch: str, layer: str) -> None:
    m, n, k, count, weight_stationary, output_stationary = MEASURED[layer]
    expected = weight_stationary if arch == "scalesim_ws16" else output_stationary
    assert count * simulated_ps(arch, (m, n, k), {}) == 1000 * expected


@pytest.mark.parametrize(("rows", "cols"), [(8, 8), (4, 32), (32, 8)])
def test_other_sizes_follow_the_closed_form(rows: int, cols: int) -> None:
    """Folds of M + 2 rows + cols - 2 cycles (weights), of K + rows + cols - 2 (outputs)."""
    m, n, k = 50, 70, 90
    size: dict[str, object] = {"array.rows": rows, "array.cols": cols}
    folds = math.ceil(k / rows) * math.ceil(n / cols)
    cycles = simulated_ps("scalesim_ws16", (m, n, k), size) // 1000
    assert cycles == folds * (m + 2 * rows + cols - 2) - 1
    folds = math.ceil(m / rows) * math.ceil(n / cols)
    cycles = simulated_ps("scalesim_os16", (m, n, k), size) // 1000
    assert cycles == folds * (k + rows + cols - 2) - 1


def test_hidden_folds_cost_nothing_but_the_last_skew() -> None:
    """64 x 64 x 64 on 16 x 16: 16 folds of 64 steps each, one skew of 30 cycles at the end."""
    hidden: dict[str, object] = {"array.folds": "hidden", "array.turnaround": 0}
    assert simulated_ps("scalesim_ws16", (64, 64, 64), hidden) == 1000 * (16 * 64 + 30)

"""Do 2:4 sparse weights take the rate that a device has for them, and only where kernels do?"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from importlib.resources import files

import pytest

from arch.errors import InputError
from arch.load import load_architecture
from mapper.cost import InfeasibleError
from mapper.workload.load import load_workload
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.demand import Call
from sim.gpu.predict import GpuModel, predict
from sim.gpu.workload import run_workload


@pytest.fixture(scope="module")
def h200() -> GpuModel:
    return gpu_model(chip_of(load_architecture("h200")))


def spec(sparsity: str, n: int = 4096) -> str:
    return f"gemm:M=4096,N={n},K=4096,dtype=bf16,sparsity={sparsity}"


def test_sparse_weights_halve_the_roofline_and_the_energy_of_arithmetic(h200: GpuModel) -> None:
    dense, sparse = (run_workload(load_workload(spec(s)), h200) for s in ("1", "2:4"))
    assert sparse.peak_us[0] == pytest.approx(dense.peak_us[0] / 2)
    assert sparse.read_bytes[0] == pytest.approx(2 * 4096**2 * (1 + 0.5 + 1 / 16), rel=0.01)
    assert sparse.times_us[0] < dense.times_us[0]
    assert sparse.least_us[0] <= sparse.times_us[0] <= sparse.event_us[0]


def test_rows_must_be_aligned(h200: GpuModel) -> None:
    assert run_workload(load_workload(spec("2:4", 4104)), h200).times_us[0] > 0
    with pytest.raises(InfeasibleError, match="multiples of 8"):
        run_workload(load_workload(spec("2:4", 4100)), h200)


def test_other_structures_and_other_devices_are_refused(h200: GpuModel) -> None:
    with pytest.raises(InputError, match="2:4"):
        run_workload(load_workload(spec("0.1")), h200)
    without = replace(h200, chip=replace(h200.chip, sparse_mma={}))
    with pytest.raises(InfeasibleError, match="has none"):
        run_workload(load_workload(spec("2:4")), without)


def test_measured_sparse_products_are_near(h200: GpuModel) -> None:
    """Two constants were set on the first three, without which they are off by half."""
    rows = csv.DictReader(
        (files("kernels_ref") / "data" / "h200_fused.csv").read_text().splitlines()
    )
    measured = [r for r in rows if r["kernel"] == "gemm_2of4"]
    calls = [Call(kind="gemm_2of4", params=json.loads(r["sizes"]), dtype="bf16") for r in measured]
    ratios = predict(calls, h200).time_us / [float(r["torch_us"]) for r in measured]
    assert len(ratios) == 5
    assert abs(ratios[:3] - 1).mean() < 0.15
    assert abs(ratios[3:] - 1).mean() < 0.15

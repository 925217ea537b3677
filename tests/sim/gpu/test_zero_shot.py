"""Does the model, fitted on an H200 alone, tell the times of GPUs that it has never seen?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arch.load import load_architecture
from dse import validation
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.demand import Array, Call
from sim.gpu.predict import predict, predict_unlimited_us

#: What a launch costs the host on ours (kernels_ref/data/h200_micro.csv).
LAUNCH_US = 5.2


def batch(b: int, m: int, n: int, k: int) -> Call:
    return Call(kind="bmm", params={"B": b, "M": m, "N": n, "K": k}, dtype="fp32")


def full_clock_us(architecture: str, calls: list[Call]) -> Array:
    return predict_unlimited_us(calls, gpu_model(chip_of(load_architecture(architecture))))


@pytest.mark.parametrize(
    ("table", "architecture", "most"),
    [("a100_neusight", "a100_80g", 0.08), ("h100_neusight", "h100_sxm", 0.12)],
)
def test_published_products_without_a_constant_fitted_to_them(
    table: str, architecture: str, most: float
) -> None:
    rows, _ = validation.read_rows(Path(str(validation.MEASURED / f"{table}.csv")))
    found = full_clock_us(architecture, [row.call for row in rows]) + LAUNCH_US
    assert np.abs(found / np.array([row.time_us for row in rows]) - 1).mean() < most


def test_ampere_wastes_half_a_tile_of_128_on_64_rows() -> None:
    half, whole = full_clock_us("a100_80g", [batch(64, m, 1024, 1024) for m in (64, 128)])
    assert half == pytest.approx(whole, rel=0.1)
    narrow, wide = full_clock_us("h200", [batch(64, m, 1024, 1024) for m in (64, 128)])
    assert narrow < 0.7 * wide


def test_half_the_lanes_leave_issue_slots_for_loads() -> None:
    """Of their peaks in fp32, an A100 comes nearer to its own than an H200."""
    size = 4096
    share = {}
    for name in ("a100_80g", "h200"):
        chip = chip_of(load_architecture(name))
        peak = chip.rate("fp32") * chip.sms * chip.clock_mhz
        share[name] = 4 * size**3 / peak / full_clock_us(name, [batch(4, size, size, size)])[0]
    assert share["h200"] < 0.85 < share["a100_80g"] <= 1


def test_pauses_never_make_a_call_slower() -> None:
    calls = [batch(32, 2048, 2048, 2048), batch(1024, 16, 64, 32)]
    model = gpu_model(chip_of(load_architecture("h200")))
    assert (predict_unlimited_us(calls, model) <= predict(calls, model).time_us).all()

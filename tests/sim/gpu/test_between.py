"""Kernels between products: do they move what they must, and are they as fast as was measured?"""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from arch.load import load_architecture
from benchmarks.calibrate_between import MEASURED, call_of
from sim.devices.gpu import chip_of
from sim.gpu.between import KINDS
from sim.gpu.constants import gpu_model
from sim.gpu.demand import Call
from sim.gpu.predict import load_of, predict_unlimited_us

MODEL = gpu_model(chip_of(load_architecture("h200")))


def call(kind: str, n: int, **more: int) -> Call:
    return Call(
        kind=kind, params={"n": n, "moved": 4 * n, "R": 3, "side": 56, **more}, dtype="bf16"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_more_work_never_takes_less_time(kind: str) -> None:
    """Monotone in the results, and no faster than the HBM gives what the L2 cannot hold."""
    sizes = [2**power for power in range(8, 30)]
    times = predict_unlimited_us([call(kind, n) for n in sizes], MODEL)
    assert (np.diff(times) >= 0).all()
    outside = 4 * sizes[-1] - MODEL.chip.l2_bytes
    assert times[-1] > outside / MODEL.chip.hbm_bytes_per_us


def test_small_tensors_are_in_the_l2_and_large_ones_are_not() -> None:
    small, large = (load_of([call("clamp", n)], MODEL).demand for n in (1000, 10**9))
    assert small.hbm_bytes == small.written_bytes == 0
    assert 3.9e9 < large.hbm_bytes < 4e9


def test_wider_windows_take_longer() -> None:
    times = predict_unlimited_us([call("max_pool", 10**7, R=r) for r in (2, 3, 5)], MODEL)
    assert (np.diff(times) > 0).all()


def test_single_kernels_are_within_a_tenth_of_what_was_measured() -> None:
    """External: the mean error over the kernels that the constants were fitted to (8 %)."""
    with MEASURED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    calls = [call_of(row["kind"], json.loads(row["params"])) for row in rows]
    measured = np.array([float(row["t_graph_us"]) for row in rows])
    errors = np.abs(predict_unlimited_us(calls, MODEL) / measured - 1)
    assert len(rows) == 220
    assert errors.mean() < 0.1

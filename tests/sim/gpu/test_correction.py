"""Are sums of trees what walking them gives, and does a correction keep to what it promises?"""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from arch.load import load_architecture
from kernels_ref.library.plans import planned_points
from sim.devices.gpu import chip_of
from sim.gpu.constants import fitted_constants, gpu_model
from sim.gpu.correction import corrected, factors, fitted_corrections, least_us
from sim.gpu.demand import Call, Demand
from sim.gpu.features import features
from sim.gpu.predict import GpuModel, load_of, predict
from sim.gpu.trees import Trees, trees_of

#: x <= 1.5: 10, else y <= 0: 20, else 30; and a constant.
DOCUMENT = {
    "features": ["x", "y"],
    "trees": [[[0, 1.5, 1, 2], [10.0], [1, 0.0, 3, 4], [20.0], [30.0]], [[0.25]]],
}


def calls(count: int, kind: str = "conv2d") -> list[Call]:
    drawn = [p for p in planned_points("hard", 5) if p.kind == kind][:count]
    return [Call(kind=p.kind, params=p.params, dtype=p.dtype) for p in drawn]


@pytest.fixture(scope="module")
def h200() -> GpuModel:
    return gpu_model(chip_of(load_architecture("h200")))


def constant(logarithm: float, like: Trees) -> Trees:
    return trees_of({"features": list(like.names), "trees": [[[logarithm]]]})


@pytest.mark.parametrize(
    ("x", "y", "leaf"), [(1.5, 9.0, 10), (1.6, 0.0, 20), (1.6, 0.1, 30), (-8, 0, 10)]
)
def test_a_call_ends_at_the_leaf_that_its_features_lead_to(x: float, y: float, leaf: int) -> None:
    found = trees_of(DOCUMENT).total({"x": np.array([x]), "y": np.array([y])})
    assert found == pytest.approx([leaf + 0.25])


def _walked(tree: list[list[float]], row: list[np.float32], number: int = 0) -> float:
    if len(tree[number]) == 1:
        return tree[number][0]
    feature, threshold, low, high = tree[number]
    below = row[int(feature)] <= np.float32(threshold)
    return _walked(tree, row, int(low if below else high))


def test_the_shipped_trees_add_up_to_what_walking_them_gives(h200: GpuModel) -> None:
    text = (files("sim") / "gpu" / "data" / "h200_corrections.json").read_text()
    document: dict[str, Any] = json.loads(text)["conv2d"]
    chosen = calls(280) * 2  # more than are evaluated at once
    found = features(chosen, np.linspace(3, 900, len(chosen)))
    sums = fitted_corrections()["conv2d"].total(found)
    for number in (0, 17, 511, 512, len(chosen) - 1):
        row = [np.float32(found[name][number]) for name in document["features"]]
        walked = sum(_walked(tree, row) for tree in document["trees"])
        assert sums[number] == pytest.approx(walked, abs=1e-4)


def _demand(model: GpuModel, chosen: list[Call]) -> Demand:
    load = load_of(chosen, model)
    return load.demand.reordered(np.argsort(load.owner))


def test_a_correction_multiplies_the_time_but_never_beats_the_peaks(h200: GpuModel) -> None:
    chosen, trees = calls(80), fitted_corrections()["conv2d"]
    plain = _demand(replace(h200, corrections={}), chosen)
    before, least = plain.time_us(), least_us(plain, chosen, h200.chip)

    def by(log: float) -> Demand:
        factor = factors(plain, chosen, {"conv2d": constant(log, trees)}, h200.chip)
        assert factor is not None
        return corrected(plain, factor)

    slower = by(0.5)
    assert slower.time_us() == pytest.approx(before * np.exp(0.5))
    faster = by(-2.9).time_us()
    held = np.maximum(before * np.exp(-2.9), np.minimum(least, before))
    assert faster == pytest.approx(held)
    assert (held > before * np.exp(-2.9) * 1.01).any()
    assert (held == before * np.exp(-2.9)).any()


def test_work_is_not_corrected(h200: GpuModel) -> None:
    chosen = calls(40)
    plain = _demand(replace(h200, corrections={}), chosen)
    found = _demand(h200, chosen)
    assert (found.macs == plain.macs).all()
    assert (found.hbm_bytes == plain.hbm_bytes).all()
    assert (found.time_us() != plain.time_us()).mean() > 0.9


def test_a_call_is_predicted_alike_alone_and_among_others(h200: GpuModel) -> None:
    chosen = calls(30) + calls(30, "gemm") + calls(10, "sdpa")
    together = predict(chosen, h200).time_us
    alone = [float(predict([call], h200).time_us[0]) for call in chosen[::7]]
    assert together[::7] == pytest.approx(alone, rel=1e-6)


def test_other_gpus_are_not_corrected() -> None:
    """The trees know the choices of one library on one GPU."""
    model = gpu_model(chip_of(load_architecture("h100_sxm")))
    assert model.corrections == {}
    assert model.constants is fitted_constants()


def test_profiled_calls_are_points_of_the_stated_plans() -> None:
    path = files("kernels_ref") / "data" / "h200_profiled.csv.gz"
    with gzip.open(str(path), "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(r["kind"], r["params"], r["dtype"]) for r in rows}
    plans = [("profiled", 51), ("typical", 61), ("more", 31)]
    points = {
        (p.kind, json.dumps(p.params), p.dtype)
        for plan, seed in plans
        for p in planned_points(plan, seed)
    }
    assert len(found) == len(rows) > 30_000
    assert len(points & found) > 0.97 * len(points) - 700
    assert all(float(r["longest_us"]) <= 1.001 * float(r["total_us"]) for r in rows)

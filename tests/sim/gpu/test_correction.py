"""Are sums of trees what walking them gives, and does a correction keep to what it promises?"""

from __future__ import annotations

import csv
import gzip
import json
import lzma
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from arch.load import load_architecture
from kernels_ref.library.plans import planned_points
from kernels_ref.measure.launched import fits
from kernels_ref.measure.profiled import SHAPE, unseen_shapes
from sim.devices.gpu import chip_of
from sim.gpu.constants import fitted_constants, gpu_model
from sim.gpu.convolution import conv_key, correction_group
from sim.gpu.correction import corrected, factors, fitted_corrections, least_us
from sim.gpu.demand import Call, Demand
from sim.gpu.features import features
from sim.gpu.predict import GpuModel, load_of, predict
from sim.gpu.trees import Trees, loaded_trees, packed, saved_trees, trees_of

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


def _walked(tree: list[list[float]], row: NDArray[np.float32], number: int = 0) -> float:
    if len(tree[number]) == 1:
        return tree[number][0]
    feature, threshold, low, high = tree[number]
    below = row[int(feature)] <= np.float32(threshold)
    return _walked(tree, row, int(low if below else high))


def test_shipped_trees_are_walked_as_they_are_written() -> None:
    text = (files("sim") / "gpu" / "data" / "h200_corrections.json").read_text()
    rng = np.random.default_rng(0)
    for group, document in json.loads(text).items():
        names = document["features"]
        table = rng.normal(4.0, 6.0, (40, len(names))).astype(np.float32)
        sums = fitted_corrections()[group].total(dict(zip(names, table.T, strict=True)))
        walked = [sum(_walked(tree, row) for tree in document["trees"]) for row in table]
        assert sums == pytest.approx(walked, abs=1e-4), group


def _walked_leaf(trees: Trees, row: list[np.float32], node: int) -> float:
    while trees.low[node] != node:
        below = row[trees.feature[node]] <= trees.threshold[node]
        node = int(trees.low[node] if below else trees.high[node])
    return float(trees.value[node])


def test_the_shipped_trees_add_up_to_what_walking_them_gives(h200: GpuModel) -> None:
    trees = fitted_corrections()["dense"]
    chosen = calls(280) * 2  # more than are evaluated at once
    found = features(chosen, np.linspace(3, 900, len(chosen)))
    sums = trees.total(found)
    for number in (0, 17, 511, 512, len(chosen) - 1):
        row = [np.float32(found[name][number]) for name in trees.names]
        walked = sum(_walked_leaf(trees, row, int(root)) for root in trees.roots)
        assert sums[number] == pytest.approx(walked, abs=1e-4)


def test_packed_trees_lead_to_the_same_leaves(tmp_path: Path) -> None:
    """Also for features beside a threshold that single precision cannot tell."""
    threshold = float(np.nextafter(np.float32(1.5), np.float32(2))) - 1e-9
    trees = [[[0, threshold, 1, 2], [10.0], [1, 0.0, 3, 4], [20.0], [30.0]], [[0.25]]]
    saved_trees(tmp_path / "trees.npz", ["x", "y"], {"some": packed(trees)})
    with (tmp_path / "trees.npz").open("rb") as file:
        found = loaded_trees(file)["some"]
    above = np.nextafter(np.float32(1.5), np.float32(2))
    x, y = np.array([1.5, above, above, -8.0]), np.array([9.0, 0.0, 0.1, 0.0])
    assert found.total({"x": x, "y": y}) == pytest.approx([10.25, 20.25, 30.25, 10.25])
    assert found.depth == 2


def test_every_class_of_convolutions_is_of_one_group() -> None:
    groups: dict[tuple[str, str], set[str]] = {}
    for call in calls(280):
        groups.setdefault((conv_key(call), call.dtype), set()).add(correction_group(call))
    assert all(len(found) == 1 for found in groups.values())
    assert {group for found in groups.values() for group in found} == set(fitted_corrections()) - {
        "gemm",
        "sdpa",
        "bmm",
        "rows",
    }


def _demand(model: GpuModel, chosen: list[Call]) -> Demand:
    load = load_of(chosen, model)
    return load.demand.reordered(np.argsort(load.owner))


def test_a_correction_multiplies_the_time_but_never_beats_the_peaks(h200: GpuModel) -> None:
    trees = fitted_corrections()["dense"]
    chosen = [call for call in calls(280) if correction_group(call) == "dense"]
    plain = _demand(replace(h200, corrections={}), chosen)
    before, least = plain.time_us(), least_us(plain, chosen, h200.chip)

    def by(log: float) -> Demand:
        factor = factors(plain, chosen, {"dense": constant(log, trees)}, h200.chip)
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
    points = {
        (p.kind, json.dumps(p.params), p.dtype)
        for p in planned_points("profiled", 51)
        if p.kind != "conv2d"
    }
    assert len(found) == len(rows) > 7_000
    assert len(points & found) > 0.97 * len(points)
    assert all(float(r["longest_us"]) <= 1.001 * float(r["total_us"]) for r in rows)


def _convolutions() -> list[dict[str, str]]:
    path = files("kernels_ref") / "data" / "h200_convolutions.csv.xz"
    with lzma.open(str(path), "rt", newline="") as file:
        return list(csv.DictReader(file))


def test_profiled_convolutions_are_points_of_the_stated_plans_and_no_unseen_ones() -> None:
    rows = _convolutions()
    found = {(r["dtype"], *(int(r[name]) for name in SHAPE)) for r in rows}
    assert len(found) == len(rows) > 180_000
    unseen = unseen_shapes([7777, 9001])
    assert not unseen & {shape[1:] for shape in found}
    drawn = [
        (p.dtype, *(p.params[name] for name in SHAPE))
        for p in planned_points("dense", 104)[:14_000]
        if fits(p) and tuple(p.params[name] for name in SHAPE) not in unseen
    ]
    assert np.mean([point in found for point in drawn]) > 0.99


def test_profiled_times_add_up() -> None:
    """Kernels that run one after another are busy for the sum of their times, others for less."""
    rows = _convolutions()[::7]
    busy, total, longest, helpers = (
        np.array([float(row[name]) for row in rows])
        for name in ("busy_us", "total_us", "longest_us", "helpers_us")
    )
    kernels = np.array([int(row["kernels"]) for row in rows])
    rounding = 1.011
    assert (busy <= total * rounding).all()
    assert (longest <= total * rounding).all()
    assert (helpers <= total * rounding).all()
    assert busy[kernels == 1] == pytest.approx(total[kernels == 1], rel=0.011)
    assert (busy[kernels > 1] < 0.8 * total[kernels > 1]).mean() > 0.05


def test_trees_that_have_no_room_are_not_packed() -> None:
    tree: list[list[float]] = []
    for number in range(200):
        tree += [[0.0, float(number), 2 * number + 1, 2 * number + 2], [float(number)]]
    tree.append([0.5])
    assert len(tree) == 401
    with pytest.raises(ValueError, match="too large to be packed"):
        packed([tree])

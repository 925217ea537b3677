"""Are the measured library calls those of the stated seed, possible, and split as stated?"""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest

from kernels_ref.library.plans import PLANS, planned_points
from kernels_ref.library.points import COUNTS, kind_named, library_points
from kernels_ref.measure.library import calls_of, main, remaining

DATA = files("kernels_ref") / "data"
#: 6144 bits of HBM3e, two transfers per cycle of 3201 MHz (see h200_library.md).
PEAK_BYTES_PER_US = 6144 / 8 * 2 * 3201
NVLINK_BYTES_PER_US = 450e3  # one direction: NVIDIA H200 datasheet, 900 GB/s both ways
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")


def read(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = list(csv.DictReader((DATA / name).read_text().splitlines()))
    for row in rows:
        row["params"] = json.loads(row["params"])
    return rows


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return read("h200_library.csv")


def named(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["kind"], json.dumps(row["params"]), row["dtype"]


def test_every_point_of_the_seed_was_measured_once(rows: list[dict[str, Any]]) -> None:
    points = {(p.kind, json.dumps(p.params), p.dtype) for p in library_points(0)}
    single = [named(r) for r in rows if r["kind"] in COUNTS and r["params"].get("tp", 1) == 1]
    assert set(single) == points
    assert len(single) == len(points) >= 1500


def test_collectives_are_there(rows: list[dict[str, Any]]) -> None:
    found = Counter(row["kind"] for row in rows)
    assert all(found[kind] >= 18 for kind in COLLECTIVES)


def test_no_call_beats_memory_or_link(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        measured_us = float(row["t_graph_us"])
        if row["kind"] in COLLECTIVES:
            # One GPU has to receive at least half of the stated bytes from the other.
            least_us = row["params"]["bytes"] / 2 / NVLINK_BYTES_PER_US
        else:
            kind = kind_named(row["kind"])
            read_bytes = sum(s.size_bytes for s in kind.inputs(row["params"], row["dtype"]))
            least_us = read_bytes / PEAK_BYTES_PER_US
            if row["kind"] == "conv2d" and row["params"]["R"] < row["params"]["stride"]:
                continue  # skips most of its input
        assert measured_us > 0.9 * least_us, row


def test_energy_is_power_times_time(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        energy_mj = float(row["power_W"]) * float(row["t_graph_us"]) / 1000
        assert float(row["energy_mJ"]) == pytest.approx(energy_mj, rel=1e-3)


def test_repeats_are_second_measurements_that_agree(rows: list[dict[str, Any]]) -> None:
    first = {named(row): float(row["t_graph_us"]) for row in rows}
    changes = [abs(float(r["t_graph_us"]) / first[named(r)] - 1) for r in read("h200_repeats.csv")]
    assert len(changes) >= 50
    assert sum(changes) / len(changes) < 0.02


@pytest.mark.parametrize(
    ("plan", "seed", "name"),
    [
        ("hard", 11, "h200_hard_library.csv"),
        ("groups", 21, "h200_groups_library.csv"),
        ("unseen", 2026, "h200_seen_library.csv"),
        ("unseen", 3001, "h200_seen2_library.csv"),
    ],
)
def test_further_rows_are_the_points_of_their_plan(plan: str, seed: int, name: str) -> None:
    points = {(p.kind, json.dumps(p.params), p.dtype) for p in planned_points(plan, seed)}
    found = {named(row) for row in read(name)}
    assert found == points
    wanted = sum(n for counts in PLANS[plan].counts.values() for n in counts.values())
    assert wanted - len(points) <= 1


@pytest.mark.parametrize(
    ("seed", "name", "left_out"),
    [(7777, "h200_unseen_library.csv", 2), (9001, "h200_unseen2_library.csv", 3)],
)
def test_unseen_rows_are_those_of_their_plan_and_were_not_profiled_either(
    seed: int, name: str, left_out: int
) -> None:
    """Those left out had been measured or profiled before."""
    points = {(p.kind, json.dumps(p.params), p.dtype) for p in planned_points("fresh", seed)}
    with gzip.open(str(DATA / "h200_profiled.csv.gz"), "rt", newline="") as file:
        profiled = {(r["kind"], r["params"], r["dtype"]) for r in csv.DictReader(file)}
    found = {named(row) for row in read(name)}
    assert found <= points - profiled
    assert len(points - found) == left_out


@pytest.mark.parametrize(
    ("plan", "seed", "name", "left_out"),
    [
        ("hard", 12, "h200_hard2_library.csv", 4),
        ("more", 31, "h200_more_library.csv", 600),
        ("others", 71, "h200_others_library.csv", 60),
    ],
)
def test_a_run_that_was_cut_short_has_the_first_points_of_its_plan(
    plan: str, seed: int, name: str, left_out: int
) -> None:
    found = {named(row) for row in read(name)}
    first = planned_points(plan, seed)[: len(found) + left_out]
    assert len(found) > 500
    assert found <= {(p.kind, json.dumps(p.params), p.dtype) for p in first}


def test_operands_start_aligned_and_apart() -> None:
    point = next(p for p in library_points(0) if p.kind == "gemm" and p.params["K"] % 8)
    call, other = calls_of(point, 0, None, "cpu")[:2]
    first, second = call.args[1], other.args[1]  # type: ignore[attr-defined]
    distance = second.data_ptr() - first.data_ptr()
    assert distance % 256 == 0
    assert distance >= first.numel() * first.element_size()


def test_a_run_measures_what_earlier_ones_left(tmp_path: Any) -> None:
    points = library_points(0)
    assert main(["--out", str(tmp_path), "--dry-run", "--share", "0/200"]) == 0
    left = remaining(points, [tmp_path / "library_0.csv"])
    assert len(points) - len(left) == len(points[::200])

"""Are the committed measurements complete, possible on the hardware, and as their command says?"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from importlib.resources import files

import pytest

from kernels_ref.kernel import Counts
from kernels_ref.measure.kernels import COLUMNS
from kernels_ref.points import ALIGNMENTS, points
from kernels_ref.registry import KERNELS

CSV = files("kernels_ref") / "data" / "nvidia_h200.csv"
PROVENANCE = files("kernels_ref") / "data" / "nvidia_h200.md"

#: 132 SMs x 4096 FLOPs per cycle (dense bf16 and fp16) at the highest clock, 1980 MHz: NVIDIA
#: H100 Tensor Core GPU Architecture whitepaper; the clocks as in the provenance file.
PEAK_FLOPS_PER_S = 132 * 4096 * 1.98e9

#: 6144 bits of HBM3e, two transfers per cycle of 3201 MHz: 4.9 TB/s, sold as 4.8 (NVIDIA H200
#: datasheet).
PEAK_BYTES_PER_S = 6144 / 8 * 2 * 3.201e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    kind: str
    params: dict[str, int]
    impl: str
    dtype: str
    t_graph_us: float
    t_cold_us: float
    energy_mj: float
    power_w: float

    @property
    def counts(self) -> Counts:
        return KERNELS[self.kind].counts(self.params, self.dtype)


def parse(row: dict[str, str]) -> Row:
    params = json.loads(row["params"])
    return Row(
        impl=params.pop("impl"),
        params=params,
        kind=row["kind"],
        dtype=row["dtype"],
        t_graph_us=float(row["t_graph_us"]),
        t_cold_us=float(row["t_cold_us"]),
        energy_mj=float(row["energy_mJ"]),
        power_w=float(row["power_W"]),
    )


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    reader = csv.DictReader(CSV.read_text().splitlines())
    assert tuple(reader.fieldnames or ()) == COLUMNS
    return [parse(row) for row in reader]


def test_rows_are_the_points_of_the_seed_in_the_provenance(rows: list[Row]) -> None:
    assert "--seed 0`" in PROVENANCE.read_text()
    assert [(r.kind, r.params, r.dtype, r.impl) for r in rows] == [
        (p.kernel, p.params, p.dtype, p.implementation) for p in points(0)
    ]


def test_steady_and_cold_calls_read_no_faster_than_the_memory(rows: list[Row]) -> None:
    # Only what is read: the last writes may still be in the L2 when a call ends. A steady call
    # may also find a little of its data there.
    for row in rows:
        least_us = row.counts.read_bytes / PEAK_BYTES_PER_S * 1e6
        assert row.t_cold_us > least_us, row
        assert row.t_graph_us > 0.9 * least_us, row


def test_no_product_is_faster_than_the_tensor_cores(rows: list[Row]) -> None:
    for row in rows:
        if row.kind == "gemm":
            assert min(row.t_graph_us, row.t_cold_us) > row.counts.flops / PEAK_FLOPS_PER_S * 1e6


def test_energy_is_power_times_time(rows: list[Row]) -> None:
    # Energy takes the mean time of a call, t_graph_us is the median. Clocks that change under the
    # power limit keep them up to 5 % apart; a card that waits for its host would exceed that.
    for row in rows:
        assert row.energy_mj == pytest.approx(row.power_w * row.t_graph_us / 1000, rel=0.06), row


def test_power_is_between_idle_and_the_limit(rows: list[Row]) -> None:
    # The limit of 700 W holds for an average over longer than the window of half a second.
    assert "| power limit | 700 W |" in PROVENANCE.read_text()
    assert all(100 < row.power_w < 1.15 * 700 for row in rows)


def test_points_repeat_with_their_seed_and_differ_with_another() -> None:
    assert points(3) == points(3)
    assert points(3) != points(4)


def test_points_include_odd_and_aligned_sizes_of_every_kernel() -> None:
    for kernel in KERNELS:
        sizes = [max(p.params.values()) for p in points(0) if p.kernel == kernel]
        assert any(size % 2 for size in sizes)
        assert any(size % max(ALIGNMENTS) == 0 for size in sizes)

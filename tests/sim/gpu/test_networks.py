"""Whole networks against an H200: are predictions as near as docs/validation.md says?"""

from __future__ import annotations

import csv

import pytest

from benchmarks.gpu_networks import MEASURED, predicted

#: Cheap to import; error of the time, about twice what was found.
CHECKED = {
    "mobilenet_v1:batch=64,dtype=bf16": 0.13,
    "resnet34:batch=4,dtype=bf16": 0.1,
    "bert-base:batch=32,seq=128,dtype=bf16": 0.05,
    "vit-ti:batch=16,dtype=bf16": 0.08,
}


@pytest.mark.parametrize("workload", CHECKED)
def test_a_network_takes_about_as_long_as_measured(workload: str) -> None:
    with MEASURED["unseen"].open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["workload"] == workload]
    found = predicted(workload, row["epilogues"])
    assert found.latency_ps / 1e6 == pytest.approx(float(row["t_graph_us"]), rel=CHECKED[workload])
    assert found.energy_pj / 1e9 == pytest.approx(float(row["energy_mJ"]), rel=0.2)

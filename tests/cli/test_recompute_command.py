"""``dse recompute``: schedules of training steps under a limit."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import Dse

pytest.importorskip("ortools", reason="the exact method is a constraint program")

STEP = "mlperf_kws:training=sgd"


def test_each_schedule_is_within_its_limit(dse: Dse) -> None:
    limit = 160 * 1024
    outcome = dse("recompute", "--workload", STEP, "--ram-limit", "160KiB", "--json")
    assert outcome.code == 0
    document = json.loads(outcome.out)
    by_name = {found["name"]: found for found in document["schedules"]}
    best = by_name["cheapest that fits"]
    assert best["peak_bytes"] <= limit < by_name["everything kept"]["peak_bytes"]
    assert document["cost"] < best["cost"] <= by_name["checkpoints that fit"]["cost"]
    assert document["optimal"]
    assert document["lower_bound_cost"] == best["cost"]
    repeated = len(document["sequence"]) - len(set(document["sequence"]))
    assert repeated == len(best["computed_again"]) > 0


def test_a_board_is_the_limit(dse: Dse) -> None:
    outcome = dse("recompute", "--workload", STEP, "--arch", "stm32f411")
    assert outcome.code == 3
    assert "allowed 131,072" in outcome.err


def test_a_size_that_is_none(dse: Dse) -> None:
    outcome = dse("recompute", "--workload", STEP, "--ram-limit", "much")
    assert outcome.code == 2
    assert "--ram-limit" in outcome.err


@pytest.mark.parametrize("limit", ["0", "0 B", "-4", "-4 KiB"])
def test_a_limit_is_more_than_nothing(dse: Dse, limit: str) -> None:
    outcome = dse("recompute", "--workload", STEP, "--ram-limit", limit)
    assert outcome.code == 2
    assert "--ram-limit" in outcome.err


def test_inference_has_nothing_to_compute_again(dse: Dse) -> None:
    outcome = dse("recompute", "--workload", "mlperf_kws", "--ram-limit", "100KiB")
    assert outcome.code == 2
    assert "mlperf_kws:training=sgd" in outcome.err


def test_bytes_are_written_in_full(dse: Dse) -> None:
    step = "mlperf_ic:training=adam"
    outcome = dse("recompute", "--workload", step, "--arch", "stm32h743")
    assert outcome.code == 3
    assert "needs 1,0" in outcome.err
    assert "e+0" not in outcome.err

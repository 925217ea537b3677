"""Do limits of memory and time choose the plan, and errors say what would fit?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.running import Dse

RUN = ("simulate", "-a", "stm32f767", "-w", "mcunet-vww0", "--planner", "optimal")


def document(dse: Dse, *options: str) -> dict[str, Any]:
    outcome = dse(*RUN, "--json", *options)
    assert outcome.code == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_both_sides_of_a_limit(dse: Dse) -> None:
    """Of all trade-offs, one in the middle: within its memory, within its time."""
    found = document(dse, "--tradeoffs")["tradeoffs"]
    sizes = [one["plan_bytes"] for one in found]
    times = [one["latency_ps"] for one in found]
    assert sizes == sorted(sizes)
    assert times == sorted(times, reverse=True)
    middle = found[len(found) // 2]
    by_ram = document(dse, "--ram-limit", f"{middle['plan_bytes']} B")
    assert by_ram["memory"]["arena"] == middle["plan_bytes"]
    assert by_ram["latency_ps"] == pytest.approx(middle["latency_ps"], rel=1e-6)
    less = document(dse, "--ram-limit", f"{middle['plan_bytes'] - 1} B")
    assert less["memory"]["arena"] < middle["plan_bytes"]
    by_time = document(dse, "--latency-limit", f"{middle['latency_ps'] / 1e9 + 0.001} ms")
    assert by_time["memory"]["arena"] == middle["plan_bytes"]


def test_memory_is_explained(dse: Dse) -> None:
    """TinyEngine's peak is its pool, the columns and the unpacked kernel; weights are in flash."""
    outcome = dse(*RUN[:-1], "tinyengine", "--json")
    memory = json.loads(outcome.out)["memory"]
    assert memory["sram"] == 60_800
    assert memory["sram"] == memory["arena"] + memory["scratch"] + memory["reserved"]
    assert memory["flash"] == memory["parameters"] + memory["code"]
    inside = json.loads(dse(*RUN, "--json", "--set", "software.weights=sram").out)["memory"]
    assert inside["sram"] == inside["arena"] + inside["parameters"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ram-limit", "4 KiB"), "memory limit: needs"),
        (("--latency-limit", "1 ms"), "latency limit: needs"),
    ],
)
def test_limits_that_nothing_keeps(dse: Dse, options: tuple[str, str], message: str) -> None:
    outcome = dse(*RUN, *options)
    assert outcome.code == 3
    assert message in outcome.err


def test_what_does_not_fit_says_what_would(dse: Dse) -> None:
    small = ("simulate", "-a", "stm32f746", "-w", "mcunet-vww1", "--set", "sram.size=64 KiB")
    outcome = dse(*small, "--planner", "tinyengine")
    assert outcome.code == 3
    assert "28,456 are missing" in outcome.err
    text = " ".join(outcome.err.split())
    assert "planners with which it fits here: vmcu, optimal" in text
    assert "fits with planner tinyengine: stm32f412" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*RUN[:-1], "tflm", "--ram-limit", "64 KiB"), "limits are for --planner optimal"),
        ((*RUN, "--latency-limit", "fast"), "--latency-limit: "),
        ((*RUN, "--ram-limit", "10KB"), "--ram-limit: unknown unit 'KB'"),
        (("simulate", "-a", "edge_npu", "-w", "mlperf_kws", "--tradeoffs"), "whose memory nobody"),
    ],
)
def test_options_that_make_no_sense(dse: Dse, arguments: tuple[str, ...], message: str) -> None:
    outcome = dse(*arguments)
    assert outcome.code == 2
    assert message in outcome.err


def test_memory_of_other_formats_is_planned_with_a_note(dse: Dse) -> None:
    run = ("simulate", "-a", "stm32f746", "--planner", "tflm", "-w")
    noted = dse(*run, "mlperf_kws:dtype=fp32")
    assert "cycles are those of int8 kernels; the network computes in fp32" in noted.out
    document = json.loads(dse(*run, "mlperf_kws:dtype=fp32", "--json").out)
    assert "int8 kernels" in document["latency_note"]
    assert document["memory"]["arena"] == 4 * 16_000
    assert "latency_note" not in json.loads(dse(*run, "mlperf_kws", "--json").out)
    refused = dse(*run, "mlperf_kws:dtype=bf16")
    assert refused.code == 3
    assert "int8" in refused.err
    assert "planners with which it fits" not in refused.err

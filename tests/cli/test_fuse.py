"""Does ``--fuse`` print the schedule that it found, and refuse what makes no sense?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arch.load import load_architecture
from dse.plan_document import plan_document, plan_of
from mapper.workload.load import load_workload
from sim.plan import evaluate_plan
from tests.cli.running import Dse

NET = """
import torch


def make():
    layers = (
        torch.nn.Conv2d(4, 16, 3, padding=1),
        torch.nn.Conv2d(16, 16, 3, padding=1, groups=16),
        torch.nn.Conv2d(16, 4, 1),
    )
    return torch.nn.Sequential(*layers), torch.zeros(1, 4, 16, 16)
"""
SMALL = ("--set", "gbuf.size=4 KiB")


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(NET, encoding="utf-8")
    return f"{path}:make:dtype=int8"


def json_of(dse: Dse, *arguments: object) -> dict[str, Any]:
    outcome = dse(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def test_the_schedule_as_json_can_be_run_again(dse: Dse, net: str) -> None:
    """Every operator once, cheaper than unfused, and the plan evaluates to the same numbers."""
    found = json_of(dse, "map", "--arch", "edge_npu", "--workload", net, "--fuse", *SMALL)
    schedule = found["schedule"]
    names = [name for unit in schedule["plan"]["units"] for name in unit["operators"]]
    workload = load_workload(net)
    assert sorted(names) == sorted(o.name for o in workload.operators)
    assert schedule["bytes_saved"] > 0
    assert schedule["energy_pj"] < schedule["unfused_energy_pj"]
    assert schedule["lower_bound"] <= schedule["latency_ps"] * schedule["energy_pj"]
    plan = plan_of(schedule["plan"])
    assert plan_document(plan) == schedule["plan"]
    device = load_architecture("edge_npu", {"gbuf.size": "4 KiB"})
    again = evaluate_plan("analytical", workload, device, plan)
    assert again.latency_ps == found["latency_ps"] == schedule["latency_ps"]
    assert again.energy_pj == found["energy_pj"]


def test_tables_name_groups_and_savings(dse: Dse, net: str) -> None:
    outcome = dse("map", "--arch", "edge_npu", "--workload", net, "--fuse", *SMALL)
    assert outcome.code == 0, outcome.err
    for word in ("unfused", "not written to and read from outside", "no order has less", "tiles"):
        assert word in outcome.out


def test_a_fused_run_is_simulated_and_traced(dse: Dse, net: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    asked = ("--arch", "edge_npu", "--workload", net, "--fuse", "--trace", trace, *SMALL)
    found = json_of(dse, "simulate", *asked)
    assert found["latency_ps"] >= found["schedule"]["latency_ps"]
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    ends = [e["ts"] + e["dur"] for e in events if e["ph"] == "X"]
    assert max(ends) == pytest.approx(found["latency_ps"] / 1e6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--op", "0"), "leave out --op"),
        (("--unroll", "rows=C"), "--fuse chooses it"),
        (("--search", "random"), "--fuse searches exactly"),
    ],
)
def test_options_of_single_operators_are_refused(
    dse: Dse, net: str, options: tuple[str, ...], message: str
) -> None:
    outcome = dse("map", "--arch", "edge_npu", "--workload", net, "--fuse", *options)
    assert outcome.code == 2
    assert message in outcome.err


def test_what_runs_nothing_runs_nothing_fused(dse: Dse, net: str) -> None:
    """Exit code 3 with the operation that is missing, as without --fuse."""
    asked = ("map", "--arch", "nvdla_small", "--workload", "gpt2:seq=8,layers=1")
    plain, fused = dse(*asked), dse(*asked, "--fuse")
    assert (fused.code, fused.err) == (plain.code, plain.err)


def test_several_cores_share_the_work(dse: Dse, net: str) -> None:
    """Faster than one core, never below the bound, every unit within the run."""
    asked = ("--arch", "quad_core", "--workload", net, "--fuse", "--objective", "latency")
    found = json_of(dse, "map", *asked)
    assert found["lower_bound"] <= found["latency_ps"] < found["one_core"]["latency_ps"]
    assert found["units_considered"] > len(found["units"])
    assert {unit["core"] for unit in found["units"]} <= set(range(4))
    assert max(unit["end_ps"] for unit in found["units"]) <= found["latency_ps"]
    assert found["shared_memory_busy_ps"] <= found["latency_ps"]

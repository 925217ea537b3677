"""Is the trace a faithful and small picture of the simulation?"""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from arch.errors import InputError
from arch.load import load_architecture
from arch.spec import Architecture
from mapper.mapping import Mapping
from mapper.search.exact import map_operator
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.models import cost_model
from sim.prices import price
from sim.timeline import timeline
from sim.trace import write_trace

Subject = tuple[Workload, Architecture, dict[str, Mapping]]


@pytest.fixture(scope="module")
def subject() -> Subject:
    workload = load_workload("gemm:M=4096,N=48,K=100")
    architecture = load_architecture("tiny")
    mappings = {
        o.name: map_operator(workload, o, architecture, price).mapping for o in workload.operators
    }
    return workload, architecture, mappings


def read(path: Path) -> tuple[list[dict[str, Any]], dict[tuple[int, int], str]]:
    """Slices with exact times, and the names of the tracks."""
    document = json.loads(path.read_text(), parse_float=Decimal)
    events = document["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [e for e in events if e["ph"] == "X"], names


def test_the_file_has_every_slice_with_exact_times(subject: Subject, tmp_path: Path) -> None:
    write_trace(tmp_path / "trace.json", *subject)
    slices, names = read(tmp_path / "trace.json")
    written = [
        (names[e["pid"], e["tid"]], e["name"], e["ts"] * 10**6, e["dur"] * 10**6) for e in slices
    ]
    expected = [(s.track, s.name, s.start_ps, s.duration_ps) for s in timeline(*subject)]
    assert written == expected


def test_the_trace_agrees_with_the_metrics(subject: Subject, tmp_path: Path) -> None:
    """Busy time per port; a slice of skipped iterations says how much of it was busy."""
    write_trace(tmp_path / "trace.json", *subject)
    slices, names = read(tmp_path / "trace.json")
    busy: dict[str, Decimal] = defaultdict(Decimal)
    for event in slices:
        share = event.get("args", {}).get("busy_us", event["dur"])
        busy[names[event["pid"], event["tid"]]] += share * 10**6
    metrics = cost_model("event").evaluate(*subject)
    for name in ("dram", "array"):
        assert busy[name] == metrics.components[name].busy_ps
    ports = (busy["buffer.read"], busy["buffer.write"])
    assert max(ports) == metrics.components["buffer"].busy_ps
    assert busy["operator"] == metrics.latency_ps


def test_skipped_loops_are_one_labelled_slice(subject: Subject, tmp_path: Path) -> None:
    write_trace(tmp_path / "trace.json", *subject)
    slices, names = read(tmp_path / "trace.json")
    steady = [e for e in slices if "steady state" in e["name"]]
    assert {names[e["pid"], e["tid"]] for e in steady} >= {"dram", "array", "compute"}
    iterations = sum(e["args"]["iterations"] for e in steady)
    assert all(f"x {e['args']['iterations']} iterations" in e["name"] for e in steady)
    assert len(slices) < 2000 < iterations


def test_a_trace_that_is_too_large_is_refused_and_leaves_nothing(
    subject: Subject, tmp_path: Path
) -> None:
    write_trace(tmp_path / "trace.json", *subject)
    size = (tmp_path / "trace.json").stat().st_size
    (tmp_path / "trace.json").unlink()
    write_trace(tmp_path / "fits.json", *subject, max_bytes=size)
    with pytest.raises(InputError, match=r"trace: the trace of gemm.* single operator"):
        write_trace(tmp_path / "trace.json", *subject, max_bytes=size - 1)
    assert [path.name for path in tmp_path.iterdir()] == ["fits.json"]


def test_a_trace_that_cannot_be_written_is_bad_input(subject: Subject, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in ("missing", "file"):
        with pytest.raises(InputError, match=f"{folder}.*cannot write the trace"):
            write_trace(tmp_path / folder / "trace.json", *subject)

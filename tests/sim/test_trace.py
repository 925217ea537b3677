"""Is the trace a faithful and small picture of the simulation?"""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
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
    expected = [
        (s.track, f"{s.name} [{s.tile}]" if s.tile else s.name, s.start_ps, s.duration_ps)
        for s in timeline(*subject)
    ]
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


#: Of the Trace Event Format, by phase: the fields that viewers need, and their types.
FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "X": {"name": str, "pid": int, "tid": int, "ts": (int, Decimal), "dur": (int, Decimal)},
    "C": {"name": str, "pid": int, "tid": int, "ts": (int, Decimal), "args": dict},
}


def test_the_file_is_in_the_trace_event_format(subject: Subject, tmp_path: Path) -> None:
    write_trace(tmp_path / "trace.json", *subject)
    document = json.loads((tmp_path / "trace.json").read_text(), parse_float=Decimal)
    assert set(document) == {"traceEvents", "displayTimeUnit"}
    tracks = set()
    for event in document["traceEvents"]:
        for field, kind in FIELDS[event["ph"]].items():
            assert isinstance(event[field], kind), event
        if event["name"] == "thread_name":
            tracks.add((event["pid"], event["tid"]))
        if event["ph"] == "X":
            assert (event["pid"], event["tid"]) in tracks
            assert min(event["ts"], event["dur"]) >= 0
        if event["ph"] == "C":
            assert all(value >= 0 for value in event["args"].values())


def counters(path: Path) -> dict[str, list[tuple[Decimal, Decimal]]]:
    """(time in us, value) of each counter."""
    document = json.loads(path.read_text(), parse_float=Decimal, parse_int=Decimal)
    found: dict[str, list[tuple[Decimal, Decimal]]] = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "C":
            found[event["name"]].append((event["ts"], event["args"]["value"]))
    return found


def test_power_over_time_is_the_energy_and_everything_ends_at_zero(
    subject: Subject, tmp_path: Path
) -> None:
    write_trace(tmp_path / "trace.json", *subject)
    found = counters(tmp_path / "trace.json")
    assert {"bytes in flight", "dynamic power in W", "queue dram"} <= set(found)
    for steps in found.values():
        assert steps == sorted(steps, key=lambda step: step[0])
        assert steps[-1][1] == 0
    power = found["dynamic power in W"]
    microjoules = sum((b[0] - a[0]) * a[1] for a, b in pairwise(power))
    energy_pj = cost_model("event").evaluate(*subject).dynamic_energy_pj
    assert float(microjoules) * 10**6 == pytest.approx(energy_pj, rel=1e-6)


def test_a_window_shows_every_tile_in_it_and_nothing_else(subject: Subject, tmp_path: Path) -> None:
    whole = list(timeline(*subject))
    steady = max((s for s in whole if s.iterations > 1), key=lambda s: s.duration_ps)
    begin = steady.start_ps + steady.duration_ps // 2
    window = (begin, begin + steady.duration_ps // 50)
    write_trace(tmp_path / "part.json", *subject, window_ps=window)
    slices, names = read(tmp_path / "part.json")
    inside = [s for s in slices if names[s["pid"], s["tid"]] == "compute"]
    inside = [s for s in inside if "steady state" not in s["name"]]
    assert len(inside) > 5
    for event in slices:
        assert event["ts"] * 10**6 < window[1]
        assert (event["ts"] + event["dur"]) * 10**6 >= window[0]
    numbers = [int(s["name"].split("[")[1].rstrip("]")) for s in inside]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert numbers[0] > 10


def test_many_slices_are_refused_before_they_fill_the_memory(
    subject: Subject, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="--trace-window"):
        write_trace(tmp_path / "t.json", *subject, max_bytes=1000)
    assert not list(tmp_path.iterdir())

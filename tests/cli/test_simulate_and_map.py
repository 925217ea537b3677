"""Do ``dse simulate`` and ``dse map`` print what is promised, and is it consistent?"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Dse

SIMULATE = {
    "latency_ps",
    "energy_pj",
    "dynamic_energy_pj",
    "area_mm2",
    "area_without",
    "power_w",
    "macs",
    "fidelity",
    "engine",
    "gap",
    "notes",
    "memory",
    "components",
    "operators",
    "folded",
}
COMPONENT = {"busy_ps", "energy_pj", "read_bytes", "write_bytes", "utilization"}
OPERATOR = {"name", "latency_ps", "energy_pj", "bound_by"}
MAPPED = {"mapping", "calls", "optimal", "lower_bound", "gap", "seconds"}
GEMM = "gemm:M=24,N=32,K=48"
TINY = ("--arch", "tiny", "--workload", GEMM)


def json_of(dse: Dse, *arguments: object) -> dict[str, Any]:
    outcome = dse(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def test_a_sampled_mapping_is_simulated_as_it_was_found(dse: Dse) -> None:
    """Differential: the same search, seed and budget are the same mapping in both commands."""
    found = {}
    for seed in (3, 4):
        sampled = (*TINY, "--search", "random", "--budget", 5, "--seed", seed)
        mapped = json_of(dse, "map", *sampled)
        for fidelity in ("analytical", "event"):
            run = json_of(dse, "simulate", *sampled, "--fidelity", fidelity)
            assert run["dynamic_energy_pj"] == pytest.approx(mapped["dynamic_energy_pj"])
            found[seed, fidelity] = run["latency_ps"]
        assert found[seed, "analytical"] == mapped["latency_ps"] <= found[seed, "event"]
    best = json_of(dse, "simulate", *TINY, "--fidelity", "analytical")
    assert max(found.values()) > best["latency_ps"]


@pytest.mark.parametrize("fidelity", ["roofline", "analytical", "event"])
def test_the_document_of_simulate(dse: Dse, fidelity: str) -> None:
    document = json_of(dse, "simulate", *TINY, "--fidelity", fidelity)
    assert set(document) == SIMULATE
    assert document["fidelity"] == fidelity
    assert document["macs"] == 24 * 32 * 48
    assert all(set(c) == COMPONENT for c in document["components"].values())
    assert all(set(o) >= OPERATOR for o in document["operators"])
    assert set(document["memory"]) <= set(document["components"])


def test_operators_and_components_sum_to_the_totals(dse: Dse) -> None:
    document = json_of(dse, "simulate", *TINY)
    operators, components = document["operators"], document["components"].values()
    assert sum(o["latency_ps"] for o in operators) == document["latency_ps"]
    for parts in (operators, components):
        assert math.isclose(sum(p["energy_pj"] for p in parts), document["energy_pj"])
    # 1 W is 1 pJ per ps.
    power = document["energy_pj"] / document["latency_ps"]
    assert math.isclose(document["power_w"], power)


def test_map_adds_the_search_to_the_document(dse: Dse) -> None:
    mapped = json_of(dse, "map", *TINY)
    (operator,) = mapped["operators"]
    assert set(operator) >= OPERATOR | MAPPED
    assert operator["optimal"] is True
    assert operator["gap"] == 0
    assert operator["calls"] > 0
    simulated = json_of(dse, "simulate", *TINY, "--fidelity", "analytical")
    assert {k: mapped[k] for k in SIMULATE - {"operators"}} == {
        k: simulated[k] for k in SIMULATE - {"operators"}
    }


def test_the_bound_is_in_the_units_of_the_objective(dse: Dse) -> None:
    mapped = json_of(dse, "map", *TINY, "--objective", "latency")
    (operator,) = mapped["operators"]
    assert math.isclose(operator["lower_bound"], operator["latency_ps"], rel_tol=1e-6)


def test_the_printed_loops_cover_the_operator(dse: Dse) -> None:
    """Trip counts of temporal loops times spatial factors give every multiplication once."""
    mapping = json_of(dse, "map", *TINY)["operators"][0]["mapping"]
    extents = {"M": 24, "N": 32, "K": 48}
    tiles = dict(extents)
    for level in mapping["nest"]:
        if "loop" in level:
            assert level["tile"] <= tiles[level["loop"]]
            tiles[level["loop"]] = level["tile"]
    for unrolled in mapping["spatial"]:
        tiles[unrolled["dim"]] = math.ceil(tiles[unrolled["dim"]] / unrolled["factor"])
    assert set(tiles.values()) == {1}


def test_one_operator_of_a_network(dse: Dse) -> None:
    whole = json_of(dse, "map", "--arch", "edge_npu", "--workload", "resnet18:image=32")
    one = json_of(dse, "map", "--arch", "edge_npu", "--workload", "resnet18:image=32", "--op", "fc")
    (alone,) = one["operators"]
    (among,) = (o for o in whole["operators"] if o["name"] == "fc")
    assert {**alone, "seconds": 0} == {**among, "seconds": 0}


def test_an_override_changes_what_it_says(dse: Dse) -> None:
    narrow = json_of(dse, "simulate", *TINY, "--set", "array.rows=2")
    wide = json_of(dse, "simulate", *TINY, "--set", "array.rows=4")
    assert narrow["area_mm2"] <= wide["area_mm2"]
    assert narrow["latency_ps"] > wide["latency_ps"]


def test_people_get_tables(dse: Dse) -> None:
    simulated = dse("simulate", *TINY)
    assert simulated.code == 0
    for text in ("latency", "energy", "bound by", "component", "36,864"):
        assert text in simulated.out
    mapped = dse("map", *TINY)
    for text in ("proven", "gap", "for ", "keep input in ", "one step of "):
        assert text in mapped.out


def test_a_trace_is_written_and_said_so_beside_the_document(dse: Dse, tmp_path: Path) -> None:
    target = tmp_path / "trace.json"
    outcome = dse("simulate", *TINY, "--trace", target, "--json")
    assert set(json.loads(outcome.out)) == SIMULATE
    assert str(target) in outcome.err
    events = json.loads(target.read_text(encoding="utf-8"))["traceEvents"]
    assert {event["ph"] for event in events} >= {"X", "M"}


def test_hardware_that_cannot_run_the_workload(dse: Dse) -> None:
    outcome = dse("simulate", "--arch", "tiny", "--workload", f"{GEMM},dtype=fp32")
    assert (outcome.code, outcome.out) == (3, "")
    assert "the hardware cannot run this" in outcome.err
    assert "fp32" in outcome.err


def test_pictures_are_written(dse: Dse, tmp_path: Path) -> None:
    trace, picture, drawing = (tmp_path / n for n in ("t.json", "t.png", "t.svg"))
    outcome = dse("simulate", *TINY, "--trace", trace, "--timeline", picture)
    assert outcome.code == 0, outcome.err
    assert trace.stat().st_size > 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert dse("simulate", *TINY, "--timeline", drawing).code == 0
    assert "<svg" in drawing.read_text()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--timeline", "x.pdf"), "must end in .png or .svg"),
        (("--trace-window", "1us:2us"), "--trace FILE, which is missing"),
        (("--trace", "t.json", "--trace-window", "2us:1us"), "ends before it begins"),
        (("--trace", "t.json", "--trace-window", "2us"), "is not START:END"),
        (("--trace", "t.json", "--trace-window", "9s:10s"), "the run takes"),
        (("--engine", "simpi"), "did you mean 'simpy'?"),
    ],
)
def test_pictures_and_engines_that_make_no_sense(
    dse: Dse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = dse("simulate", *TINY, *options)
    assert outcome.code == 2
    assert complaint in outcome.err
    assert not list(tmp_path.iterdir())


def test_both_engines_have_one_answer(dse: Dse) -> None:
    replayed = json_of(dse, "simulate", *TINY)
    simulated = json_of(dse, "simulate", *TINY, "--engine", "simpy")
    assert (replayed["engine"], simulated["engine"]) == ("replay", "simpy")
    assert replayed["latency_ps"] == simulated["latency_ps"]
    quick = json_of(dse, "simulate", *TINY, "--fidelity", "analytical")
    assert sum(replayed["gap"].values()) == replayed["latency_ps"] - quick["latency_ps"]
    assert quick["engine"] is None

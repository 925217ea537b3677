"""A network on several cores: fidelities in order, what adds up, and what users see."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from arch.errors import InputError
from arch.load import load_architecture
from arch.spec import Architecture
from dse.evaluate import document
from dse.on_cores import PlacedRun
from dse.plan_document import plan_of
from dse.report.figures.timeline import write_run
from dse.simulation import Simulation, Way, simulate
from mapper.search.method import Method
from mapper.workload.graph import Workload
from sim.models import FIDELITIES
from sim.plan_cores import cores_timeline, evaluate_on_cores
from sim.timeline import EVERYTHING, View
from tests.cli.running import run_dse
from tests.mapper.fusion.cases import network

SMALL = ("--arch", "quad_core", "--workload", "gemm:M=32,N=32,K=32")


@cache
def hardware() -> Architecture:
    return load_architecture("quad_core", {"gbuf.size": "4 KiB"})


@cache
def workload() -> Workload:
    return network("conv conv")


@cache
def found(fidelity: str) -> Simulation:
    return simulate(workload(), hardware(), fidelity, "latency")


def placed(fidelity: str) -> PlacedRun:
    run = found(fidelity).placed
    assert run is not None
    return run


def test_fidelities_are_in_order_and_spend_the_same_dynamic_energy() -> None:
    metrics = [found(fidelity).metrics for fidelity in FIDELITIES]
    latencies = [each.latency_ps for each in metrics]
    assert latencies == sorted(latencies)
    assert len(set(latencies)) == len(FIDELITIES)
    for each in metrics:
        assert each.dynamic_energy_pj == pytest.approx(metrics[0].dynamic_energy_pj)
        leakage_pj = hardware().leakage_w * each.latency_ps
        assert each.energy_pj == pytest.approx(each.dynamic_energy_pj + leakage_pj)
        assert each.energy_pj == pytest.approx(sum(c.energy_pj for c in each.components.values()))
        assert all(0 <= c.utilization <= 1 for c in each.components.values())
        assert all(c.busy_ps <= each.latency_ps for c in each.components.values())


def test_both_convolutions_run_on_cores_of_their_own_at_once() -> None:
    first, second = placed("event").run.units
    assert first.core != second.core
    assert second.span_ps[0] < first.span_ps[1]


def test_tiles_of_a_core_follow_each_other_and_the_port_serves_one_at_a_time() -> None:
    run = placed("event").run
    slices = list(cores_timeline(run, "dram"))
    for group in ("processes", "ports"):
        for track in {s.track for s in slices if s.group == group}:
            spans = sorted(
                (s.start_ps, s.start_ps + s.duration_ps)
                for s in slices
                if (s.group, s.track) == (group, track)
            )
            assert all(one[1] <= other[0] for one, other in pairwise(spans))
    port = sum(s.duration_ps for s in slices if s.group == "ports")
    assert port == sum(
        end - start
        for turns in run.simulated.port_ps
        for start, end in turns  # type: ignore[union-attr]
    )
    assert max(s.start_ps + s.duration_ps for s in slices) == run.metrics.latency_ps


def test_a_stretch_of_the_timeline_is_what_overlaps_it() -> None:
    whole = list(placed("event").timeline(workload(), hardware(), EVERYTHING))
    view = View(stretch_ps=(0, 1000))
    part = list(placed("analytical").timeline(workload(), hardware(), view))
    assert part == [piece for piece in whole if view.shows(piece)]
    assert 0 < len(part) < len(whole)


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_what_a_study_keeps_is_enough_to_evaluate_it_again(fidelity: str) -> None:
    kept = json.loads(json.dumps(document(found(fidelity))))["schedule"]
    again = evaluate_on_cores(
        fidelity, workload(), hardware(), plan_of(kept["plan"]), kept["cores"]
    )
    assert again.metrics == found(fidelity).metrics


def test_the_picture_shows_every_core_that_works(tmp_path: Path) -> None:
    path = tmp_path / "run.svg"
    write_run(path, list(placed("event").timeline(workload(), hardware(), EVERYTHING)), hardware())
    text = path.read_text()
    for shown in ("core 0", "core 1", "dram (shared)"):
        assert shown in text
    assert "core 2" not in text


def test_the_command_says_which_core_runs_what() -> None:
    shown = run_dse("simulate", *SMALL, "--fidelity", "analytical")
    assert shown.code == 0
    assert "on 4 cores, placed for least edp" in shown.out
    assert "cores busy   100 %, 0 %, 0 %, 0 %" in shown.out
    kept = json.loads(run_dse("simulate", *SMALL, "--fidelity", "event", "--json").out)
    (unit,) = kept["cores"]["units"]
    assert (unit["core"], unit["run_end_ps"]) == (0, kept["latency_ps"])


@pytest.mark.parametrize(
    "way", [Way(given="weight_stationary"), Way(method=Method(name="random", budget=3))]
)
def test_mappings_that_would_be_ignored_are_refused(way: Way) -> None:
    with pytest.raises(InputError, match="on 4 cores"):
        simulate(workload(), hardware(), "analytical", "latency", way)
    alone = load_architecture("quad_core", {"cores": 1})
    with pytest.raises(InputError, match="with fusion"):
        simulate(workload(), alone, "analytical", "latency", replace(way, fuse=True))


def test_a_given_mapping_is_refused() -> None:
    refused = run_dse("simulate", *SMALL, "--mapping", "weight_stationary")
    assert refused.code == 2
    assert "with 4 cores, the search that places units chooses it" in refused.err

"""Does a report show every parameter as it is, and say which changes matter and who simulated?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_study import study

from arch.load import load_architecture
from arch.registry import family_named
from dse.load_config import load_search
from dse.report import display
from dse.report.answer import IDLE, answer
from dse.report.data import gather
from dse.report.explain import TOPICS, Comparison
from dse.report.models import collect
from dse.report.settings import setting
from dse.search import SearchRun, search
from dse.study import Study

ASKED = """\
name: changes
workloads: ["gemm:M=32,N=32,K=32,dtype=int8"]
arch: tiny
parameters:
  array.rows: {choices: [8]}
  array.cols: {choices: [8]}
  dram.arbitration: {choices: [round_robin]}
  dram.queue: {choices: [8]}
objectives: [latency]
trials: 1
"""


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Whose one design differs from the start in everything; nothing waits at a port, for the
    model is the analytical one."""
    folder = tmp_path_factory.mktemp("search")
    (folder / "changes.yaml").write_text(ASKED, encoding="utf-8")
    return search(SearchRun(config=load_search(folder / "changes.yaml"), run_dir=folder / "run"))


@pytest.mark.parametrize("name", ["edge_npu", "h100_sxm", "stm32f746", "ddr4_2400_1rank"])
def test_a_parameter_that_is_left_out_is_its_default(name: str) -> None:
    """Setting every parameter to what it is shown as gives the same hardware."""
    architecture = load_architecture(name)
    paths = family_named(architecture.family).paths(architecture.document)
    shown = {path: setting(architecture, path) for path in paths}
    ineffective = (".priority", ".interleave")  # refused where they have no effect
    known = {p: v for p, v in shown.items() if v is not None and not p.endswith(ineffective)}
    assert known
    for path, value in known.items():
        assert architecture.with_overrides({path: value}) == architecture, path


def test_values_are_written_as_in_yaml() -> None:
    assert [display.parameter(v) for v in (None, True, 8, "2 us")] == ["–", "true", "8", "2 µs"]


def test_changes_that_could_be_left_out_are_marked(searched: Study) -> None:
    evidence = collect(searched)
    assert evidence.idle == ("dram.arbitration", "dram.queue")
    changes = {path: rest for path, *rest in answer(gather(searched, evidence)).changes}
    assert changes["dram.queue"] == ["unlimited", "8", IDLE]
    assert changes["array.rows"][2] == ""


def test_the_engines_are_those_of_the_trials(tmp_path: Path) -> None:
    made = study(tmp_path, 2)
    assert made.engines == ()
    by = [
        replace(t, metrics={"w": {"engine": engine}})
        for t, engine in zip(made.trials, ("simpy", "replay"), strict=True)
    ]
    assert replace(made, trials=tuple(by[:1])).engines == ("simpy",)
    assert replace(made, trials=tuple(by)).engines == ("replay", "simpy")


def test_latency_is_not_asked_for_as_if_it_were_a_component(tmp_path: Path) -> None:
    made = study(tmp_path, 2)
    document = made.start.metrics["resnet18"]
    waiting = [{**operator, "bound_by": "latency"} for operator in document["operators"]]
    chosen = replace(made.start, metrics={"resnet18": {**document, "operators": waiting}})
    base = made.config.architecture({})
    told = dict(TOPICS)["Next bottleneck"](
        Comparison(study=made, chosen=chosen, pairs=(), before=base, after=base)
    )
    assert "needs less latency first" in told

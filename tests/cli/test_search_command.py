"""Does ``dse search`` run end to end, stop when told to, and say what it did?"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest

from arch import catalog
from dse.store import FILE, load_study
from tests.cli.running import Dse, run_dse

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = {
    "trials",
    "feasible",
    "pareto",
    "best",
    "designs",
    "cost_model_calls",
    "seconds",
    "engine",
    "run_dir",
}


def search(dse: Dse, *arguments: object) -> dict[str, Any]:
    outcome = dse("search", "quick", "--workers", 1, *arguments, "--json")
    assert outcome.code == 0, outcome.err
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def without_clock(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "seconds": 0, "run_dir": ""}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search") / "run"


@pytest.fixture(scope="module")
def document(run_dir: Path) -> dict[str, Any]:
    """Of one search that several tests look at."""
    return search(run_dse, "--out", run_dir, "--trials", 6)


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches without their report, which takes longer than they do."""
    command = importlib.import_module("dse.cli.commands.search")
    monkeypatch.setattr(command, "write", lambda study, evidence, folder: folder / "report.html")


def test_the_document_and_what_lies_in_the_run_directory(
    document: dict[str, Any], run_dir: Path
) -> None:
    assert set(document) == DOCUMENT
    assert document["trials"] == 6
    assert 0 < document["feasible"] <= 6
    assert set(document["best"]) == {"latency", "energy", "area"}
    assert document["run_dir"] == str(run_dir)
    for design in document["pareto"]:
        assert {"trial", "overrides", "latency_ps", "energy_pj", "area_mm2"} <= set(design)
    front = {design["trial"] for design in document["pareto"]}
    assert {design["trial"] for design in document["designs"]} <= front
    roles = [role for design in document["designs"] for role in design["roles"]]
    assert roles[0] == "compromise"
    assert set(roles) == {"compromise", "best latency", "best energy", "best area"}
    assert (run_dir / "report.html").stat().st_size > 0
    study = load_study(run_dir)
    assert len(study.pareto()) == len(document["pareto"])
    assert study.cost_model_calls == document["cost_model_calls"]


def test_a_design_of_the_front_can_be_simulated(
    dse: Dse, document: dict[str, Any], run_dir: Path
) -> None:
    designs = sorted((run_dir / "designs").glob("*.yaml"))
    assert designs
    workload = "gemm:M=64,N=64,K=64,dtype=int8"
    options = ("--workload", workload, "--fidelity", "analytical", "--json")
    found = [json.loads(dse("simulate", "--arch", path, *options).out) for path in designs]
    front = {(d["latency_ps"], d["area_mm2"]) for d in document["pareto"]}
    assert {(d["latency_ps"], d["area_mm2"]) for d in found} <= front


@pytest.mark.usefixtures("no_report")
def test_resuming_equals_running_at_once(
    dse: Dse, document: dict[str, Any], tmp_path: Path
) -> None:
    search(dse, "--out", tmp_path, "--trials", 3)
    twice = search(dse, "--out", tmp_path, "--trials", 6, "--resume")
    assert without_clock(twice) == without_clock(document)


@pytest.mark.usefixtures("no_report")
def test_run_directories_are_numbered(
    dse: Dse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    directories = [search(dse, "--trials", 1)["run_dir"] for _ in range(2)]
    assert directories == ["runs/quick", "runs/quick-2"]
    assert search(dse, "--trials", 2, "--resume")["run_dir"] == "runs/quick-2"


@pytest.mark.usefixtures("document")
def test_an_occupied_directory_is_refused(dse: Dse, run_dir: Path, tmp_path: Path) -> None:
    again = dse("search", "quick", "--out", run_dir, "--trials", 1)
    assert again.code == 2
    assert "holds a study already; resume it" in again.err
    other = tmp_path / "other.yaml"
    text = catalog.find("search", "quick").read_text(encoding="utf-8")
    other.write_text(text.replace("seed: 1", "seed: 2"), encoding="utf-8")
    resumed = dse("search", other, "--out", run_dir, "--resume")
    assert resumed.code == 2
    assert "seed: was 1, is 2" in resumed.err
    assert len(load_study(run_dir).trials) == 6


def test_nothing_feasible(dse: Dse, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = (Path(__file__).parent / "data" / "mine.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("<= 0.4 mm2", "<= 0.0001 mm2"), encoding="utf-8")
    outcome = dse("search", path, "--out", tmp_path / "run", "--trials", 2, "--workers", 1)
    assert outcome.code == 3
    assert "No design meets every constraint" in outcome.out
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.usefixtures("no_report")
def test_the_summary_names_the_report(dse: Dse, tmp_path: Path) -> None:
    outcome = dse("search", "quick", "--out", tmp_path, "--trials", 2, "--workers", 1)
    assert outcome.code == 0
    assert f"report: {tmp_path}/report.html" in outcome.out
    assert "start" in outcome.out


@pytest.mark.usefixtures("document")
def test_the_report_is_written_again(dse: Dse, run_dir: Path) -> None:
    (run_dir / "report.html").unlink()
    assert dse("report", run_dir).out == f"report: {run_dir}/report.html\n"
    assert (run_dir / "report.html").exists()


@pytest.mark.usefixtures("document")
def test_no_report_on_a_network_that_has_changed(dse: Dse, run_dir: Path, tmp_path: Path) -> None:
    """Its recorded mappings belong to another network."""
    copy = tmp_path / "run"
    shutil.copytree(run_dir, copy)
    with sqlite3.connect(copy / FILE) as connection:
        (known,) = connection.execute("SELECT value FROM run WHERE key = 'workloads'").fetchone()
        other = json.dumps(dict.fromkeys(json.loads(known), "another"))
        connection.execute("UPDATE run SET value = ? WHERE key = 'workloads'", (other,))
    outcome = dse("report", copy)
    assert outcome.code == 2
    assert "the network that it names is another than the one searched for" in outcome.err


def test_export_for_the_dashboard(dse: Dse, document: dict[str, Any], run_dir: Path) -> None:
    url = dse("export-optuna", run_dir).out.strip()
    study = optuna.load_study(study_name="quick", storage=url)
    started_inside = bool(load_study(run_dir).start.overrides)
    assert len(study.trials) == document["trials"] + started_inside
    ours = {tuple(d[k] for k in study.metric_names) for d in document["pareto"]}
    assert {tuple(trial.values) for trial in study.best_trials} == ours


def test_interrupt_ends_with_a_report(tmp_path: Path) -> None:
    """The signal is sent after the first trial was announced, well before the last."""
    script = "import sys; from dse.cli import main; sys.exit(main())"
    arguments = ["search", "quick", "--trials", "24", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    assert "/24 designs" in first
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert f"report: {tmp_path}/report.html" in out
    study = load_study(tmp_path)
    assert study.stopped == "interrupted"
    assert 0 < len(study.trials) < 24

"""Does every search that makes no sense end before it starts, with one precise message?"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest

from dse.store import FILE
from tests.cli.running import Dse

GOOD = (Path(__file__).parent / "data" / "mine.yaml").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class BadSearch:
    """``old`` is replaced by ``new``; the message names the place ``where`` and ``says`` this."""

    name: str
    old: str
    new: str
    where: str
    says: tuple[str, ...]


def bad(name: str, change: tuple[str, str], where: str, *says: str) -> BadSearch:
    return BadSearch(name, *change, where, says)


BAD_SEARCHES = (
    bad("typo in a key", ("objectives:", "objectivs:"), "objectivs", "did you mean 'objectives'?"),
    bad("unknown architecture", ("arch: edge_npu", "arch: edge_npv"), "arch", "'edge_npu'?"),
    bad("unknown workload", ("gemm:M=64", "gemmm:M=64"), "workloads.0", "did you mean 'gemm'?"),
    bad("negative dimension", ("M=64", "M=-64"), "workloads.0", "-64"),
    bad("unknown path", ("gbuf.size:", "gbuf.siez:"), "parameters.gbuf.siez", "'gbuf.size'?"),
    bad("no values", ("[4, 8, 16]", "[]"), "parameters.array.rows", ""),
    bad("a value twice", ("[4, 8, 16]", "[4, 8, 8]"), "parameters.array.rows", "more than once"),
    bad("a value that is not allowed", ("[4, 8, 16]", "[0, 8, 16]"), "parameters.array.rows", "0"),
    bad("unknown form", ("{choices: [4, 8, 16]}", "{choice: [4]}"), "parameters.array.rows", ""),
    bad("tie to nothing", ("tie: array.rows", "tie: array.rws"), "parameters.array.cols", ""),
    bad("range backwards", ("[8 KiB, 64 KiB]", "[64 KiB, 8 KiB]"), "parameters.gbuf.size", ""),
    bad("unit missing", ("[8 KiB, 64 KiB]", "[8, 64]"), "parameters.gbuf.size", ""),
    bad("unknown objective", ("latency, energy", "latncy, energy"), "objectives", "'latency'?"),
    bad("no objective", ("[latency, energy, area]", "[]"), "objectives", ""),
    bad("unknown constraint", ("{area:", "{aera:"), "constraints", "'area'?"),
    bad("a lower limit", ("<= 0.4 mm2", ">= 0.4 mm2"), "constraints.area", "<="),
    bad("limit in another unit", ("<= 0.4 mm2", "<= 0.4 mJ"), "constraints.area", "mm2"),
    bad("no trials", ("trials: 12", "trials: 0"), "trials", "allowed"),
    bad("text for trials", ("trials: 12", "trials: many"), "trials", "many"),
    bad("negative seed", ("seed: 1", "seed: -1"), "seed", "allowed"),
    bad("unknown sampler", ("seed: 1", "sampler: bayse"), "sampler", "did you mean 'bayes'?"),
    bad("unknown fidelity", ("seed: 1", "fidelity: evnt"), "fidelity", "'event'?"),
    bad(
        "a mapping of a GPU",
        ("arch: edge_npu", "mapping: {method: random, budget: 3}\narch: h200"),
        "mapping",
        "h200 runs kernels of a library",
    ),
    bad(
        "fusion on a microcontroller",
        ("arch: edge_npu", "mapping: {fusion: true}\narch: stm32f746"),
        "mapping",
        "stm32f746 runs kernels of a library",
    ),
    bad("unknown method", ("seed: 1", "mapping: {method: exct}"), "mapping.method", "'exact'?"),
    bad(
        "two searches",
        ("seed: 1", "mapping: {fusion: true, method: random}"),
        "mapping",
        "exact",
    ),
    bad("no calls", ("seed: 1", "mapping: {budget: 0}"), "mapping.budget", "allowed"),
    bad("key twice", ("seed: 1", "seed: 1\nseed: 2"), "seed", "duplicate"),
)


@pytest.mark.parametrize("case", BAD_SEARCHES, ids=lambda case: case.name)
@pytest.mark.parametrize("command", ["check", "search"])
def test_message_place_and_silence(dse: Dse, tmp_path: Path, command: str, case: BadSearch) -> None:
    assert case.old in GOOD
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace(case.old, case.new, 1), encoding="utf-8")
    out = ("--out", tmp_path / "run", "--json") if command == "search" else ()
    outcome = dse(command, path, *out)
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert re.search(rf"{re.escape(str(path))}:\d+: {re.escape(case.where)}", outcome.err)
    for text in case.says:
        assert text in outcome.err
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("search quik --out {tmp}/run", ("quik", "did you mean 'quick'?")),
        ("search {tmp}/none.yaml --out {tmp}/run", ("{tmp}/none.yaml", "no such file")),
        ("search quick --out {tmp}/run --trials 0", ("--trials", "0", "allowed 1 or more")),
        ("search quick --out {tmp}/run --trials -3", ("--trials", "allowed 1 or more")),
        ("search quick --out {tmp}/run --trials many", ("--trials", "integer")),
        ("search quick --out {tmp}/run --workers 0", ("--workers", "allowed 1 or more")),
        ("search quick --out {tmp}/run --trails 3", ("--trails", "--trials")),
        ("search quick --out {tmp}/run --resume", ("{tmp}/run", "holds no study")),
    ],
)
def test_bad_search_commands(dse: Dse, tmp_path: Path, line: str, says: tuple[str, ...]) -> None:
    outcome = dse(*line.format(tmp=tmp_path).split())
    assert (outcome.code, outcome.out) == (2, ""), outcome.err
    for text in says:
        assert text.format(tmp=tmp_path) in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_resume_without_any_run(dse: Dse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = dse("search", "quick", "--resume")
    assert outcome.code == 2
    assert "--resume: there is no run of 'quick' in 'runs'" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_out_below_a_file(dse: Dse, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    outcome = dse("search", "quick", "--out", tmp_path / "file" / "run")
    assert outcome.code == 2
    assert f"--out: cannot write '{tmp_path}/file/run'" in outcome.err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("command", ["report", "export-optuna", "search"])
def test_corrupt_study(dse: Dse, tmp_path: Path, command: str) -> None:
    (tmp_path / FILE).write_bytes(b"SQLite format 3\0" + b"garbage" * 1000)
    before = sorted(tmp_path.iterdir())
    arguments = ("quick", "--out", tmp_path, "--resume") if command == "search" else (tmp_path,)
    outcome = dse(command, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert str(tmp_path) in outcome.err
    assert "not a study" in outcome.err
    assert sorted(tmp_path.iterdir()) == before


def test_database_of_something_else(dse: Dse, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("CREATE TABLE recipe (name TEXT)")
    outcome = dse("report", tmp_path)
    assert outcome.code == 2
    assert "not a study" in outcome.err

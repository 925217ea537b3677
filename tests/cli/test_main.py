"""What every command has in common: help, exit codes, bugs."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from arch import catalog
from arch.strict_yaml import read
from dse.cli import COMMANDS
from mapper.workload.load import listings, public_name
from tests.cli.running import Dse

ROOT = Path(__file__).resolve().parent.parent.parent


def test_help_names_every_command(dse: Dse) -> None:
    outcome = dse("--help")
    assert outcome.code == 0
    listed = [line.split()[0] for line in outcome.out.partition("Commands:")[2].splitlines()[1:]]
    assert listed == list(COMMANDS)


def test_no_command_is_help(dse: Dse) -> None:
    assert dse() == dse("--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(dse: Dse, command: str) -> None:
    outcome = dse(command, "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"Usage: dse {command}")
    module = importlib.import_module(f"dse.cli.commands.{command.replace('-', '_')}")
    assert COMMANDS[command].rstrip(".").split(";")[0] in outcome.out
    assert module.run.__doc__


def test_a_bug_is_called_a_bug(dse: Dse, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ZeroDivisionError("division by zero")

    listing = importlib.import_module("dse.cli.commands.list")
    monkeypatch.setattr(listing, "files", broken)
    outcome = dse("list", "archs")
    assert (outcome.code, outcome.out) == (1, "")
    assert "bug" in outcome.err
    assert "ZeroDivisionError: division by zero" in outcome.err
    assert "Traceback" not in outcome.err
    assert "Traceback" in dse("--debug", "list", "archs").err


def test_an_interrupted_command(dse: Dse, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    listing = importlib.import_module("dse.cli.commands.list")
    monkeypatch.setattr(listing, "files", interrupted)
    outcome = dse("list", "archs")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "dse: interrupted\n")


def test_a_reader_that_has_seen_enough() -> None:
    """The reading end of the pipe is closed before anything is written."""
    script = "import sys; from dse.cli import main; sys.exit(main())"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", script, "show", "edge_npu"],
        cwd=ROOT,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_lists_name_what_ships(dse: Dse) -> None:
    for kind, name in (("archs", "edge_npu"), ("workloads", "resnet18"), ("searches", "quick")):
        assert name in dse("list", kind).out


def test_the_list_alone_counts_what_can_be_listed(dse: Dse) -> None:
    alone = dse("list")
    assert alone.code == 0
    counts = json.loads(dse("list", "--json").out)
    for kind, count in counts.items():
        assert len(json.loads(dse("list", kind, "--json").out)[kind]) == count
        assert re.search(rf"dse list {kind} +{count}\b", alone.out)


def test_workloads_are_grouped_and_fit_the_page(dse: Dse) -> None:
    """Every name once, under its group, in one line of at most 120 columns."""
    lines = dse("list", "workloads").out.splitlines()
    assert max(map(len, lines)) <= 120
    heads = [line.split("  ")[0].strip() for line in lines if line.rstrip().endswith("description")]
    groups = {listing.group for listing in listings()} | {"memory traffic"}
    assert {head.rpartition(" (")[0] for head in heads} == groups
    assert len(heads) == len(groups)
    first = [line.split()[0] for line in lines if line[:2].strip()]
    for listing in listings():
        assert first.count(listing.name) == 1


@pytest.mark.parametrize("name", ["llama3.1-8b", "LLaMA3-8b", "conv2d"])
def test_parameters_of_one_workload(dse: Dse, name: str) -> None:
    lines = dse("list", "workloads", name).out.splitlines()
    (listing,) = (each for each in listings() if each.name == public_name(name))
    assert max(map(len, lines)) <= 100
    shown = [line.split()[0] for line in lines if line[:2].strip()]
    assert [word for word in shown if word in {p.name for p in listing.parameters}] == [
        p.name for p in listing.parameters
    ]


@pytest.mark.parametrize(("other", "name"), [("vit_s", "vit-s"), ("llama3-8b", "llama3.1-8b")])
def test_other_names_are_shown_as_they_are_simulated(dse: Dse, other: str, name: str) -> None:
    shown = dse("show", other)
    assert shown.code == 0
    assert shown.out.startswith(f"{name}:")


def test_a_shown_architecture_is_the_file(dse: Dse) -> None:
    shown = dse("show", "edge_npu").out
    assert shown == catalog.find("arch", "edge_npu").read_text(encoding="utf-8")


def test_a_shown_workload_lists_its_operators(dse: Dse) -> None:
    outcome = dse("show", "gemm:M=24,N=32,K=48")
    assert outcome.code == 0
    assert f"{24 * 32 * 48:,} MACs" in outcome.out
    assert "M=24 N=32 K=48" in outcome.out


@pytest.mark.parametrize("kind", ["arch", "workload", "search"])
def test_shipped_files_match_the_published_schema(dse: Dse, kind: str) -> None:
    schema = json.loads(dse("schema", kind).out)
    names = catalog.names(kind)
    assert names
    for name in names:
        jsonschema.validate(read(catalog.find(kind, name)).data, schema)

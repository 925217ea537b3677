"""Do the documents say what is true: do the README's commands run, do the links lead somewhere?"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from dse.cli import COMMANDS
from dse.cli.exits import BAD_INPUT
from tests.cli.running import run_dse

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")

LINK = re.compile(r"\[[^\]]*\]\((?!https?:|#)([^)#\s]+)[^)]*\)")
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: "... `name.yaml`:" before a block makes the block that file.
FILE = re.compile(r"`([\w.]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: A search that names no budget gets this one: the command is tested, not the result.
FEW_TRIALS = ("--trials", "1")


@dataclass(frozen=True, slots=True)
class Command:
    """One line of a shell block, and the exit code that it announces."""

    words: tuple[str, ...]
    code: int


def commands() -> list[Command]:
    lines = [line for block in SHELL.findall(README) for line in block.splitlines() if line]
    return [
        Command(
            tuple(shlex.split(line, comments=True)),
            BAD_INPUT if f"# exit code {BAD_INPUT}" in line else 0,
        )
        for line in lines
    ]


def test_every_dse_command_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order and in one directory, since later ones use what earlier ones made."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall(README):
        Path(name).write_text(text, encoding="utf-8")
    told = [command for command in commands() if command.words[0] == "dse"]
    for command in told:
        few = FEW_TRIALS if command.words[1] == "search" else ()
        outcome = run_dse(*command.words[1:], *few)
        assert outcome.code == command.code, f"{shlex.join(command.words)}\n{outcome.err}"
    assert {command.words[1] for command in told} == set(COMMANDS)
    assert (tmp_path / "runs" / "resnet18_edge" / "report.html").exists()
    assert (tmp_path / "trace.json").exists()


def test_every_other_command_of_the_readme_is_known() -> None:
    others = {c.words for c in commands() if c.words[0] != "dse"}
    assert others == {
        ("make", "demo"),
        (".", ".venv/bin/activate"),
        ("pip", "install", "."),
    }


@pytest.mark.parametrize("target", ["demo", "picture", "test", "lint", "validate", "build"])
def test_make_knows_the_targets_that_are_named(target: str) -> None:
    """Their recipes are printed, not run."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert ".venv/bin/" in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert not [t for t in targets if not (page.parent / t).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_in_code_font_exist(page: Path) -> None:
    """``docs/design.md`` in a text is a promise; the placeholders ``x`` and ``toy`` are none."""
    text = page.read_text(encoding="utf-8")
    paths = re.findall(r"`((?:arch|mapper|sim|dse|docs|tests|configs|benchmarks)/[\w./]+)`", text)
    missing = [
        p for p in paths if not (ROOT / p).exists() and Path(p).stem not in ("x", "toy", "test_toy")
    ]
    known = [p for p in missing if not (ROOT / f"{p}.py").exists()]
    assert not known

"""Does `docs/adding_a_family.md` work as written: four new files, none edited?"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.suite import FamilyConformance

ROOT = Path(__file__).parents[2]
PACKAGES = ("arch", "mapper", "sim", "configs", "tests/conformance")
BLOCK = re.compile(r"^```\w+ (?P<path>\S+/\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def documented_files() -> dict[str, str]:
    page = (ROOT / "docs" / "adding_a_family.md").read_text()
    return {match["path"]: match["text"] for match in BLOCK.finditer(page)}


def copy_of_the_project(target: Path) -> Path:
    """With its caches, so that nothing is compiled again."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, target / package)
    shutil.copy(ROOT / "pyproject.toml", target)
    return target


def test_the_page_has_the_four_files_and_none_exists() -> None:
    files = documented_files()
    assert set(files) == {
        "arch/families/toy.py",
        "sim/devices/toy.py",
        "configs/arch/toy.yaml",
        "tests/conformance/test_toy.py",
    }
    assert not [path for path in files if (ROOT / path).exists()]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the page's files added."""
    project = copy_of_the_project(tmp_path_factory.mktemp("project"))
    for path, text in documented_files().items():
        (project / path).write_text(text)
    return project


def test_the_new_family_conforms(project: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "tests/conformance/test_toy.py"]
    run = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    checks = [name for name in vars(FamilyConformance) if name.startswith("test_")]
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(checks)} passed" in run.stdout


def test_a_family_without_a_price_is_found_out(project: Path, tmp_path: Path) -> None:
    broken = tmp_path / "project"
    shutil.copytree(project, broken)
    (broken / "sim" / "devices" / "toy.py").unlink()
    command = [sys.executable, "-m", "pytest", "-q", "-x", "tests/conformance/test_toy.py"]
    run = subprocess.run(command, cwd=broken, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "no price for ToyMemory (main)" in run.stdout

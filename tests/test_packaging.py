"""Is everything in the wheel, and does it work away from the repository?"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contents of the wheel that is built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def data_files(root: Path) -> set[str]:
    """Files of our packages that are not code."""
    packages = ("arch", "mapper", "sim", "dse", "kernels_ref", "configs")
    found = [path for name in packages for path in (root / name).rglob("*") if path.is_file()]
    return {
        str(p.relative_to(root))
        for p in found
        if p.suffix not in (".py", ".pyc") and "__pycache__" not in p.parts
    }


def test_wheel_has_every_data_file(unpacked: Path) -> None:
    assert data_files(unpacked) == data_files(ROOT)


def test_wheel_has_every_module(unpacked: Path) -> None:
    packages = ("arch", "mapper", "sim", "dse", "kernels_ref", "configs")
    for name in packages:
        sources = {p.relative_to(ROOT) for p in (ROOT / name).rglob("*.py")}
        assert sources == {p.relative_to(unpacked) for p in (unpacked / name).rglob("*.py")}


def test_shipped_configurations_are_found_from_any_directory(
    unpacked: Path, tmp_path: Path
) -> None:
    script = (
        "import sys, arch\nfrom dse.cli import main\n"
        f"assert arch.__file__.startswith({str(unpacked)!r}), arch.__file__\n"
        "sys.exit(main(['list', 'archs', '--json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    listed = {entry["name"] for entry in json.loads(done.stdout)["archs"]}
    assert listed == {path.stem for path in (ROOT / "configs" / "arch").glob("*.yaml")}


def test_the_command_is_declared(unpacked: Path) -> None:
    (entry_points,) = unpacked.glob("*.dist-info/entry_points.txt")
    assert "dse = dse.cli:main" in entry_points.read_text(encoding="utf-8")

"""Does every architecture that makes no sense end in one precise message and no result?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.bad_architectures import BAD_ARCHITECTURES, BadArchitecture
from tests.cli.running import Dse

GOOD = (Path(__file__).parent / "data" / "npu.yaml").read_text(encoding="utf-8")


def write(folder: Path, case: BadArchitecture) -> Path:
    assert case.old in GOOD
    path = folder / "npu.yaml"
    path.write_text(GOOD.replace(case.old, case.new, 1), encoding="utf-8")
    return path


@pytest.mark.parametrize("case", BAD_ARCHITECTURES, ids=lambda case: case.name)
@pytest.mark.parametrize("command", ["check", "simulate"])
def test_message_place_and_silence(
    dse: Dse, tmp_path: Path, command: str, case: BadArchitecture
) -> None:
    path = write(tmp_path, case)
    arguments = {
        "check": ("check", path),
        "simulate": ("simulate", "--arch", path, "--workload", "gemm:M=8,N=8,K=8", "--json"),
    }
    outcome = dse(*arguments[command])
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert re.search(rf"{re.escape(str(path))}(:\d+)?: {re.escape(case.where)}", outcome.err)
    for text in case.says:
        assert text in outcome.err
    assert list(tmp_path.iterdir()) == [path]


def test_all_problems_of_a_file_are_reported_at_once(dse: Dse, tmp_path: Path) -> None:
    path = tmp_path / "npu.yaml"
    broken = GOOD.replace("rows: 16", "rows: 0").replace("clock: 1 GHz", "clock: 1")
    path.write_text(broken.replace("  gbuf:", "  gbuf:\n    colour: red"), encoding="utf-8")
    lines = dse("check", path).err.splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "clock",
        "components.gbuf.colour",
        "components.array.rows",
    ]

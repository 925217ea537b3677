"""Running ``dse`` in this process."""

from __future__ import annotations

import pytest

from dse.cli import main
from tests.cli.running import Dse, Outcome


@pytest.fixture
def dse(capsys: pytest.CaptureFixture[str]) -> Dse:
    def run(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run

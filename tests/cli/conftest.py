"""Running ``dse`` in this process."""

from __future__ import annotations

import pytest

from tests.cli.running import Dse, run_dse


@pytest.fixture
def dse() -> Dse:
    return run_dse

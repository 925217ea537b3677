"""Do thread blocks over time obey the closed form where there is one, and never beat the model?"""

from __future__ import annotations

import numpy as np
import pytest

from arch.load import load_architecture
from dse.validation import shipped
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.event import Grid, block_times, run_blocks
from sim.gpu.predict import GpuModel, load_of


def grid(rounds: int, longest: int, others: int, memory_us: float = 0.1) -> Grid:
    return Grid(
        longest=longest,
        others=others,
        rounds=rounds,
        round_us=5.0,
        memory_us=memory_us,
        overlap=4.0,
    )


@pytest.fixture(scope="module")
def h200() -> GpuModel:
    return gpu_model(chip_of(load_architecture("h200")))


def test_full_rounds_take_the_analytical_time() -> None:
    together = (5.0**4 + (0.1 * 132) ** 4) ** 0.25
    assert run_blocks(grid(3, 132, 0), 0.0) == pytest.approx(3 * together)


def test_the_last_round_has_the_memory_for_itself() -> None:
    full, last = ((5.0**4 + (0.1 * n) ** 4) ** 0.25 for n in (132, 10))
    assert run_blocks(grid(4, 10, 122), 0.0) == pytest.approx(3 * full + last)


def test_one_after_the_other_they_have_all_the_memory() -> None:
    """Dispatched so slowly that a block ends before the next one starts."""
    alone = (5.0**4 + 0.1**4) ** 0.25
    assert run_blocks(grid(1, 7, 0), 100.0) == pytest.approx(600 + alone)


def test_later_starts_never_help() -> None:
    times = [run_blocks(grid(3, 40, 92), dispatch) for dispatch in (0.0, 0.001, 0.01, 0.1)]
    assert times == sorted(times)


def test_no_measured_call_is_faster_in_the_event_simulation(h200: GpuModel) -> None:
    rows, _ = shipped("held-out")
    load = load_of([row.call for row in rows], h200)
    analytical = load.demand.time_us()
    for number in range(0, len(load.owner), 2):
        found = block_times(load.demand, number, 1.0, h200.chip)
        assert found.time_us >= found.together_us * (1 - 1e-12)
        assert found.together_us >= analytical[number] * (1 - 1e-9)
    assert np.isfinite(analytical).all()

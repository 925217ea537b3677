"""Does measuring keep the card busy, and compute what it says, on a card that is only simulated?"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from kernels_ref.measure import kernels as measure
from kernels_ref.measure.kernels import main, set_count, work_steadily

CALLS = 10
REPLAY_S = 300e-6
POWER_W = 400.0
COUNTER_STEP_S = 0.02


class SimulatedCard:
    """Work queues up behind earlier work; reading the counter takes the host a while."""

    def __init__(self, reading_s: float) -> None:
        self.now_s = 1.0
        self.free_s = 0.0
        self.reading_s = reading_s

    def replay(self) -> None:
        self.free_s = max(self.free_s, self.now_s) + REPLAY_S

    def energy_mj(self) -> int:
        self.now_s += self.reading_s
        return round(self.now_s // COUNTER_STEP_S * COUNTER_STEP_S * POWER_W * 1000)

    def sm_clock_mhz(self) -> int:
        return 1980


@pytest.fixture
def card(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SimulatedCard:
    simulated = SimulatedCard(reading_s=request.param)

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing
            self.at_s = 0.0

        def record(self) -> None:
            self.at_s = max(simulated.free_s, simulated.now_s)

        def query(self) -> bool:
            return simulated.now_s >= self.at_s

        def synchronize(self) -> None:
            simulated.now_s = max(simulated.now_s, self.at_s)

        def elapsed_time(self, later: Event) -> float:
            return (later.at_s - self.at_s) * 1000

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(time, "perf_counter", lambda: simulated.now_s)
    return simulated


@pytest.mark.parametrize("card", [0.1e-3, 6e-3, 15e-3], indirect=True)
def test_steady_work_has_no_pauses_and_the_power_of_the_card(card: SimulatedCard) -> None:
    steady = work_steadily(card, CALLS, card)  # type: ignore[arg-type]
    assert steady.calls_us == pytest.approx([REPLAY_S * 1e6 / CALLS] * len(steady.calls_us))
    # Each end of the window is noticed up to one reading late.
    late = card.reading_s / measure.ENERGY_WINDOW_S
    assert steady.power_w == pytest.approx(POWER_W, rel=late + 1e-3)
    assert len(steady.calls_us) * measure.CHUNK_US * 1e-6 > measure.ENERGY_WINDOW_S


@pytest.mark.parametrize("card", [1e-3], indirect=True)
def test_a_counter_that_stands_still_is_an_error(
    card: SimulatedCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = SimulatedCard.energy_mj
    monkeypatch.setattr(SimulatedCard, "energy_mj", lambda self: advance(self) * 0)
    with pytest.raises(RuntimeError, match="stands still"):
        work_steadily(card, CALLS, card)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call_bytes", "sets"), [(10, 30), (99, 4), (100, 3), (151, 2), (10**6, 2)]
)
def test_buffers_exceed_the_l2_three_times(call_bytes: int, sets: int) -> None:
    assert set_count(call_bytes, l2_bytes=100) == sets


@pytest.mark.parametrize("seed", ["-1", "x"])
def test_a_bad_seed_is_refused(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--out", "unused", "--seed", seed])
    assert "--seed" in capsys.readouterr().err


def test_a_file_as_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SystemExit, match="2"):
        main(["--out", str(file)])
    assert "is not a folder" in capsys.readouterr().err


def test_without_a_gpu_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["--out", str(tmp_path / "out")]) == 2
    assert "no CUDA device" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

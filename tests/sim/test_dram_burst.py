"""A DRAM inside a network's simulation: closed forms, and does every picosecond have a cause?"""

from __future__ import annotations

import numpy as np
import pytest

from arch.dram_device import DramChannels, DramDevice
from arch.load import load_architecture
from sim.devices import dram_burst as burst
from sim.devices.dram_state import data_ps, lost_ps, new_state, operand_regions, timing_vector
from sim.stream import simulate_stream
from sim.stream_spec import StreamSpec

MIB = 1 << 20


def device(name: str = "hbm2_8ch", **changes: object) -> DramDevice:
    overrides = {f"dram.{key}": value for key, value in changes.items()}
    (memory,) = load_architecture(name, overrides).memories
    assert isinstance(memory, DramChannels)
    return memory.device


class Served:
    """A device with its state: transfers in, times out."""

    def __init__(self, of: DramDevice) -> None:
        self.device = of
        self.timing = timing_vector(of)
        self.state = new_state(self.timing)

    def __call__(self, address: int, size: int, *, write: bool = False, ready: int = 0) -> int:
        return int(burst.serve(self.state, self.timing, address, size, int(write), ready))


# DRAMsim3 (commit 29817593), one request at a time, no refresh: 32, 18, 46 cycles of 1 ns.
def test_idle_latencies_are_exact() -> None:
    serve = Served(device(refresh="none"))
    same_bank_next_row = 8 * 16 * 2048
    assert serve(0, 64) == 32_000
    assert serve(64, 64, ready=10**6) - 10**6 == 18_000
    assert serve(same_bank_next_row, 64, ready=2 * 10**6) - 2 * 10**6 == 46_000


def test_a_stream_without_refresh_runs_at_the_peak() -> None:
    serve = Served(device(refresh="none"))
    assert serve(0, 64 * MIB) == pytest.approx(64 * MIB / 256e9 * 1e12, rel=1e-3)


def test_refresh_takes_its_share() -> None:
    with_refresh = Served(device())(0, 64 * MIB)
    without = Served(device(refresh="none"))(0, 64 * MIB)
    assert without / with_refresh == pytest.approx(1 - 260 / 3900, rel=0.015)


@pytest.mark.parametrize("refresh", ["none", "all_bank"])
@pytest.mark.parametrize("name", ["hbm2_8ch", "ddr5_4800"])
def test_parts_and_data_add_up_to_all_waiting(refresh: str, name: str) -> None:
    serve = Served(device(name, refresh=refresh))
    rng = np.random.default_rng(1)
    waited = 0
    ready = 0
    for _ in range(300):
        ready += int(rng.integers(0, 2_000_000))
        address, size = int(rng.integers(0, 1 << 30)), int(rng.integers(1, 1 << 18))
        waited += serve(address, size, write=bool(rng.random() < 0.4), ready=ready) - ready
    parts = lost_ps(serve.state)
    assert set(parts) == set(burst.CAUSES)
    assert sum(parts.values()) + int(serve.state[burst.DATA_PS]) == waited
    assert min(parts.values()) >= 0


def test_nothing_is_faster_than_the_peak() -> None:
    serve = Served(device())
    rng = np.random.default_rng(2)
    total, last = 0, 0
    for _ in range(200):
        size = int(rng.integers(1, 1 << 16))
        last = max(last, serve(int(rng.integers(0, 1 << 28)), size))
        total += size
    assert last >= total * 10**12 / serve.device.peak_bytes_per_s


@pytest.mark.parametrize("tile", [64, 1024, 2176, 4352, 8192])
def test_bank_groups_do_not_hide_more_than_there_is(tile: int) -> None:
    serve = Served(device("ddr4_2400_1rank", refresh="none"))
    last = max(serve(number * 8192, tile) for number in range(100))
    assert last >= 100 * tile * 10**12 / serve.device.peak_bytes_per_s


def test_changing_direction_costs_the_turnaround() -> None:
    serve = Served(device(refresh="none"))
    serve(0, 2048 * 8)
    before = int(serve.state[burst.COLUMN_FREE])
    serve(2048 * 8, 2048 * 8, write=True)
    turnaround = (14 + 2 + 2 - 4 - 2) * 1000  # CL + BURST + RTW - CWL, one burst slot included
    assert int(serve.state[burst.TURNAROUND_PS]) == turnaround
    assert int(serve.state[burst.COLUMN_FREE]) >= before + turnaround


@pytest.mark.parametrize(("address", "size"), [(0, 1), (100, 64), (2000, 100), (1, 1 << 20)])
def test_the_busiest_channel_is_the_one_that_counts(address: int, size: int) -> None:
    timing = timing_vector(device())
    _, bursts = burst.largest_share(timing, address, size)
    touched = {byte // 64 for byte in range(address, address + size)}
    channels = [unit * 64 // 2048 % 8 for unit in touched]
    assert bursts == max(channels.count(channel) for channel in range(8))


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("hbm2_8ch", 0.01),
        ("ddr4_2400_1rank", 0.04),
        ("ddr4_2400_2rank", 0.04),
        ("ddr4_2400_jedec", 0.06),
        ("lpddr4_2400", 0.01),
        ("gddr6_8dev", 0.01),
        ("hbm2_2000", 0.01),
        ("lpddr5_6400", 0.01),
        ("ddr5_4800", 0.01),
    ],
)
def test_row_bursts_take_as_long_as_all_their_commands(name: str, tolerance: float) -> None:
    of = device(name)
    size = 2 * MIB * min(of.channels, 8)
    commands = simulate_stream(of, StreamSpec(size_bytes=size, pattern="sequential"))
    bursts = Served(of)(0, size) / of.cycle_ps
    assert bursts == pytest.approx(commands.cycles, rel=tolerance)


# In this map the bursts of a row follow each other in one bank group: CCD_L 12 and CCD_L_WR 48 of
# bursts of 8 cycles.
@pytest.mark.parametrize("read", [1.0, 0.0])
def test_bursts_in_one_bank_group_have_the_distance_of_their_direction(read: float) -> None:
    of = device("ddr5_4800", address_map="ro ra bg ba co ch")
    commands = simulate_stream(of, StreamSpec(size_bytes=MIB, pattern="sequential", read=read))
    bursts = Served(of)(0, MIB, write=not read) / of.cycle_ps
    assert bursts == pytest.approx(commands.cycles, rel=0.05)


# The map opens four banks side by side; HBM2-2000 has RRD_S 4 and RRD_L 6 cycles.
@pytest.mark.parametrize(("side_by_side", "apart"), [("bg", 4), ("ba", 6)])
def test_banks_of_one_group_are_opened_further_apart(side_by_side: str, apart: int) -> None:
    other = "ba" if side_by_side == "bg" else "bg"
    fields = f"ro ra {other} co {side_by_side} ch"
    of = device(refresh="none", channels=1, address_map=fields)
    front, last_act, latency = 2, 3 * apart, 14 + 14 + 2
    assert Served(of)(0, 4 * 64) == (front + last_act + latency) * of.cycle_ps
    commands = simulate_stream(of, StreamSpec(size_bytes=4 * 64, pattern="sequential"))
    assert commands.cycles == pytest.approx(front + last_act + latency, abs=3)


@pytest.mark.parametrize("name", ["hbm2_8ch", "ddr4_2400_1rank", "hbm2_2000"])
def test_data_time_is_that_of_the_bytes_of_padding_and_of_channels_that_wait(name: str) -> None:
    of = device(name)
    serve, rng = Served(of), np.random.default_rng(3)
    burst_bytes, channels = of.burst_bytes, int(serve.timing[burst.CHANNELS])
    size, touched, busiest = 0, 0, 0
    for _ in range(50):
        begin, length = int(rng.integers(0, 1 << 20)), int(rng.integers(1, 1 << 15))
        serve(begin, length)
        size += length
        units = range(begin // burst_bytes, (begin + length - 1) // burst_bytes + 1)
        chunk = int(serve.timing[burst.CHUNK_BYTES]) // burst_bytes
        of_channel = [unit // chunk % channels for unit in units]
        touched += len(units)
        busiest += max(of_channel.count(channel) for channel in range(channels))
    slot = of.burst_cycles * of.cycle_ps
    asked, rest = data_ps(serve.state, serve.timing)
    assert asked == pytest.approx(size / of.peak_bytes_per_s * 1e12, rel=1e-6)
    padding = (touched * burst_bytes - size) / burst_bytes / channels * slot
    assert rest["burst_padding"] == pytest.approx(padding, abs=1)
    assert rest["channel_imbalance"] == pytest.approx((busiest - touched / channels) * slot, abs=1)
    assert asked + sum(rest.values()) == serve.state[burst.DATA_PS]


@pytest.mark.parametrize("name", ["hbm2_8ch", "ddr5_4800", "hbm2_2000"])
def test_a_tile_loses_at_most_a_stripe_by_channels_that_wait(name: str) -> None:
    of = device(name)
    rng, most = np.random.default_rng(4), 0.0
    for _ in range(300):
        serve = Served(of)
        serve(
            of.burst_bytes * int(rng.integers(1 << 16)), of.burst_bytes * int(rng.integers(1, 99))
        )
        stripe = int(serve.timing[burst.CHUNK_BYTES] * serve.timing[burst.CHANNELS])
        _, rest = data_ps(serve.state, serve.timing)
        most = max(most, rest["channel_imbalance"] * of.peak_bytes_per_s / 1e12 / stripe)
    channels = int(serve.timing[burst.CHANNELS])
    assert most <= 1 - 1 / channels + 1e-3
    assert most > 0 or channels == 1


def test_operands_lie_in_rows_of_their_own() -> None:
    regions = operand_regions([100, 1 << 20, 1], device())
    rows = [set(range(b // (2048 * 8), (b + s - 1) // (2048 * 8) + 1)) for b, s, _ in regions]
    assert all(not a & b for n, a in enumerate(rows) for b in rows[:n])
    assert all(size % 64 == 0 for _, size, _ in regions)

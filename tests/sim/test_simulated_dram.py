"""Does a main memory that is simulated in detail fit in with the rest?"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from arch import catalog
from arch.errors import InputError
from arch.load import load_architecture
from arch.spec import PS_PER_S
from mapper.cost import Metrics, Price
from mapper.search.network import map_workload
from mapper.workload.load import load_workload
from sim.engine import simulate
from sim.models import cost_model
from sim.prices import price
from sim.replay.engine import replay, run_schedule
from sim.schedule import build_schedule
from tests.sim.programs import PRICES, compute, hold, load, program, repeat, store
from tests.sim.random_programs import Shape, random_prices, random_program

TIMED = {"dram.timing": "hbm2_8ch", "dram.bandwidth": "auto"}
SMALL = ("gemm:M=256,N=200,K=300", "conv2d:C=16,H=20,W=20,K=24,R=3,S=1", "gemv:M=3000,K=900")
DEVICE = price(load_architecture("edge_npu", TIMED).component("dram")).device
assert DEVICE is not None


def timed(entry: Price) -> Price:
    """The same memory in detail, 1000 times as fast as the random programs' are slow."""
    assert DEVICE is not None
    peak = Fraction(PS_PER_S, 8 * DEVICE.peak_bytes_per_s)
    return replace(
        entry,
        read_ps_per_bit=peak,
        write_ps_per_bit=peak,
        shared_port=True,
        latency_ps=DEVICE.least_latency_ps,
        device=DEVICE,
    )


def metrics_of(spec: str, fidelity: str, engine: str = "replay") -> Metrics:
    workload, architecture = load_workload(spec), load_architecture("edge_npu", TIMED)
    found = map_workload(workload, architecture, price, "edp")
    mappings = {name: result.mapping for name, result in found.items()}
    return cost_model(fidelity, engine=engine).evaluate(workload, architecture, mappings)


@pytest.mark.parametrize("seed", range(60))
def test_the_engines_agree_and_inner_loops_still_skip(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices = random_prices(rng)
    given = random_program(rng, Shape(loops=int(rng.integers(1, 4)), count=8))
    schedule = build_schedule(given, prices | {"dram": timed(prices["dram"])})
    assert set(schedule.devices) <= {"dram"}
    expected = simulate(schedule)
    assert replay(schedule).latency_ps == expected
    assert replay(schedule, skip_ahead=False).latency_ps == expected


@pytest.mark.parametrize("spec", SMALL)
def test_the_models_are_ordered_and_their_gap_is_explained(spec: str) -> None:
    quick, careful = metrics_of(spec, "analytical"), metrics_of(spec, "event")
    assert quick.latency_ps <= careful.latency_ps
    assert sum(careful.gap.values()) == careful.latency_ps - quick.latency_ps
    assert min(careful.gap.values()) > 0
    assert metrics_of(spec, "event", "simpy").latency_ps == careful.latency_ps
    assert quick.dynamic_energy_pj == careful.dynamic_energy_pj


def test_padding_and_idle_channels_are_not_called_rounding() -> None:
    """1000 loads of 65 bytes each: two bursts in one of eight channels."""
    given = program(repeat(1000, hold(0, compute(1), load=load(65 * 8))))
    schedule = build_schedule(given, PRICES | {"dram": timed(PRICES["dram"])})
    done = run_schedule(schedule, "dram")
    assert DEVICE is not None
    at_the_peak = 65_000 * PS_PER_S / DEVICE.peak_bytes_per_s
    assert done.working_ps == pytest.approx(at_the_peak, rel=1e-3)
    padding, imbalance = (done.lost_ps[c] for c in ("burst_padding", "channel_imbalance"))
    assert min(padding, imbalance) > 0
    data_ps = 2000 * DEVICE.burst_cycles * DEVICE.cycle_ps
    assert done.working_ps + padding + imbalance == pytest.approx(data_ps, rel=0.05)


@pytest.mark.parametrize("change", ["page: closed", "scheduler: fcfs"])
def test_a_controller_that_networks_do_not_have_is_refused(change: str, tmp_path: Path) -> None:
    memory, text = tmp_path / "memory.yaml", catalog.find("arch", "hbm2_8ch").read_text()
    text = text.replace("name: hbm2_8ch", "name: memory")
    memory.write_text(text.replace("    address_map:", f"    {change}\n    address_map:"))
    assert load_architecture(str(memory)).memories
    with pytest.raises(InputError, match=rf"has .*{change}.*inside a network.*stream:bytes"):
        load_architecture("edge_npu", TIMED | {"dram.timing": str(memory)})


def test_all_time_of_a_busy_bus_is_accounted_for() -> None:
    """Data, rows, refreshes, turnarounds and waiting fill the time up to the last transfer."""
    given = program(repeat(300, hold(0, hold(2, compute(1), store=store(9999)), load=load(7777))))
    schedule = build_schedule(given, PRICES | {"dram": timed(PRICES["dram"])})
    done = run_schedule(schedule, "dram")
    assert done.working_ps is not None
    moved_until = done.working_ps + sum(done.lost_ps.values())
    assert DEVICE is not None
    assert 0 <= done.latency_ps - moved_until <= DEVICE.least_latency_ps
    assert min(done.lost_ps[cause] for cause in ("row_miss", "refresh", "bus_turnaround")) > 0


def test_a_stream_of_large_tiles_is_limited_by_the_memory_alone() -> None:
    """Loads of 64 KiB in a row: at least the time at the peak rate, and at most a quarter more,
    for refreshes and for the rows that each load opens."""
    assert DEVICE is not None
    tile = hold(0, compute(1), load=load(8 << 16))
    given = program(repeat(200, tile))
    prices = PRICES | {"dram": timed(PRICES["dram"])}
    peak_ps = 200 * (1 << 16) * PS_PER_S // DEVICE.peak_bytes_per_s
    took = replay(build_schedule(given, prices), watched_port="dram")
    assert peak_ps <= took.latency_ps <= 1.25 * peak_ps


def test_reading_and_writing_in_turns_costs_turnarounds() -> None:
    prices = PRICES | {"dram": timed(PRICES["dram"])}
    both = program(repeat(50, hold(0, hold(2, compute(1), store=store(8192)), load=load(8192))))
    reading = program(repeat(100, hold(0, compute(1), load=load(8192))))
    taken = [replay(build_schedule(p, prices)).latency_ps for p in (both, reading)]
    assert taken[0] > taken[1]

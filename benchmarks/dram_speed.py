"""How many DRAM requests per CPU second: ours, beside DRAMsim3's.

    python benchmarks/dram_speed.py
    python benchmarks/dram_speed.py --dramsim3 PATH/build/dramsim3main --configs PATH/configs

Ours twice: every command of the controllers, and one event per row burst as inside a network's
simulation. With the path to a binary of DRAMsim3, the same addresses are given to it as a trace
(its driver gives one request in a cycle) and its CPU time is measured here; without, published
figures are printed and labelled so.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from arch.dram_device import DramChannels, DramDevice
from arch.load import load_architecture
from sim.devices import dram_burst
from sim.devices.dram_state import new_state, timing_vector
from sim.stream import simulate_stream
from sim.stream_spec import StreamSpec

MIB = 1 << 20
TILE_BYTES = 16 * 1024

#: DRAMsim3 (commit 29817593, C++, one core of a shared x86 machine), 64 MiB as 64 B reads: million
#: requests per CPU second, slowest and fastest of several runs.
PUBLISHED = {
    ("hbm2_8ch", "sequential"): (0.82, 0.93),
    ("hbm2_8ch", "random"): (0.07, 0.16),
    ("ddr4_2400_2rank", "sequential"): (0.2, 0.3),
    ("ddr4_2400_2rank", "random"): (0.2, 0.3),
}
CONFIGS = {"hbm2_8ch": "HBM2_8Gb_x128.ini", "ddr4_2400_2rank": "DDR4_8Gb_x8_2400.ini"}


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    pattern: str
    size_bytes: int

    @property
    def device(self) -> DramDevice:
        (memory,) = load_architecture(self.name).memories
        assert isinstance(memory, DramChannels)
        return memory.device

    @property
    def spec(self) -> StreamSpec:
        return StreamSpec(size_bytes=self.size_bytes, pattern=self.pattern)

    @property
    def requests(self) -> int:
        return self.size_bytes // self.device.burst_bytes


def by_command(case: Case) -> tuple[float, int]:
    """CPU seconds, and cycles of the memory."""
    simulate_stream(case.device, StreamSpec(size_bytes=MIB, pattern=case.pattern))  # compile
    device, begin = case.device, time.process_time()
    result = simulate_stream(device, case.spec)
    return time.process_time() - begin, result.cycles


def by_row_burst(case: Case) -> float:
    """Tiles of 16 KiB one after the other, or single bursts all over the memory."""
    device = case.device
    timing = timing_vector(device)
    if case.pattern == "sequential":
        addresses, size = np.arange(0, case.size_bytes, TILE_BYTES), TILE_BYTES
    else:
        places = device.size_bytes // device.burst_bytes
        rng, size = np.random.default_rng(0), device.burst_bytes
        addresses = rng.integers(0, places, case.requests) * size
    serve, ready = dram_burst.serve, 0
    serve(new_state(timing), timing, 0, size, 0, 0)  # compile
    state, begin = new_state(timing), time.process_time()
    for address in addresses.tolist():
        ready = serve(state, timing, address, size, 0, 0)
    assert ready > 0
    return time.process_time() - begin


def by_dramsim3(case: Case, binary: Path, configs: Path, cycles: int) -> str:
    device, rng = case.device, np.random.default_rng(0)
    numbers = np.arange(case.requests)
    if case.pattern == "random":
        numbers = rng.integers(0, device.size_bytes // device.burst_bytes, case.requests)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        lines = (f"0x{number * device.burst_bytes:x} READ 0\n" for number in numbers.tolist())
        trace.write_text("".join(lines))
        command = [binary, configs / CONFIGS[case.name], "-o", folder]
        command += ["-c", round(1.05 * max(cycles, case.requests))]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([*map(str, command), "-t", str(trace)], check=True, capture_output=True)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        answer = json.loads((Path(folder) / "dramsim3.json").read_text())
    done = sum(channel["num_reads_done"] for channel in answer.values())
    return f"{done / seconds / 1e6:.2f} (measured, {done:,} reads)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dramsim3", type=Path, help="binary dramsim3main")
    parser.add_argument("--configs", type=Path, help="DRAMsim3's folder of .ini files")
    parser.add_argument("--mib", type=int, default=64, help="length of the streams")
    given = parser.parse_args()
    if (given.dramsim3 is None) != (given.configs is None):
        parser.error("--dramsim3 and --configs go together")
    print(f"million requests per CPU second, {given.mib} MiB of reads")
    print(f"{'memory':<17}{'pattern':<12}{'commands':>9}{'row bursts':>12}   DRAMsim3")
    for (name, pattern), (low, high) in PUBLISHED.items():
        case = Case(name=name, pattern=pattern, size_bytes=given.mib * MIB)
        seconds, cycles = by_command(case)
        ours = [case.requests / used / 1e6 for used in (seconds, by_row_burst(case))]
        theirs = f"{low} to {high} (published)"
        if given.dramsim3 is not None:
            theirs = by_dramsim3(case, given.dramsim3, given.configs, cycles)
        print(f"{name:<17}{pattern:<12}{ours[0]:>9.2f}{ours[1]:>12.2f}   {theirs}")


if __name__ == "__main__":
    main()

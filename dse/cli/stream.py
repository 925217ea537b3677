"""``dse simulate --workload stream:...``: a memory on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from arch.dram_device import DramDevice
from arch.spec import Architecture
from arch.units import format_bandwidth, format_energy_pj, format_time_ps
from dse.cli.compiling import say_if_compiling
from dse.cli.console import messages, print_json, results, table
from dse.cli.views import percent
from dse.stream_workload import device_of, parse_stream
from sim.stream import StreamResult, simulate_stream

CASES = ("hit", "closed", "conflict")
ADVICE = {
    "injection": "requests come too slowly to show what the memory can do: raise the limit with "
    "inject= in the workload, or --set PATH.inject_per_cycle",
    "outstanding": "the limit of outstanding requests holds the stream back: raise outstanding=",
}


def run_stream(architecture: Architecture, workload: str, *, as_json: bool) -> None:
    device = device_of(architecture)
    spec = parse_stream(workload, device)
    say_if_compiling("stream")
    result = simulate_stream(device, spec)
    if result.bottleneck in ADVICE:
        messages().print(f"note: {ADVICE[result.bottleneck]}")
    if as_json:
        print_json(stream_document(device, result))
    else:
        print_stream(results(), workload, device, result)


def stream_document(device: DramDevice, result: StreamResult) -> dict[str, Any]:
    energy = result.energy_pj
    return {
        "cycles": result.cycles,
        "cycle_ps": result.cycle_ps,
        "latency_ps": result.cycles * result.cycle_ps,
        "bytes": result.size_bytes,
        "requests": result.requests,
        "bandwidth_gb_s": result.bandwidth_bytes_per_s / 1e9,
        "peak_bandwidth_gb_s": result.peak_bytes_per_s / 1e9,
        "mean_latency_cycles": result.mean_latency_cycles,
        "row_hit_rate": result.row_hit_rate,
        "commands": dict(result.commands),
        "bottleneck": result.bottleneck,
        "idle_latency_cycles": {case: device.idle_latency_cycles(case) for case in CASES},
        "channels_simulated": result.channels_simulated,
        "energy_pj": None if energy is None else sum(energy.values()),
        "energy_by_cause_pj": None if energy is None else dict(energy),
    }


def print_stream(console: Console, workload: str, device: DramDevice, result: StreamResult) -> None:
    console.print(f"{workload} on {device.name}")
    for name, text in _totals(device, result):
        console.print(f"  {name:<13} {text}")
    counts = ((name, f"{count:,}") for name, count in result.commands.items())
    console.print(table("", ("command", ">count"), counts))
    if result.energy_pj is not None:
        shares = ((k, format_energy_pj(v)) for k, v in result.energy_pj.items() if v)
        console.print(table("", ("energy", ">amount"), shares))


def _totals(device: DramDevice, result: StreamResult) -> Iterator[tuple[str, str]]:
    bandwidth, peak = result.bandwidth_bytes_per_s, result.peak_bytes_per_s
    time_ps = result.cycles * result.cycle_ps
    yield "cycles", f"{result.cycles:,} of {result.cycle_ps} ps ({format_time_ps(time_ps)})"
    of_peak = f"{percent(bandwidth / peak)} of {format_bandwidth(peak)}"
    yield "bandwidth", f"{format_bandwidth(bandwidth)}, {of_peak}"
    yield "mean latency", f"{result.mean_latency_cycles:.1f} cycles"
    idle = ", ".join(f"{device.idle_latency_cycles(case)} {case}" for case in CASES)
    yield "idle latency", f"{idle} (cycles, by state of the row)"
    yield "row hits", percent(result.row_hit_rate)
    yield "held back by", result.bottleneck
    if result.energy_pj is None:
        yield "energy", "not known: no currents are published for this device"
    else:
        total = sum(result.energy_pj.values())
        per_bit = total / (8 * result.size_bytes)
        yield "energy", f"{format_energy_pj(total)}, {per_bit:.2f} pJ/bit"

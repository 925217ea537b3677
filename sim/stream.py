"""Streams of requests to a memory: what is asked for, and what the memory makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from arch.dram_device import DramDevice
from arch.errors import InputError, Problem
from arch.timing import COMMANDS
from sim.devices import dram_image as image
from sim.devices import dram_stream as compiled_stream
from sim.devices.dram_energy import Activity, energy_pj
from sim.devices.dram_image import IntArray, Stream, new_image, totals
from sim.stream_spec import StreamSpec

#: Requests of which the memory of this machine can keep track at once (32 bytes each).
MAX_REQUESTS = 1 << 23
_REASONS = {
    compiled_stream.INJECTION: "injection",
    compiled_stream.OUTSTANDING: "outstanding",
    compiled_stream.FULL: "dram",
}
#: A stream is limited by what holds it back in at least this share of the cycles.
MOSTLY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    """``bottleneck``: what kept requests from coming faster, the memory (``dram``), the limit of
    outstanding requests, or the ``injection`` limit. ``channels_simulated``: one if all work in
    lock step. Energies by cause, None where the device's currents are not known."""

    requests: int
    size_bytes: int
    cycles: int
    cycle_ps: int
    peak_bytes_per_s: int
    mean_latency_cycles: float
    row_hit_rate: float
    commands: Mapping[str, int]
    bottleneck: str
    channels_simulated: int
    energy_pj: Mapping[str, float] | None

    @property
    def bandwidth_bytes_per_s(self) -> float:
        return self.size_bytes * 1e12 / (self.cycles * self.cycle_ps)


def simulate_stream(device: DramDevice, spec: StreamSpec) -> StreamResult:
    """Every command of every channel, or of one for all if that is asked for."""
    inject = spec.inject_per_cycle or device.controller.inject_per_cycle
    if spec.one_channel:
        _check_lock_step(device, spec, inject)
    channels = 1 if spec.one_channel else device.channels
    simulated = replace(device, channels=channels)
    requests = -(-spec.size_bytes // device.burst_bytes)
    here = requests // (device.channels // channels)
    _check_count(here, simulated)
    addresses, is_write = _requests(simulated, spec, here)
    state = new_image(simulated, channels, _stream(simulated, addresses, is_write))
    limit = here if spec.outstanding is None else min(spec.outstanding, here)
    in_a_cycle = min(inject // (device.channels // channels), here)
    progress = compiled_stream.run(state, in_a_cycle, limit)
    return _result(device, simulated, state, progress)


def _check_lock_step(device: DramDevice, spec: StreamSpec, inject: int) -> None:
    """All channels must see the same stream, and faster than they can serve it."""
    stripe = device.channels * device.burst_bytes << device.field_shifts()["ch"]
    same = (
        spec.pattern == "sequential"
        and spec.stride_bytes in (None, device.burst_bytes)
        and spec.outstanding is None
        and spec.size_bytes % stripe == 0
    )
    enough = inject * device.burst_cycles >= 2 * device.data_buses
    if not (same and enough and inject % device.channels == 0):
        message = (
            f"'one' needs a sequential stream without stride and outstanding, a multiple of "
            f"{stripe} B long, and inject= a multiple of {device.channels} that suffices for all"
        )
        raise InputError(Problem(message, where="workload stream: channels"))


def _check_count(requests: int, device: DramDevice) -> None:
    if requests > MAX_REQUESTS:
        most = MAX_REQUESTS * device.burst_bytes
        message = (
            f"{requests:,} requests of {device.burst_bytes} B are more than this machine keeps "
            f"track of; allowed up to bytes={most}: rates no longer change with the length"
        )
        raise InputError(Problem(message, where="workload stream: bytes"))


def _requests(device: DramDevice, spec: StreamSpec, count: int) -> tuple[IntArray, IntArray]:
    """Addresses, counted in bursts, and which are writes."""
    blocks = device.size_bytes // device.burst_bytes
    numbers = np.arange(count, dtype=np.int64)
    is_write = np.floor((numbers + 1) * spec.read) == np.floor(numbers * spec.read)
    if spec.pattern == "random":
        addresses = _distinct(blocks, count, np.random.default_rng(spec.seed))
    else:
        stride = (spec.stride_bytes or device.burst_bytes) // device.burst_bytes
        if (count - 1) * stride >= blocks:
            message = f"reaches beyond the memory's {device.size_bytes:,} B"
            raise InputError(Problem(message, where="workload stream"))
        addresses = numbers * stride
    return addresses, is_write.astype(np.int64)


def _distinct(blocks: int, count: int, rng: np.random.Generator) -> IntArray:
    """So many different numbers below ``blocks`` in random order."""
    if count > blocks:
        message = f"random bursts are all different, and the memory has {blocks:,}; got {count:,}"
        raise InputError(Problem(message, where="workload stream: bytes"))
    if 2 * count > blocks:
        return rng.permutation(blocks).astype(np.int64)[:count]
    found = np.zeros(0, np.int64)
    while len(found) < count:
        more = rng.integers(0, blocks, count + count // 4, dtype=np.int64)
        found = np.concatenate([found, more])
        _, first = np.unique(found, return_index=True)
        found = found[np.sort(first)]
    return found[:count]


def _stream(device: DramDevice, addresses: IntArray, is_write: IntArray) -> Stream:
    shifts, bits = device.field_shifts(), device.field_bits()

    def field(name: str) -> IntArray:
        return (addresses >> shifts[name]) & ((1 << bits[name]) - 1)

    group = field("ra") * device.bank_groups + field("bg")
    return Stream(
        channel=field("ch"),
        bank=group * device.banks_per_group + field("ba"),
        row=field("ro"),
        is_write=is_write,
    )


def _result(
    device: DramDevice, simulated: DramDevice, state: IntArray, progress: IntArray
) -> StreamResult:
    copies = device.channels // simulated.channels
    total = totals(state) * copies
    cycles = int(progress[compiled_stream.CYCLES])
    counts = {name: int(total[image.COUNTS + n]) for n, name in enumerate(COMMANDS)}
    reads, writes = counts["RD"] + counts["RDA"], counts["WR"] + counts["WRA"]
    latency = total[image.READ_LATENCY] / reads if reads else total[image.WRITE_LATENCY] / writes
    return StreamResult(
        requests=reads + writes,
        size_bytes=(reads + writes) * device.burst_bytes,
        cycles=cycles,
        cycle_ps=device.cycle_ps,
        peak_bytes_per_s=device.peak_bytes_per_s,
        mean_latency_cycles=float(latency),
        row_hit_rate=float(total[image.ROW_HITS] / (reads + writes)),
        commands={name: count for name, count in counts.items() if count},
        bottleneck=_bottleneck(progress),
        channels_simulated=simulated.channels,
        energy_pj=_energy(device, counts, total, cycles),
    )


def _bottleneck(progress: IntArray) -> str:
    """What held requests back most of the time, if it was not the memory."""
    by_reason = progress[compiled_stream.REASON_CYCLES : compiled_stream.RINGS]
    most = int(np.argmax(by_reason))
    if most in _REASONS and by_reason[most] >= MOSTLY * math.fsum(by_reason):
        return _REASONS[most]
    return "dram"


def _energy(
    device: DramDevice, counts: Mapping[str, int], total: IntArray, cycles: int
) -> Mapping[str, float] | None:
    if device.currents is None:
        return None
    closing = ("PRE", "RDA", "WRA")
    done = Activity(
        activates=counts["ACT"],
        precharges=sum(counts[name] for name in closing),
        reads=counts["RD"] + counts["RDA"],
        writes=counts["WR"] + counts["WRA"],
        refreshes=counts["REF"],
        bank_refreshes=counts["REFPB"],
        bank_open_cycles=int(total[image.BANK_OPEN_CYCLES]),
        open_cycles=int(total[image.OPEN_CYCLES]),
        rank_cycles=cycles * device.ranks * device.channels,
    )
    return energy_pj(device, device.currents, done)

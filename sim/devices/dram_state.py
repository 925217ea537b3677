"""The vectors that ``sim.devices.dram_burst`` works on, made from a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arch.dram_device import DramDevice
from sim.devices import dram_burst as burst

Vector = NDArray[np.int64]
_KINDS = {"none": burst.NO_REFRESH, "all_bank": burst.ALL_BANK, "per_bank": burst.PER_BANK}
#: Cycles in which the controller works on a request before its first command can be given.
FRONT_CYCLES = 2


def timing_vector(device: DramDevice) -> Vector:
    """Constants of a device and its controller, in picoseconds."""
    device = _with_channels_for_ranks(device) if device.pseudo_channels else device
    vector = np.zeros(burst.TIMING_SIZE, np.int64)
    for values in (_geometry(device), _address(device), _column(device), _row(device)):
        for position, value in values.items():
            vector[position] = value
    return vector


def _with_channels_for_ranks(device: DramDevice) -> DramDevice:
    """Pseudo-channels move data like channels; that they share commands hardly shows in bursts."""
    fields = list(device.controller.address_map)
    fields.remove("ra")
    fields.insert(fields.index("ch"), "ra")
    return replace(
        device,
        channels=device.channels * device.ranks,
        ranks=1,
        controller=replace(device.controller, address_map=tuple(fields)),
    )


def _in_set(device: DramDevice) -> list[str]:
    """Fields of the banks that the address map opens side by side: those below the column."""
    fields = device.controller.address_map
    return [f for f in fields[fields.index("co") + 1 :] if f not in ("ch", "ro")]


def _geometry(device: DramDevice) -> dict[int, int]:
    bits, shifts = device.field_bits(), device.field_shifts()
    inside = sum(bits[f] for f in _in_set(device))
    refresh = device.controller.refresh
    return {
        burst.CHANNELS: device.channels,
        burst.CHUNK_BYTES: device.burst_bytes << shifts["ch"],
        burst.BURST_BYTES: device.burst_bytes,
        burst.SET_BURSTS: 1 << (bits["co"] + inside),
        burst.SET_BANKS: 1 << inside,
        burst.SETS: device.ranks * device.banks >> inside,
        burst.RANKS: 1 if "ra" in _in_set(device) else device.ranks,
        burst.LOOKAHEAD: device.controller.transaction_depth + 2,
        burst.REFRESH_KIND: _KINDS[refresh],
    }


def _address(device: DramDevice) -> dict[int, int]:
    """Where the fields that tell row sets apart are, in a position within the channel."""
    bits = device.field_bits()
    inside = _in_set(device)
    places = {"ra": burst.RANK_SHIFT, "bg": burst.GROUP_SHIFT, "ba": burst.BANK_SHIFT}
    places["ro"] = burst.ROW_SHIFT
    values, position = {}, 0
    for name in reversed(device.controller.address_map):
        if name in places:
            values[places[name]] = position
            values[places[name] + 1] = 0 if name in inside else bits[name]
        position += 0 if name == "ch" else bits[name]
    return values


def _column(device: DramDevice) -> dict[int, int]:
    p, ps = device.parameters, device.cycle_ps
    inside = _in_set(device)
    groups = device.bank_groups if "bg" in inside or device.bank_groups == 1 else 1
    peak = device.burst_cycles
    within = (p["CCD_L"], p["CCD_L_WR"]) if device.bank_groups > 1 else (peak, peak)
    read, write = (max(peak, -(-cycles // groups)) for cycles in within)
    values = {
        burst.SLOT: read,
        burst.WRITE_SLOT: write,
        burst.PEAK_SLOT: peak,
        burst.OVERLAP_SAVES: 2 * read - max(2 * peak, read),
        burst.WRITE_OVERLAP_SAVES: 2 * write - max(2 * peak, write),
        burst.FRONT: FRONT_CYCLES,
        burst.READ_LATENCY: p["CL"] + p["BURST"],
        burst.WRITE_LATENCY: p["CWL"] + p["BURST"],
        burst.READ_TO_WRITE: p["CL"] + p["BURST"] + p["RTW"] - p["CWL"],
        burst.WRITE_TO_READ: p["CWL"] + p["BURST"] + p["WTR_L"],
        burst.RANK_SWITCH: p["BURST"] + p["RTRS"],
        burst.READ_TO_PRE: p["RTP"],
        burst.WRITE_TO_PRE: p["CWL"] + p["BURST"] + p["WR"],
    }
    return {position: value * ps for position, value in values.items()}


def _row(device: DramDevice) -> dict[int, int]:
    p, ps = device.parameters, device.cycle_ps
    by_bank = device.controller.refresh == "per_bank"
    refreshes = "REFIPB" if by_bank else "REFI"
    bits = device.field_bits()
    side_by_side = [field for field in _in_set(device) if bits[field]]
    one_group = device.bank_groups > 1 and side_by_side[-1:] == ["ba"]
    values = {
        burst.RCD_READ: p["RCDRD"],
        burst.RCD_WRITE: p["RCDWR"],
        burst.RP: p["RP"],
        burst.RAS: p["RAS"],
        burst.RC: p["RC"],
        burst.RRD: p["RRD_L"] if one_group else p["RRD_S"],
        burst.FAW: p["FAW"],
        burst.REFRESH_PERIOD: p[refreshes],
        burst.REFRESH_TIME: p["RFCPB"] if by_bank else p["RFC"],
    }
    return {position: value * ps for position, value in values.items()}


def new_state(timing: Vector) -> Vector:
    """An idle memory with all rows closed, half-way between two refreshes."""
    sets, ranks = int(timing[burst.SETS]), int(timing[burst.RANKS])
    state = np.zeros(burst.HEADER + ranks * burst.RANK_SIZE + sets * burst.SET_SIZE, np.int64)
    for field in (burst.LAST_WRITE, burst.LAST_RANK, burst.LAST_GROUP):
        state[field] = burst.NONE
    period = int(timing[burst.REFRESH_PERIOD])
    for rank in range(ranks):
        at = burst.HEADER + rank * burst.RANK_SIZE
        state[at + burst.NEXT_REFRESH] = period // 2 + rank * period // ranks
        state[at + burst.ACT_TIMES : at + burst.RANK_SIZE] = burst.LONG_AGO
    for number in range(sets):
        at = burst.HEADER + ranks * burst.RANK_SIZE + number * burst.SET_SIZE
        state[at + burst.OPEN_ROW] = burst.NONE
        state[at + burst.OPENED] = state[at + burst.MAY_CLOSE] = burst.LONG_AGO
    return state


def lost_ps(state: Vector) -> dict[str, int]:
    """What transfers took beyond their data at the peak rate, by cause."""
    positions = {
        "contention": burst.CONTENTION_PS,
        "turnaround": burst.TURNAROUND_PS,
        "row_miss": burst.ROW_MISS_PS,
        "refresh": burst.REFRESH_PS,
        "bank_group": burst.BANK_GROUP_PS,
        "access": burst.ACCESS_PS,
    }
    return {cause: int(state[position]) for cause, position in positions.items()}


def data_ps(state: Vector, timing: Vector) -> tuple[int, dict[str, int]]:
    """What the bytes take at the peak rate, and the rest of the time that data was moved.

    That is ``burst_padding``, bytes of bursts that nobody asked for, and ``channel_imbalance``:
    channels with fewer bursts of a transfer wait for those with most.
    """
    channels, slot = int(timing[burst.CHANNELS]), int(timing[burst.PEAK_SLOT])
    in_bursts = int(timing[burst.BURST_BYTES]) * channels
    asked = -(-int(state[burst.MOVED_BYTES]) * slot // in_bursts)
    moved = -(-int(state[burst.BURSTS_OF_ALL]) * slot // channels)
    return asked, {
        "burst_padding": moved - asked,
        "channel_imbalance": int(state[burst.DATA_PS]) - moved,
    }


def operand_regions(sizes_bytes: Sequence[int], device: DramDevice) -> NDArray[Any]:
    """Where operands lie: one row ``(base, size, cursor)`` each, in bytes.

    They follow each other, each beginning a new row in every channel. Tiles are stored in the
    order in which they are first moved, without gaps except up to whole bursts, as a compiler
    that knows the mapping lays tensors out; the cursor is where the next tile lies and returns
    to the base at the end.
    """
    stripe = device.row_bytes * device.channels
    regions = np.zeros((len(sizes_bytes), 3), np.int64)
    base = 0
    for number, size in enumerate(sizes_bytes):
        size = -(-size // device.burst_bytes) * device.burst_bytes
        regions[number] = base, size, 0
        base += -(-size // stripe) * stripe
    return regions

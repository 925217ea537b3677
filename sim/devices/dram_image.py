"""A DRAM's channels and a stream of requests as one array of integers: what the compiled
controllers run on.

Everything is a record of cells in this array and refers to other records by where they begin,
so that functions compiled by ``mapper.compiled`` have one argument. The constants are positions in
records; times are cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arch.dram_device import DramDevice
from arch.timing import COMMANDS

IntArray = NDArray[np.int64]
FAR = 1 << 62
NONE = -1

# The head: the device and its controller.
(
    CHANNELS,
    CHANNELS_AT,
    CHANNEL_SIZE,
    RANKS,
    BANKS,
    QUEUE_DEPTH,
    TRANSACTION_DEPTH,
    HIT_LIMIT,
    READ_DELAY,
    WRITE_DELAY,
    TWO_BUSES,
    CLOSED_PAGE,
    IN_ORDER,
    SHARED_QUEUE,
    REFRESH_EVERY,
    PER_BANK_REFRESH,
    GATES_AT,
    REQUESTS_AT,
    REQUESTS_END,
    ACT_BUS,
    FIRST_GATE,
) = range(21)
HEAD_SIZE = FIRST_GATE + len(COMMANDS) + 1

#: A gate: the later command, where it holds, cycles, and how many commands it counts back.
GATE_COMMAND, GATE_SCOPE, GATE_CYCLES, GATE_WINDOW, GATE_SIZE = range(5)

# A channel: where its parts are, what waits, refresh, totals, and how often each command.
(
    BANKS_AT,
    BANK_SIZE,
    RANKS_AT,
    READS_AT,
    WRITES_AT,
    ACTIVE_AT,
    DUE_AT,
    IDLE_AT,
    TURN,
    READS,
    WRITES,
    ACTIVE,
    WAITING,
    DRAINING,
    WRITE_MODE,
    DUE,
    NEXT_DUE,
    NEXT_REFRESH,
    REFRESH_FROM,
    REFRESH_TO,
    ROW_HITS,
    OPEN_CYCLES,
    BANK_OPEN_CYCLES,
    COMPLETED,
    LAST_DATA,
    READ_LATENCY,
    WRITE_LATENCY,
    WAKE,
    NO_ROOM,
    ROW_BUS_FREE,
    COUNTS,
) = range(31)
CHANNEL_FIELDS = COUNTS + len(COMMANDS)
#: Refreshes that may be due at once.
MAX_DUE = 1024

# A rank: earliest times by command, how many of its banks are open and since when that is so, how
# many ACT there have been, and the times of the last.
OPEN_BANKS, LAST_CHANGE, ISSUED, HISTORY = range(len(COMMANDS), len(COMMANDS) + 4)
WINDOW = 32
RANK_SIZE = HISTORY + WINDOW
#: A bank group: earliest times by command.
GROUP_SIZE = len(COMMANDS)
# A bank: earliest times by command, where it belongs, its row, and its queue.
# HELD counts requests that have opened its row and are still to be served. IDLE is the cell with
# the cycle before which its queue can issue nothing (FAR: it is empty).
GROUP_AT, RANK_AT, CHANNEL_AT, OPEN_ROW, ACCESSES, HELD, IDLE, QUEUED, QUEUE = range(
    len(COMMANDS), len(COMMANDS) + 9
)

#: A request: its bank, its row, whether it writes, and when it was accepted.
BANK_AT, ROW, IS_WRITE, ACCEPTED, REQUEST_SIZE = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Requests in order: where each goes and whether it writes."""

    channel: IntArray
    bank: IntArray
    row: IntArray
    is_write: IntArray


def new_image(device: DramDevice, channels: int, stream: Stream) -> IntArray:
    """Idle channels, all rows closed, and the stream before its first request."""
    gates = sorted(device.gates, key=lambda gate: gate.previous)
    gates_at = HEAD_SIZE
    channels_at = gates_at + len(gates) * GATE_SIZE
    size = _channel_size(device)
    requests_at = channels_at + channels * size
    image = np.zeros(requests_at + len(stream.bank) * REQUEST_SIZE, np.int64)
    for position, value in _head(device).items():
        image[position] = value
    image[CHANNELS], image[CHANNELS_AT], image[CHANNEL_SIZE] = channels, channels_at, size
    image[GATES_AT], image[REQUESTS_AT], image[REQUESTS_END] = gates_at, requests_at, len(image)
    image[FIRST_GATE:HEAD_SIZE] = gates_at + GATE_SIZE * np.searchsorted(
        [gate.previous for gate in gates], np.arange(len(COMMANDS) + 1)
    )
    table = [(g.next, g.scope, g.cycles, g.window) for g in gates]
    image[gates_at:channels_at] = np.array(table, np.int64).ravel()
    for number in range(channels):
        _place_channel(image, device, channels_at + number * size)
    _place_requests(image, stream)
    return image


def _head(device: DramDevice) -> dict[int, int]:
    p, controller = device.parameters, device.controller
    per_bank = controller.refresh == "per_bank"
    period = p["REFIPB"] if per_bank else p["REFI"]
    return {
        RANKS: device.ranks,
        BANKS: device.banks,
        QUEUE_DEPTH: controller.queue_depth,
        TRANSACTION_DEPTH: controller.transaction_depth,
        HIT_LIMIT: controller.row_hit_limit,
        READ_DELAY: p["CL"] + p["BURST"],
        WRITE_DELAY: p["CWL"] + p["BURST"],
        TWO_BUSES: device.row_and_column_bus,
        CLOSED_PAGE: controller.page == "closed",
        IN_ORDER: controller.scheduler == "fcfs",
        SHARED_QUEUE: controller.queue == "shared",
        REFRESH_EVERY: 0 if controller.refresh == "none" else period // device.ranks,
        PER_BANK_REFRESH: per_bank,
        ACT_BUS: p["ACT_BUS"],
    }


def _parts(device: DramDevice) -> dict[int, int]:
    """Sizes of the parts of a channel after its fields, by where their place is kept."""
    depth, banks = device.controller.transaction_depth, device.ranks * device.banks
    return {
        READS_AT: depth,
        WRITES_AT: depth,
        ACTIVE_AT: banks,
        DUE_AT: MAX_DUE,
        IDLE_AT: banks,
        RANKS_AT: device.ranks * RANK_SIZE,
        BANKS_AT: banks * (QUEUE + device.controller.queue_depth),
    }


def _channel_size(device: DramDevice) -> int:
    groups = device.ranks * device.bank_groups
    return CHANNEL_FIELDS + groups * GROUP_SIZE + sum(_parts(device).values())


def _place_channel(image: IntArray, device: DramDevice, at: int) -> None:
    groups_at = at + CHANNEL_FIELDS
    place = groups_at + device.ranks * device.bank_groups * GROUP_SIZE
    for field, size in _parts(device).items():
        image[at + field] = place
        place += size
    image[at + BANK_SIZE] = QUEUE + device.controller.queue_depth
    image[at + REFRESH_FROM] = image[at + REFRESH_TO] = NONE
    image[at + NEXT_REFRESH] = _first_refresh(device, int(image[REFRESH_EVERY]))
    for rank in range(device.ranks):
        history = image[at + RANKS_AT] + rank * RANK_SIZE + HISTORY
        image[history : history + WINDOW] = -FAR
    for bank in range(device.ranks * device.banks):
        bank_at = image[at + BANKS_AT] + bank * image[at + BANK_SIZE]
        image[bank_at + GROUP_AT] = groups_at + bank // device.banks_per_group * GROUP_SIZE
        image[bank_at + RANK_AT] = image[at + RANKS_AT] + bank // device.banks * RANK_SIZE
        image[bank_at + CHANNEL_AT] = at
        image[bank_at + OPEN_ROW] = NONE
        image[bank_at + IDLE] = image[at + IDLE_AT] + bank
        image[image[bank_at + IDLE]] = FAR


def _first_refresh(device: DramDevice, every: int) -> int:
    """The shared queue's controller refreshes all ranks at once and counts cycles from one."""
    if not every:
        return FAR
    if device.controller.queue != "shared":
        return every
    return every * (device.ranks if device.controller.refresh == "all_bank" else 1) - 1


def _place_requests(image: IntArray, stream: Stream) -> None:
    first = int(image[CHANNELS_AT])
    requests = image[image[REQUESTS_AT] :].reshape(-1, REQUEST_SIZE)
    bank_at = image[first + BANKS_AT] + stream.bank * image[first + BANK_SIZE]
    requests[:, BANK_AT] = bank_at + stream.channel * image[CHANNEL_SIZE]
    requests[:, ROW] = stream.row
    requests[:, IS_WRITE] = stream.is_write


def totals(image: IntArray) -> IntArray:
    """The fields of all channels, added up."""
    at, size = int(image[CHANNELS_AT]), int(image[CHANNEL_SIZE])
    fields = image[at : at + int(image[CHANNELS]) * size].reshape(-1, size)[:, :CHANNEL_FIELDS]
    total: IntArray = fields.sum(axis=0)
    return total

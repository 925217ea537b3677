"""A DRAM inside the simulation of a network: one event per row burst, compiled.

``serve`` moves one tile: it is called once per transfer, in the order in which the memory's
port grants them, and answers when the last data is there. Inside, a tile is a sequence of *row
sets*: the rows that the address map opens side by side (one row, or one in each of the banks
that lie below the column in the map) times the bursts that fall into them. Consecutive bytes
are spread over all channels, which work in lock step, so that the channel with the largest share
is simulated once for all.

Everything is one state vector and one vector of constants, both int64 and in picoseconds, so
that the readable engine and the compiled replay call the very same function. Time that a
transfer takes beyond its data at the peak rate is added up by cause in the state: the parts of
``CAUSES`` and the data time together are exactly what passed between ``ready_ps`` and the
answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import kernel

Vector = NDArray[np.int64]

#: Why a transfer takes longer than its data at the peak rate.
CAUSES = {
    "contention": "the data bus was busy with earlier transfers",
    "turnaround": "reads after writes, writes after reads, or another rank's data",
    "row_miss": "a row had to be opened, another one closed first",
    "refresh": "banks were refreshed, or had been and their row was closed by it",
    "bank_group": "consecutive bursts in one bank group",
    "access": "from the last command to the last data, and through the controller",
}

# Constants of the device and its controller: positions in ``timing``. SLOT and OVERLAP_SAVES are
# those of reads, those of writes follow.
(
    CHANNELS,
    CHUNK_BYTES,
    BURST_BYTES,
    SET_BURSTS,
    SET_BANKS,
    SETS,
    RANKS,
    SLOT,
    WRITE_SLOT,
    PEAK_SLOT,
    OVERLAP_SAVES,
    WRITE_OVERLAP_SAVES,
    LOOKAHEAD,
    FRONT,
    READ_LATENCY,
    WRITE_LATENCY,
    READ_TO_WRITE,
    WRITE_TO_READ,
    RANK_SWITCH,
    RCD_READ,
    RCD_WRITE,
    RP,
    RAS,
    RC,
    RRD,
    FAW,
    READ_TO_PRE,
    WRITE_TO_PRE,
    REFRESH_KIND,
    REFRESH_PERIOD,
    REFRESH_TIME,
    RANK_SHIFT,
    RANK_BITS,
    GROUP_SHIFT,
    GROUP_BITS,
    BANK_SHIFT,
    BANK_BITS,
    ROW_SHIFT,
    ROW_BITS,
    TIMING_SIZE,
) = range(40)
NO_REFRESH, ALL_BANK, PER_BANK = range(3)

# What changes: positions in ``state``. First totals (BURSTS of the busiest channel, and of all
# channels together), then the bus and the transfer in hand, then ranks, then sets of banks.
(
    DATA_PS,
    CONTENTION_PS,
    TURNAROUND_PS,
    ROW_MISS_PS,
    REFRESH_PS,
    BANK_GROUP_PS,
    ACCESS_PS,
    BURSTS,
    MOVED_BYTES,
    BURSTS_OF_ALL,
    ACTIVATES,
    REFRESHES,
    COLUMN_FREE,
    LAST_WRITE,
    LAST_RANK,
    LAST_GROUP,
    LAST_BURSTS,
    READY,
    IS_WRITE,
    HEADER,
) = range(20)
#: Each rank: when its next refresh is due, until when the last one blocks it, and the times of
#: its last four ACT with the position of the oldest.
NEXT_REFRESH, BLOCKED_UNTIL, OLDEST_ACT, ACT_TIMES, RANK_SIZE = 0, 1, 2, 3, 7
#: Each set of banks: its open rows (-1: none), when it was opened, when it may be closed,
#: whether a refresh closed it, and when it was last refreshed (per-bank refresh).
OPEN_ROW, OPENED, MAY_CLOSE, REFRESHED, SET_SIZE = 0, 1, 2, 3, 4
NONE = -1
LONG_AGO = -(1 << 60)


@kernel
def serve(
    state: Vector,
    timing: Vector,
    address_bytes: int,
    size_bytes: int,
    is_write: int,
    ready_ps: int,
) -> int:
    """Moves ``size_bytes`` (more than zero) from ``address_bytes`` on; when the last data is
    there, in picoseconds.

    ``ready_ps`` is when the controller learns of the transfer.
    """
    position, bursts = largest_share(timing, address_bytes, size_bytes)
    ready = ready_ps + timing[FRONT]
    start = max(ready, state[COLUMN_FREE])
    state[CONTENTION_PS] += start - ready
    state[READY], state[IS_WRITE] = ready, is_write
    state[MOVED_BYTES] += size_bytes
    state[BURSTS_OF_ALL] += _bursts(timing, address_bytes, address_bytes + size_bytes)
    while bursts > 0:
        count = min(bursts, timing[SET_BURSTS] - position % timing[SET_BURSTS])
        start = _row_burst(state, timing, position, count, start)
        position += count
        bursts -= count
    latency = timing[WRITE_LATENCY] if is_write else timing[READ_LATENCY]
    access = latency - timing[SLOT + is_write]
    state[ACCESS_PS] += access + timing[FRONT]
    return int(start + access)


@kernel
def largest_share(timing: Vector, address_bytes: int, size_bytes: int) -> tuple[int, int]:
    """First burst, counted within its channel, and number of bursts of the busiest channel."""
    chunk, channels = timing[CHUNK_BYTES], timing[CHANNELS]
    end = address_bytes + size_bytes
    first, last = address_bytes // chunk, (end - 1) // chunk
    most, position = 0, 0
    for candidate in (first, first + 1, last):
        channel = candidate % channels
        begin = _bytes_before(chunk, channels, channel, address_bytes)
        bursts = _bursts(timing, begin, _bytes_before(chunk, channels, channel, end))
        if bursts > most:
            most, position = bursts, begin // timing[BURST_BYTES]
    return position, most


@kernel
def _bursts(timing: Vector, begin: int, end: int) -> int:
    """How many bursts have a byte between two addresses."""
    return int(-(-end // timing[BURST_BYTES]) - begin // timing[BURST_BYTES])


@kernel
def _bytes_before(chunk: int, channels: int, channel: int, address: int) -> int:
    """How many of the bytes before ``address`` are in this channel."""
    stripes, rest = divmod(address, chunk * channels)
    return int(stripes * chunk + min(max(rest - channel * chunk, 0), chunk))


@kernel
def _row_burst(state: Vector, timing: Vector, position: int, count: int, start: int) -> int:
    """``count`` bursts of one row set, from ``start`` at the earliest; when the next may start."""
    is_write = state[IS_WRITE]
    rank = _field(timing, position, RANK_SHIFT)
    group = _field(timing, position, GROUP_SHIFT)
    bank = _field(timing, position, BANK_SHIFT)
    row = _field(timing, position, ROW_SHIFT)
    bank_set = (bank << timing[GROUP_BITS] | group) << timing[RANK_BITS] | rank
    slot = timing[SLOT + is_write]
    last_column = state[COLUMN_FREE] - timing[SLOT + max(state[LAST_WRITE], 0)]
    turned = max(start, last_column + _turnaround(state, timing, rank))
    state[TURNAROUND_PS] += turned - start
    _refresh(state, timing, rank, turned)
    opened = _open(state, timing, bank_set, row, turned)
    if opened == turned and state[LAST_GROUP] != group and turned == start:
        pairs = min(timing[LOOKAHEAD], count // 2, state[LAST_BURSTS] // 2)
        saved = pairs * timing[OVERLAP_SAVES + is_write]
        state[BANK_GROUP_PS] -= saved
        opened -= saved
    next_start = opened + count * slot
    state[COLUMN_FREE] = next_start
    _account(state, timing, rank, group, count)
    at = HEADER + timing[RANKS] * RANK_SIZE + bank_set * SET_SIZE
    recovery = timing[WRITE_TO_PRE] if is_write else timing[READ_TO_PRE]
    state[at + MAY_CLOSE] = max(state[at + OPENED] + timing[RAS], next_start - slot + recovery)
    return int(next_start)


@kernel
def _field(timing: Vector, position: int, shift: int) -> int:
    """A field of a burst's position: ``shift`` is where its shift is, its width follows."""
    return int((position >> timing[shift]) & ((1 << timing[shift + 1]) - 1))


@kernel
def _account(state: Vector, timing: Vector, rank: int, group: int, count: int) -> None:
    state[DATA_PS] += count * timing[PEAK_SLOT]
    state[BANK_GROUP_PS] += count * (timing[SLOT + state[IS_WRITE]] - timing[PEAK_SLOT])
    state[BURSTS] += count
    state[LAST_WRITE] = state[IS_WRITE]
    state[LAST_RANK] = rank
    state[LAST_GROUP] = group
    state[LAST_BURSTS] = count


@kernel
def _turnaround(state: Vector, timing: Vector, rank: int) -> int:
    """Least distance from the last column command to the next one."""
    if state[LAST_WRITE] == NONE:
        return 0
    if state[LAST_WRITE] != state[IS_WRITE]:
        return int(timing[READ_TO_WRITE] if state[IS_WRITE] else timing[WRITE_TO_READ])
    return int(timing[RANK_SWITCH]) if state[LAST_RANK] != rank else 0


@kernel
def _refresh(state: Vector, timing: Vector, rank: int, now: int) -> None:
    """Refreshes that fell due by ``now``: they close rows and block them for a while."""
    if timing[REFRESH_KIND] == NO_REFRESH:
        return
    at = HEADER + rank * RANK_SIZE
    period = timing[REFRESH_PERIOD]
    while state[at + NEXT_REFRESH] <= now:
        due = state[at + NEXT_REFRESH]
        idle = (now - due - timing[REFRESH_TIME]) // period - timing[SETS]
        idle -= idle % timing[SETS]
        if idle > 0:  # nobody notices those that were over before: their order is all that counts
            state[at + NEXT_REFRESH] += idle * period
            state[REFRESHES] += idle
            continue
        _refresh_once(state, timing, rank, due)
        state[at + NEXT_REFRESH] = due + period


@kernel
def _refresh_once(state: Vector, timing: Vector, rank: int, due: int) -> None:
    base = HEADER + timing[RANKS] * RANK_SIZE
    state[REFRESHES] += 1
    if timing[REFRESH_KIND] == PER_BANK:
        turn = (due // timing[REFRESH_PERIOD]) % (timing[SETS] // timing[RANKS])
        first, last = turn, turn + 1
    else:
        first, last = 0, timing[SETS] // timing[RANKS]
    start = due
    for number in range(first, last):
        at = base + (number * timing[RANKS] + rank) * SET_SIZE
        if state[at + OPEN_ROW] != NONE:
            start = max(start, state[at + MAY_CLOSE] + timing[RP])
            state[at + REFRESHED] = 1
        state[at + OPEN_ROW] = NONE
    end = start + timing[REFRESH_TIME]
    if timing[REFRESH_KIND] == ALL_BANK:
        state[HEADER + rank * RANK_SIZE + BLOCKED_UNTIL] = end
    for number in range(first, last):
        at = base + (number * timing[RANKS] + rank) * SET_SIZE
        state[at + MAY_CLOSE] = max(state[at + MAY_CLOSE], end - timing[RP])


@kernel
def _open(state: Vector, timing: Vector, bank_set: int, row: int, start: int) -> int:
    """When the first column command may be given to the row set, which is then open.

    The controller sees requests ``LOOKAHEAD`` bursts before their turn, and opens their rows
    while earlier data is on the bus.
    """
    at = HEADER + timing[RANKS] * RANK_SIZE + bank_set * SET_SIZE
    of_rank = HEADER + (bank_set % timing[RANKS]) * RANK_SIZE
    if state[at + OPEN_ROW] == row:
        return start
    seen = max(state[READY], start - timing[LOOKAHEAD] * timing[SLOT + state[IS_WRITE]])
    closed = state[at + OPEN_ROW] == NONE
    may_open = seen if closed else max(seen, state[at + MAY_CLOSE]) + timing[RP]
    may_open = max(may_open, state[at + OPENED] + timing[RC])
    if closed:
        may_open = max(may_open, state[at + MAY_CLOSE] + timing[RP])
    delay = timing[RCD_WRITE] if state[IS_WRITE] else timing[RCD_READ]
    unrefreshed = max(start, _activated(state, timing, of_rank, may_open, False) + delay)
    may_open = max(may_open, state[of_rank + BLOCKED_UNTIL])
    opened = max(start, _activated(state, timing, of_rank, may_open, True) + delay)
    by_refresh = opened - start if state[at + REFRESHED] else opened - unrefreshed
    state[REFRESH_PS] += by_refresh
    state[ROW_MISS_PS] += opened - start - by_refresh
    state[at + OPEN_ROW] = row
    state[at + OPENED] = opened - delay
    state[at + REFRESHED] = 0
    state[ACTIVATES] += timing[SET_BANKS]
    return int(opened)


@kernel
def _activated(state: Vector, timing: Vector, of_rank: int, may_open: int, commit: bool) -> int:
    """When a row set's ACT commands allow its first column command, less ACT to RD.

    The banks of a set are opened one after the other, each in time for its first burst.
    """
    oldest = state[of_rank + OLDEST_ACT]
    last = state[of_rank + ACT_TIMES + (oldest + 3) % 4]
    first = may_open
    held = (
        state[of_rank + ACT_TIMES],
        state[of_rank + ACT_TIMES + 1],
        state[of_rank + ACT_TIMES + 2],
        state[of_rank + ACT_TIMES + 3],
    )
    for number in range(timing[SET_BANKS]):
        at = of_rank + ACT_TIMES + (oldest + number) % 4
        act = max(may_open, last + timing[RRD], state[at] + timing[FAW])
        first = max(first, act - number * timing[SLOT + state[IS_WRITE]])
        state[at] = act
        last = act
    if commit:
        state[of_rank + OLDEST_ACT] = (oldest + timing[SET_BANKS]) % 4
    else:
        for number in range(4):
            state[of_rank + ACT_TIMES + number] = held[number]
    return int(first)

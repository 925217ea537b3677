"""What a command does to a channel, compiled.

Gates (``arch.timing``) are applied when a command is issued: each moves the earliest time of a
later command in a bank, a bank group or a rank. Whether a command may be issued is then the
largest of three numbers. The argument ``m`` is the image (``sim.devices.dram_image``); ``bank``,
``ch`` and ``request`` are where their records begin.
"""

from __future__ import annotations

from arch.timing import ACT, BANK, GROUP, PRE, RANK, RDA, REF, REFPB, WRA
from mapper.compiled import kernel
from sim.devices.dram_image import (
    ACCEPTED,
    ACCESSES,
    BANK_OPEN_CYCLES,
    BANK_SIZE,
    BANKS,
    BANKS_AT,
    CHANNEL_AT,
    CLOSED_PAGE,
    COMPLETED,
    COUNTS,
    DUE,
    DUE_AT,
    FAR,
    FIRST_GATE,
    GATE_COMMAND,
    GATE_CYCLES,
    GATE_SCOPE,
    GATE_SIZE,
    GATE_WINDOW,
    GROUP_AT,
    HISTORY,
    IDLE,
    IS_WRITE,
    ISSUED,
    LAST_CHANGE,
    LAST_DATA,
    MAX_DUE,
    NEXT_DUE,
    NEXT_REFRESH,
    NONE,
    OPEN_BANKS,
    OPEN_CYCLES,
    OPEN_ROW,
    PER_BANK_REFRESH,
    QUEUED,
    RANK_AT,
    RANK_SIZE,
    RANKS,
    RANKS_AT,
    READ_DELAY,
    READ_LATENCY,
    REFRESH_EVERY,
    REFRESH_FROM,
    REFRESH_TO,
    ROW_HITS,
    SHARED_QUEUE,
    WINDOW,
    WRITE_DELAY,
    WRITE_LATENCY,
    IntArray,
)


@kernel
def ready_at(m: IntArray, command: int, bank: int) -> int:
    """The first cycle in which the command may be issued to the bank."""
    of_group = m[m[bank + GROUP_AT] + command]
    of_rank = m[m[bank + RANK_AT] + command]
    return int(max(m[bank + command], of_group, of_rank))


@kernel
def issue(m: IntArray, command: int, bank: int, row: int, clock: int) -> None:
    """The command is on the bus: state of the bank, gates, and what is counted."""
    ch = m[bank + CHANNEL_AT]
    m[ch + COUNTS + command] += 1
    m[m[bank + IDLE]] = 0 if m[bank + QUEUED] > 0 else FAR
    _change_state(m, ch, command, bank, row, clock)
    rank = m[bank + RANK_AT]
    if command == ACT:
        m[rank + HISTORY + m[rank + ISSUED] % WINDOW] = clock
        m[rank + ISSUED] += 1
    for gate in range(m[FIRST_GATE + command], m[FIRST_GATE + command + 1], GATE_SIZE):
        at = clock + m[gate + GATE_CYCLES]
        if m[gate + GATE_WINDOW] > 1:
            past = (m[rank + ISSUED] - m[gate + GATE_WINDOW]) % WINDOW
            at = m[rank + HISTORY + past] + m[gate + GATE_CYCLES]
        scope = m[gate + GATE_SCOPE]
        if scope == BANK:
            _not_before(m, bank + m[gate + GATE_COMMAND], at)
        elif scope == GROUP:
            _not_before(m, m[bank + GROUP_AT] + m[gate + GATE_COMMAND], at)
        elif scope == RANK:
            _not_before(m, rank + m[gate + GATE_COMMAND], at)
        else:
            _other_ranks_not_before(m, ch, rank, m[gate + GATE_COMMAND], at)


@kernel
def _not_before(m: IntArray, cell: int, clock: int) -> None:
    if m[cell] < clock:
        m[cell] = clock


@kernel
def _other_ranks_not_before(m: IntArray, ch: int, rank: int, command: int, clock: int) -> None:
    for number in range(m[RANKS]):
        other = m[ch + RANKS_AT] + number * RANK_SIZE
        if other != rank:
            _not_before(m, other + command, clock)


@kernel
def _change_state(m: IntArray, ch: int, command: int, bank: int, row: int, clock: int) -> None:
    if PRE < command <= WRA:
        m[ch + ROW_HITS] += 1 if m[bank + ACCESSES] > 0 else 0
        m[bank + ACCESSES] += 1
    if command == ACT:
        _count_open(m, ch, m[bank + RANK_AT], clock)
        m[bank + OPEN_ROW] = row
        m[m[bank + RANK_AT] + OPEN_BANKS] += 1
    elif command in (PRE, RDA, WRA):
        _count_open(m, ch, m[bank + RANK_AT], clock)
        m[bank + OPEN_ROW] = NONE
        m[bank + ACCESSES] = 0
        m[m[bank + RANK_AT] + OPEN_BANKS] -= 1


@kernel
def _count_open(m: IntArray, ch: int, rank: int, clock: int) -> None:
    """Cycles with any bank open, added up over ranks, and cycles that banks were open."""
    span, banks = clock - m[rank + LAST_CHANGE], m[rank + OPEN_BANKS]
    m[ch + BANK_OPEN_CYCLES] += span * banks
    m[ch + OPEN_CYCLES] += span if banks > 0 else 0
    m[rank + LAST_CHANGE] = clock


@kernel
def column_command(m: IntArray, request: int) -> int:
    """RD, WR, or those that close the row behind them."""
    return int(PRE + 1 + m[request + IS_WRITE] + 2 * m[CLOSED_PAGE])


@kernel
def complete(m: IntArray, ch: int, request: int, clock: int) -> int:
    """The request's column command is on the bus: when its data has been moved."""
    front = 1 + m[SHARED_QUEUE]  # with the cycle in which a queue per bank lets a request in: two
    if m[request + IS_WRITE]:
        end = clock + m[WRITE_DELAY]
        m[ch + WRITE_LATENCY] += end + front - m[request + ACCEPTED]
    else:
        end = clock + m[READ_DELAY]
        m[ch + READ_LATENCY] += end + front - m[request + ACCEPTED]
    m[ch + COMPLETED] += 1
    m[ch + LAST_DATA] = max(m[ch + LAST_DATA], end)
    return int(end)


@kernel
def refresh_falls_due(m: IntArray, ch: int, clock: int) -> None:
    """One rank after the other, or one bank; the shared queue's controller does all ranks."""
    if clock < m[ch + NEXT_REFRESH]:
        return
    targets = m[RANKS] * (m[BANKS] if m[PER_BANK_REFRESH] else 1)
    together = m[RANKS] if m[SHARED_QUEUE] and not m[PER_BANK_REFRESH] else 1
    for _ in range(together):
        if m[ch + DUE] == MAX_DUE:
            raise OverflowError("refreshes fall due faster than they can be done")
        m[m[ch + DUE_AT] + m[ch + DUE]] = m[ch + NEXT_DUE] % targets
        m[ch + DUE] += 1
        m[ch + NEXT_DUE] += 1
    m[ch + NEXT_REFRESH] += m[REFRESH_EVERY] * together


@kernel
def refresh_begins(m: IntArray, ch: int) -> None:
    """The banks of the refresh that is due."""
    target = m[m[ch + DUE_AT]]
    banks = 1 if m[PER_BANK_REFRESH] else m[BANKS]
    m[ch + REFRESH_FROM] = m[ch + BANKS_AT] + target * banks * m[ch + BANK_SIZE]
    m[ch + REFRESH_TO] = m[ch + REFRESH_FROM] + banks * m[ch + BANK_SIZE]


@kernel
def refresh_of_closed(m: IntArray, ch: int) -> tuple[int, int]:
    """The refresh of banks that are all closed: (command, when it may be issued)."""
    command = REFPB if m[PER_BANK_REFRESH] else REF
    return command, ready_at(m, command, m[ch + REFRESH_FROM])


@kernel
def refresh_done(m: IntArray, ch: int) -> None:
    m[ch + DUE] -= 1
    for number in range(m[ch + DUE]):
        m[m[ch + DUE_AT] + number] = m[m[ch + DUE_AT] + number + 1]
    m[ch + REFRESH_FROM] = m[ch + REFRESH_TO] = NONE


@kernel
def remove(m: IntArray, waiting: int, position: int, count: int) -> None:
    """Takes one out of a list of ``count`` that begins at ``waiting``; later ones move up."""
    for number in range(waiting + position, waiting + count - 1):
        m[number] = m[number + 1]

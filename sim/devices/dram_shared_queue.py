"""A controller with one queue for a whole channel, compiled: one cycle of one channel.

The oldest request whose next command may be issued goes first. A request that has opened a row
for itself moves to a list of its own, and that row is not closed before it has been served.
Refresh comes before all others and waits for those. Writes are served when their queue is four
fifths full, down to one fifth, or when there are no reads.

In order (``fcfs``): reads and writes share one queue and only the oldest request counts.
"""

from __future__ import annotations

from arch.timing import ACT, PRE
from mapper.compiled import compiled
from sim.devices.dram_command import (
    column_command,
    complete,
    issue,
    ready_at,
    refresh_begins,
    refresh_falls_due,
    refresh_if_ready,
    remove,
)
from sim.devices.dram_image import (
    ACTIVE,
    ACTIVE_AT,
    BANK_AT,
    BANK_SIZE,
    DUE,
    FAR,
    HELD,
    IN_ORDER,
    NEXT_REFRESH,
    NONE,
    OPEN_ROW,
    READS,
    READS_AT,
    REFRESH_FROM,
    REFRESH_TO,
    ROW,
    TRANSACTION_DEPTH,
    TWO_BUSES,
    WRITE_MODE,
    WRITES,
    WRITES_AT,
    IntArray,
)

#: Which commands a slot of the command bus takes.
ANY, COLUMN, ROWS = range(3)
#: Writes are served from this share of their queue on, down to that one, in fifths.
HIGH_FIFTHS, LOW_FIFTHS = 4, 1


@compiled
def cycle(m: IntArray, ch: int, clock: int) -> tuple[int, int, int]:
    """What the channel does in this cycle.

    Answers when something can happen next, which request is served (NONE) and when its data
    will have been moved.
    """
    refresh_falls_due(m, ch, clock)
    if not m[TWO_BUSES]:
        request, at = _slot(m, ch, clock, ANY)
    else:
        request, at = _slot(m, ch, clock, COLUMN)
        _, row_at = _slot(m, ch, clock, ROWS)
        at = min(at, row_at)
    end = complete(m, ch, request, clock) if request != NONE else 0
    wake = clock + 1 if at <= clock else min(at, m[ch + NEXT_REFRESH])
    return int(wake), int(request), int(end)


@compiled
def _slot(m: IntArray, ch: int, clock: int, kind: int) -> tuple[int, int]:
    """Issues one command if one may be: (request that it completes, or NONE; when)."""
    place, command, active_at = _choose(m, m[ch + ACTIVE_AT], m[ch + ACTIVE], clock, kind)
    if place != NONE:
        request = m[m[ch + ACTIVE_AT] + place]
        issue(m, command, m[request + BANK_AT], m[request + ROW], clock)
        remove(m, m[ch + ACTIVE_AT], place, m[ch + ACTIVE])
        m[ch + ACTIVE] -= 1
        m[m[request + BANK_AT] + HELD] -= 1
        return int(request), clock
    if m[ch + DUE] > 0:
        at = FAR if kind == COLUMN else _refresh(m, ch, clock)
        return NONE, min(at, active_at)
    request, at = _queued(m, ch, clock, kind)
    return request, min(at, active_at)


@compiled
def _queued(m: IntArray, ch: int, clock: int, kind: int) -> tuple[int, int]:
    """The same for the requests in the queue of reads or of writes."""
    which, queue = (WRITES, m[ch + WRITES_AT]) if _writes(m, ch) else (READS, m[ch + READS_AT])
    place, command, at = _choose(m, queue, m[ch + which], clock, kind)
    if place == NONE:
        return NONE, at
    request = m[queue + place]
    issue(m, command, m[request + BANK_AT], m[request + ROW], clock)
    if command == PRE:
        return NONE, clock
    remove(m, queue, place, m[ch + which])
    m[ch + which] -= 1
    if command == ACT:
        m[m[ch + ACTIVE_AT] + m[ch + ACTIVE]] = request
        m[ch + ACTIVE] += 1
        m[m[request + BANK_AT] + HELD] += 1
        return NONE, clock
    return int(request), clock


@compiled
def _writes(m: IntArray, ch: int) -> bool:
    """Is it the writes' turn?"""
    if not m[ch + WRITE_MODE]:
        high = 5 * m[ch + WRITES] > HIGH_FIFTHS * m[TRANSACTION_DEPTH]
        m[ch + WRITE_MODE] = 1 if high or m[ch + READS] == 0 else 0
    elif 5 * m[ch + WRITES] < LOW_FIFTHS * m[TRANSACTION_DEPTH] and m[ch + READS] != 0:
        m[ch + WRITE_MODE] = 0
    return bool(m[ch + WRITE_MODE]) and not m[IN_ORDER]


@compiled
def _choose(m: IntArray, queue: int, count: int, clock: int, kind: int) -> tuple[int, int, int]:
    """(place, command, when): the oldest that may be issued now, or NONE and when one may be."""
    best, oldest, chosen, earliest = NONE, FAR, NONE, FAR
    for place in range(1 if m[IN_ORDER] and count else count):
        request = m[queue + place]
        command = _next_command(m, request)
        if kind != ANY and (kind == COLUMN) != (command > PRE):
            continue
        if command == PRE and m[m[request + BANK_AT] + HELD] > 0:
            continue
        at = ready_at(m, command, m[request + BANK_AT])
        if at > clock:
            earliest = min(earliest, at)
        elif request < oldest:
            best, oldest, chosen = place, request, command
    return best, chosen, int(clock if best != NONE else earliest)


@compiled
def _next_command(m: IntArray, request: int) -> int:
    row = m[m[request + BANK_AT] + OPEN_ROW]
    if row == NONE:
        return ACT
    return column_command(m, request) if row == m[request + ROW] else PRE


@compiled
def _refresh(m: IntArray, ch: int, clock: int) -> int:
    """The next command of the refresh that is due: issued if the answer is now, else when."""
    refresh_begins(m, ch)
    first, last, size = m[ch + REFRESH_FROM], m[ch + REFRESH_TO], m[ch + BANK_SIZE]
    close_at = NONE
    for bank in range(first, last, size):
        if m[bank + OPEN_ROW] != NONE:
            close_at = max(close_at, ready_at(m, PRE, bank))
            if m[bank + HELD] > 0:
                return FAR
    if close_at == NONE:
        return refresh_if_ready(m, ch, clock)
    if close_at > clock:
        return int(close_at)
    for bank in range(first, last, size):  # one command closes all
        if m[bank + OPEN_ROW] != NONE:
            issue(m, PRE, bank, NONE, clock)
    return clock

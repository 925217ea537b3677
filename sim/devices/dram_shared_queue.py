"""A controller with one queue for a whole channel, compiled: one cycle of one channel.

The oldest request whose next command may be issued goes first. A request that has opened a row
for itself moves to a list of its own, and that row is not closed before it has been served.
Refresh comes before all others and waits for those. Writes are served when their queue is four
fifths full, down to one fifth, or when there are no reads.

In order (``fcfs``): reads and writes share one queue and only the oldest request counts.
"""

from __future__ import annotations

from arch.timing import ACT, PRE
from mapper.compiled import kernel
from sim.devices.dram_command import (
    column_command,
    complete,
    issue,
    ready_at,
    refresh_begins,
    refresh_done,
    refresh_falls_due,
    refresh_of_closed,
    remove,
)
from sim.devices.dram_image import (
    ACT_BUS,
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
    ROW_BUS_FREE,
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


@kernel
def cycle(m: IntArray, ch: int, clock: int) -> tuple[int, int, int]:
    """What the channel does in this cycle.

    Answers when something can happen next, which request is served (NONE) and when its data
    will have been moved.
    """
    refresh_falls_due(m, ch, clock)
    request, acted, wake = NONE, False, m[ch + NEXT_REFRESH]
    for number in range(1 + m[TWO_BUSES]):
        kind = COLUMN + number if m[TWO_BUSES] else ANY
        if kind != COLUMN and clock < m[ch + ROW_BUS_FREE]:
            wake = min(wake, m[ch + ROW_BUS_FREE])
            continue
        source, place, command, at = _next(m, ch, clock, kind)
        if command == NONE:
            wake = min(wake, at)
            continue
        acted = True
        if command == ACT:
            m[ch + ROW_BUS_FREE] = clock + m[ACT_BUS]
        if source != NONE:
            request = max(request, _issue_for(m, ch, source, place, command, clock))
        else:
            _issue_refresh(m, ch, command, clock)
    end = complete(m, ch, request, clock) if request != NONE else 0
    return clock + 1 if acted else int(wake), int(request), int(end)


@kernel
def _next(m: IntArray, ch: int, clock: int, kind: int) -> tuple[int, int, int, int]:
    """(list, place in it, command, now), or (NONE, NONE, NONE, when there may be one).

    The list is where the number of its requests stands: ACTIVE, READS or WRITES; the commands
    of a refresh belong to none.
    """
    source, queue, earliest = ACTIVE, m[ch + ACTIVE_AT], FAR
    for _ in range(2):
        place, command, at = _choose(m, queue, m[ch + source], clock, kind)
        if command != NONE:
            return source, place, command, clock
        earliest = min(earliest, at)
        if m[ch + DUE] > 0:
            break
        source, queue = (WRITES, m[ch + WRITES_AT]) if _writes(m, ch) else (READS, m[ch + READS_AT])
    if m[ch + DUE] > 0 and kind != COLUMN:
        command, at = _refresh(m, ch)
        if at <= clock:
            return NONE, NONE, command, clock
        earliest = min(earliest, at)
    return NONE, NONE, NONE, int(earliest)


@kernel
def _issue_for(m: IntArray, ch: int, source: int, place: int, command: int, clock: int) -> int:
    """A request's command; the request if that serves it, else NONE."""
    queue = m[ch + READS_AT]
    if source != READS:
        queue = m[ch + WRITES_AT] if source == WRITES else m[ch + ACTIVE_AT]
    request = m[queue + place]
    bank = m[request + BANK_AT]
    issue(m, command, bank, m[request + ROW], clock)
    if command == PRE:
        return NONE
    remove(m, queue, place, m[ch + source])
    m[ch + source] -= 1
    if command == ACT:
        m[m[ch + ACTIVE_AT] + m[ch + ACTIVE]] = request
        m[ch + ACTIVE] += 1
        m[bank + HELD] += 1
        return NONE
    m[bank + HELD] -= 1 if source == ACTIVE else 0
    return int(request)


@kernel
def _writes(m: IntArray, ch: int) -> bool:
    """Is it the writes' turn?"""
    if not m[ch + WRITE_MODE]:
        high = 5 * m[ch + WRITES] > HIGH_FIFTHS * m[TRANSACTION_DEPTH]
        m[ch + WRITE_MODE] = 1 if high or m[ch + READS] == 0 else 0
    elif 5 * m[ch + WRITES] < LOW_FIFTHS * m[TRANSACTION_DEPTH] and m[ch + READS] != 0:
        m[ch + WRITE_MODE] = 0
    return bool(m[ch + WRITE_MODE]) and not m[IN_ORDER]


@kernel
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


@kernel
def _next_command(m: IntArray, request: int) -> int:
    row = m[m[request + BANK_AT] + OPEN_ROW]
    if row == NONE:
        return ACT
    return column_command(m, request) if row == m[request + ROW] else PRE


@kernel
def _refresh(m: IntArray, ch: int) -> tuple[int, int]:
    """The next command of the refresh that is due, and when it may be issued."""
    refresh_begins(m, ch)
    close_at = NONE
    for bank in range(m[ch + REFRESH_FROM], m[ch + REFRESH_TO], m[ch + BANK_SIZE]):
        if m[bank + OPEN_ROW] != NONE:
            close_at = max(close_at, ready_at(m, PRE, bank))
            if m[bank + HELD] > 0:
                return PRE, FAR
    if close_at == NONE:
        return refresh_of_closed(m, ch)
    return PRE, int(close_at)


@kernel
def _issue_refresh(m: IntArray, ch: int, command: int, clock: int) -> None:
    """One command closes all open banks, or refreshes all."""
    for bank in range(m[ch + REFRESH_FROM], m[ch + REFRESH_TO], m[ch + BANK_SIZE]):
        if command != PRE or m[bank + OPEN_ROW] != NONE:
            issue(m, command, bank, NONE, clock)
        if command != PRE:
            break
    if command != PRE:
        refresh_done(m, ch)

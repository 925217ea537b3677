"""A controller with a queue of commands per bank, compiled: one cycle of one channel.

Requests wait in a channel until their bank's queue has room; one moves in a cycle. Queues take
turns: the next one with a command that may be issued issues it. In a queue the first ready
command goes, so accesses to the open row overtake others; a row is closed if nobody in the
queue wants it any more, or after so many accesses. Writes are collected until their buffer is
full (or nothing else is to be done), then all of them are let in.

In order (``fcfs``): reads and writes share one buffer, nothing overtakes, and only the oldest
request's commands are issued.
"""

from __future__ import annotations

from arch.timing import ACT, PRE, WRA
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
    ACCESSES,
    BANK_AT,
    BANK_SIZE,
    BANKS,
    BANKS_AT,
    DRAINING,
    DUE,
    FAR,
    HIT_LIMIT,
    IDLE,
    IDLE_AT,
    IN_ORDER,
    NEXT_REFRESH,
    NO_ROOM,
    NONE,
    OPEN_ROW,
    QUEUE,
    QUEUE_DEPTH,
    QUEUED,
    RANKS,
    READS,
    READS_AT,
    REFRESH_FROM,
    REFRESH_TO,
    ROW,
    TRANSACTION_DEPTH,
    TURN,
    TWO_BUSES,
    WAITING,
    WRITES,
    WRITES_AT,
    IntArray,
)

#: Writes are let in although their buffer is not full if more than this many wait and no
#: command does.
FEW_WRITES = 8


@kernel
def cycle(m: IntArray, ch: int, clock: int, last: bool) -> tuple[int, int, int]:
    """What the channel does in this cycle.

    Answers when something can happen next, which request is served (NONE) and when its data
    will have been moved. ``last``: no more requests will come. A second command in the cycle, on
    a memory with two buses, is of the other kind (row, column) than the first.
    """
    refresh_falls_due(m, ch, clock)
    wake, request, before = m[ch + NEXT_REFRESH], NONE, NONE
    for number in range(1 + m[TWO_BUSES]):
        command, bank, slot, at = _next_command(m, ch, clock, number == 0)
        if command == NONE:
            wake = min(wake, at)
            break
        is_column = 1 if PRE < command <= WRA else 0
        if is_column == before:
            break
        before = is_column
        row = m[m[bank + QUEUE + slot] + ROW] if command == ACT else NONE
        issue(m, command, bank, row, clock)
        if is_column:
            request = _leave_queue(m, ch, bank, slot)
        elif command > WRA:
            refresh_done(m, ch)
    end = complete(m, ch, request, clock) if request != NONE else 0
    acted = _let_in(m, ch, last) or before != NONE
    return clock + 1 if acted else int(wake), int(request), int(end)


@kernel
def _next_command(m: IntArray, ch: int, clock: int, first: bool) -> tuple[int, int, int, int]:
    """(command, bank, place in its queue, now), or (NONE, NONE, NONE, when there may be one).

    A refresh that is due comes first: open banks are closed one after the other, then it is done.
    """
    refresh_at = FAR
    if first and m[ch + DUE] > 0:
        command, bank, refresh_at = _refresh(m, ch)
        if refresh_at <= clock:
            return command, bank, NONE, clock
    command, bank, slot, at = _serve(m, ch, clock)
    return command, bank, slot, min(at, refresh_at)


@kernel
def _refresh(m: IntArray, ch: int) -> tuple[int, int, int]:
    """(command, bank, when): the first open bank that can be closed, or the refresh."""
    if m[ch + REFRESH_FROM] == NONE:
        refresh_begins(m, ch)
    earliest, which = FAR, NONE
    for bank in range(m[ch + REFRESH_FROM], m[ch + REFRESH_TO], m[ch + BANK_SIZE]):
        if m[bank + OPEN_ROW] != NONE:
            at = ready_at(m, PRE, bank)
            if at < earliest:
                earliest, which = at, bank
    if which != NONE:
        return PRE, int(which), int(earliest)
    command, at = refresh_of_closed(m, ch)
    return command, int(m[ch + REFRESH_FROM]), at


@kernel
def _serve(m: IntArray, ch: int, clock: int) -> tuple[int, int, int, int]:
    """The next queue with a command that may be issued; it has had its turn then."""
    earliest, banks, turn = FAR, m[RANKS] * m[BANKS], m[ch + TURN]
    only = _oldest(m, ch) if m[IN_ORDER] else NONE
    for _ in range(banks):
        turn = turn + 1 if turn + 1 < banks else 0
        if m[m[ch + IDLE_AT] + turn] > clock:
            earliest = min(earliest, m[m[ch + IDLE_AT] + turn])
            continue
        bank = m[ch + BANKS_AT] + turn * m[ch + BANK_SIZE]
        if m[ch + REFRESH_FROM] <= bank < m[ch + REFRESH_TO] or only not in (NONE, bank):
            continue
        slot, command, at = _first_ready(m, bank, clock)
        if slot != NONE:
            m[ch + TURN] = turn
            return int(command), int(bank), int(slot), clock
        m[m[ch + IDLE_AT] + turn] = at
        earliest = min(earliest, at)
    return NONE, NONE, NONE, int(earliest)


@kernel
def _leave_queue(m: IntArray, ch: int, bank: int, slot: int) -> int:
    """The request whose column command has been issued."""
    request = m[bank + QUEUE + slot]
    remove(m, bank + QUEUE, slot, m[bank + QUEUED])
    m[bank + QUEUED] -= 1
    if m[bank + QUEUED] == 0:
        m[m[bank + IDLE]] = FAR
    m[ch + WAITING] -= 1
    m[ch + NO_ROOM] = 0
    return int(request)


@kernel
def _oldest(m: IntArray, ch: int) -> int:
    """The bank of the oldest request in the queues."""
    oldest, first, size = NONE, FAR, m[ch + BANK_SIZE]
    for bank in range(m[ch + BANKS_AT], m[ch + BANKS_AT] + m[RANKS] * m[BANKS] * size, size):
        if m[bank + QUEUED] > 0 and m[bank + QUEUE] < first:
            oldest, first = bank, m[bank + QUEUE]
    return int(oldest)


@kernel
def _first_ready(m: IntArray, bank: int, clock: int) -> tuple[int, int, int]:
    """(place in the queue, command, when): the first that may be issued, or NONE and when."""
    row, earliest, refused = m[bank + OPEN_ROW], FAR, NONE
    if row == NONE:
        at = ready_at(m, ACT, bank)
        return (0 if at <= clock else NONE), ACT, at
    for slot in range(1 if m[IN_ORDER] else m[bank + QUEUED]):
        request = m[bank + QUEUE + slot]
        if m[request + ROW] == row:
            command = column_command(m, request)
        elif slot == 0 and _may_close(m, bank, row):
            command = PRE
        else:
            continue
        if command == refused:
            continue
        at = ready_at(m, command, bank)
        if at <= clock:
            return slot, command, at
        earliest, refused = min(earliest, at), command
    return NONE, NONE, int(earliest)


@kernel
def _may_close(m: IntArray, bank: int, row: int) -> bool:
    """Nobody in the queue wants the open row, or it has been used enough."""
    wanted = False
    for slot in range(m[bank + QUEUED]):
        wanted |= m[m[bank + QUEUE + slot] + ROW] == row
    return not wanted or bool(m[bank + ACCESSES] >= m[HIT_LIMIT] or m[IN_ORDER])


@kernel
def _let_in(m: IntArray, ch: int, last: bool) -> bool:
    """Moves one waiting request into its bank's queue; False if none can be."""
    if m[ch + DRAINING] == 0 and m[ch + WRITES] > 0:
        enough = m[ch + WRITES] > FEW_WRITES or (last and m[ch + READS] == 0)
        if m[ch + WRITES] == m[TRANSACTION_DEPTH] or (enough and m[ch + WAITING] == 0):
            m[ch + DRAINING] = m[ch + WRITES]
    which, waiting = READS, m[ch + READS_AT]
    if m[ch + DRAINING] > 0:
        which, waiting = WRITES, m[ch + WRITES_AT]
    count = m[ch + which]
    if m[ch + NO_ROOM] == 1 + which:
        return False
    for position in range(1 if m[IN_ORDER] and count else count):
        request = m[waiting + position]
        bank = m[request + BANK_AT]
        if m[bank + QUEUED] < m[QUEUE_DEPTH]:
            m[bank + QUEUE + m[bank + QUEUED]] = request
            m[bank + QUEUED] += 1
            m[m[bank + IDLE]] = 0
            m[ch + WAITING] += 1
            remove(m, waiting, position, count)
            m[ch + which] -= 1
            m[ch + DRAINING] -= 1 if which == WRITES else 0
            return True
    m[ch + NO_ROOM] = 1 + which
    return False

"""The engine, compiled. ``sim/process.py`` says what it means.

Differences are of form only: the next process to wake is searched for instead of kept in a heap
(there are few), and a receiver that goes on while its sender has not finished is a stack
instead of a call.
"""

from __future__ import annotations

from mapper.compiled import compiled
from sim.devices.dram_burst import COLUMN_FREE, FRONT, serve
from sim.replay.image import (
    AMOUNT,
    BASE,
    BUSY,
    CLOCK,
    CONTENTION,
    CURSOR,
    DEPENDENCE,
    FILL,
    FINISH,
    FINISH_DONE,
    FINISH_ISSUED,
    FINISH_STARTED,
    FIRST,
    FIRST_TRANSFER,
    IS_WRITE,
    ISSUE,
    LAST,
    LAST_TRANSFER,
    LATENCY,
    LOST,
    NEVER,
    NOTHING,
    OLDEST,
    OPERATION,
    PORT,
    POSITION,
    PROCESS_FIELDS,
    PROCESSES,
    PROCESSES_END,
    PUT,
    RECOVERY,
    REGION,
    REQUEST_FIELDS,
    RING,
    RING_END,
    ROOM,
    SCRIPT_END,
    SIZE,
    STACK,
    STATE,
    STATE_END,
    STEP_FIELDS,
    TAKE,
    TIME,
    TIME_DONE,
    TIME_ISSUED,
    TIME_STARTED,
    TIMING,
    TIMING_END,
    TOKEN,
    TOKEN_FIELDS,
    TOKENS,
    TRANSFER_FIELDS,
    WAITING,
    WAKE,
    WAKES,
    WAKES_END,
    WATCH,
    WATCHED,
    IntArray,
)
from sim.replay.steady import between_iterations

#: What ``run`` answers instead of a number of events if a channel needs more room.
FULL = -1
#: What ``put`` answers instead of a receiver.
FULL_CHANNEL = -2


@compiled
def run(m: IntArray) -> int:
    """Until nothing happens any more. The number of operations issued, or ``FULL``."""
    issued = 0
    for p in range(m[PROCESSES], m[PROCESSES_END], PROCESS_FIELDS):
        if not advance(p, m):
            return FULL
    first, end = m[WAKES], m[WAKES_END]
    while True:
        now, due = NEVER, NOTHING
        for wake in range(first, end):
            if m[wake] < now:
                now, due = m[wake], wake
        if due == NOTHING:
            return issued
        m[CLOCK] = now
        m[due] = NEVER
        p = m[PROCESSES] + (due - first) * PROCESS_FIELDS
        issue(p, m)
        issued += 1
        if not advance(p, m):
            return FULL


@compiled
def issue(p: int, m: IntArray) -> None:
    """Request every port at once; go on when all have served, results some time later."""
    step = m[p + POSITION]
    issued = done = started = m[p + TIME]
    for request in range(m[step + FIRST], m[step + LAST], REQUEST_FIELDS):
        port = m[request + PORT]
        start = m[port]
        if start < issued:
            if port == m[WATCHED]:
                explain(start, p, m)
            start = issued
        end = start + m[request + BUSY]
        m[port] = end + m[request + RECOVERY]
        if end > done:
            done, started = end, start
    there = 0
    for transfer in range(m[step + FIRST_TRANSFER], m[step + LAST_TRANSFER], TRANSFER_FIELDS):
        start, end, arrived = move_tile(transfer, p, m)
        there = max(there, arrived)
        if end > done:
            done, started = end, start
    m[p + POSITION] = step + STEP_FIELDS
    m[p + TIME] = m[p + TIME_DONE] = done
    m[p + TIME_STARTED] = started
    m[p + TIME_ISSUED] = issued
    finish = max(done, there) + m[step + AMOUNT]
    if finish > m[p + FINISH]:
        m[p + FINISH] = finish
        m[p + FINISH_DONE] = done
        m[p + FINISH_STARTED] = started
        m[p + FINISH_ISSUED] = issued


@compiled
def move_tile(transfer: int, p: int, m: IntArray) -> tuple[int, int, int]:
    """Ask a device: when its bus is there for a tile, when it has done it, when the data is."""
    state = m[m[transfer + STATE] : m[transfer + STATE_END]]
    timing = m[m[transfer + TIMING] : m[transfer + TIMING_END]]
    region, size = m[transfer + REGION], m[transfer + SIZE]
    ready = m[p + TIME]
    free = state[COLUMN_FREE]
    if free < ready + timing[FRONT] and m[transfer + STATE] + COLUMN_FREE == m[WATCHED]:
        if 0 < free < ready:
            m[LOST + LATENCY] += timing[FRONT]
            explain(free, p, m)
        else:
            m[LOST + (LATENCY if free else FILL)] += ready + timing[FRONT] - free
    address = m[region + BASE] + m[region + CURSOR]
    m[region + CURSOR] = (m[region + CURSOR] + size) % m[region + ROOM]
    there = serve(state, timing, address, size, m[transfer + IS_WRITE], ready)
    return max(free, ready + timing[FRONT]), state[COLUMN_FREE], there


@compiled
def explain(free: int, p: int, m: IntArray) -> None:
    """Why the watched port was idle from ``free`` to the time of a process.

    The process waited for the latency of an operation, for its service elsewhere, and while
    that waited for ports that others used; before that, for whatever came before it.
    """
    if free == 0:
        m[LOST + FILL] += m[p + TIME]
        return
    done = max(m[p + TIME_DONE], free)
    started = max(m[p + TIME_STARTED], free)
    issued = max(m[p + TIME_ISSUED], free)
    m[LOST + LATENCY] += m[p + TIME] - done
    m[LOST + CONTENTION] += started - issued
    m[LOST + DEPENDENCE] += (done - started) + (issued - free)


@compiled
def advance(p: int, m: IntArray) -> bool:
    """All steps of a process up to where it has to rest, and of those that it wakes on the way.

    False if a channel is full.
    """
    bottom = top = m[STACK]
    while True:
        step = m[p + POSITION]
        resting = step == m[p + SCRIPT_END]
        if not resting:
            operation = m[step + OPERATION]
            if operation == ISSUE:
                m[m[p + WAKE]] = m[p + TIME]
                resting = True
            elif operation == TAKE:
                resting = not take(p, m[step + FIRST], m)
            elif operation == PUT:
                receiver = put(p, m[step + FIRST], m)
                if receiver == FULL_CHANNEL:
                    return False
                if receiver != NOTHING:
                    m[top] = p
                    top += 1
                    p = receiver
            else:
                end_of_loop(p, step, m)
        if resting:
            if top == bottom:
                return True
            top -= 1
            p = m[top]


@compiled
def take(p: int, channel: int, m: IntArray) -> bool:
    """Receive a token; False if there is none."""
    if m[channel + TOKENS] == 0:
        m[channel + WAITING] = p
        return False
    token = m[channel + OLDEST]
    after = token + TOKEN_FIELDS
    m[channel + OLDEST] = m[channel + RING] if after == m[channel + RING_END] else after
    m[channel + TOKENS] -= 1
    m[p + POSITION] += STEP_FIELDS
    if m[token + TOKEN] > m[p + TIME]:
        for column in range(TOKEN_FIELDS):
            m[p + TIME + column] = m[token + column]
    return True


@compiled
def put(p: int, channel: int, m: IntArray) -> int:
    """Send a token. Who waited for it, ``NOTHING``, or ``FULL_CHANNEL``."""
    room = m[channel + RING_END] - m[channel + RING]
    token = m[channel + OLDEST] + m[channel + TOKENS] * TOKEN_FIELDS
    if m[channel + TOKENS] * TOKEN_FIELDS == room:
        return FULL_CHANNEL
    if token >= m[channel + RING_END]:
        token -= room
    m[channel + TOKENS] += 1
    m[p + POSITION] += STEP_FIELDS
    latest = FINISH if m[p + FINISH] > m[p + TIME] else TIME
    for column in range(TOKEN_FIELDS):
        m[token + column] = m[p + latest + column]
    receiver = m[channel + WAITING]
    m[channel + WAITING] = NOTHING
    return int(receiver)


@compiled
def end_of_loop(p: int, step: int, m: IntArray) -> None:
    counter = m[step + LAST]
    m[counter] += 1
    if m[counter] == m[step + AMOUNT]:
        m[counter] = 0
        m[p + POSITION] += STEP_FIELDS
        return
    m[p + POSITION] = m[step + FIRST]
    if m[step + WATCH] != NOTHING:
        between_iterations(m[step + WATCH], m[counter], m)

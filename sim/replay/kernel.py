"""The engine, compiled. ``sim/process.py`` says what it means.

Differences are of form only: the next process to wake is searched for instead of kept in a heap
(there are few), and a receiver that goes on while its sender has not finished is a stack
instead of a call.
"""

from __future__ import annotations

from mapper.compiled import kernel
from sim.replay.image import (
    AMOUNT,
    ARBITRATED,
    ASK,
    BUSY,
    CLOCK,
    DECISIONS,
    FINISH,
    FINISH_DONE,
    FINISH_ISSUED,
    FINISH_STARTED,
    FIRST,
    FIRST_TRANSFER,
    LAST,
    LAST_TRANSFER,
    NEVER,
    NOTHING,
    OLDEST,
    OPERATION,
    PORT,
    PORT_FIELDS,
    POSITION,
    PROCESS_FIELDS,
    PROCESSES,
    PROCESSES_END,
    PUT,
    RECOVERY,
    REQUEST_FIELDS,
    RING,
    RING_END,
    SCRIPT_END,
    STACK,
    STEP_FIELDS,
    TAKE,
    TIME,
    TIME_DONE,
    TIME_ISSUED,
    TIME_STARTED,
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
from sim.replay.service import ask, decide, explain, move_tile
from sim.replay.steady import between_iterations

#: What ``run`` answers instead of a number of events if a channel needs more room.
FULL = -1
#: What ``put`` answers instead of a receiver.
FULL_CHANNEL = -2


@kernel
def run(m: IntArray) -> int:
    """Until nothing happens any more. The number of operations issued, or ``FULL``."""
    issued = 0
    for p in range(m[PROCESSES], m[PROCESSES_END], PROCESS_FIELDS):
        if not advance(p, m):
            return FULL
    first, decisions, end = m[WAKES], m[DECISIONS], m[WAKES_END]
    while True:
        now, due = NEVER, NOTHING
        for wake in range(first, end):
            if m[wake] < now:
                now, due = m[wake], wake
        if due == NOTHING:
            return issued
        m[CLOCK] = now
        m[due] = NEVER
        if due < decisions:
            p = m[PROCESSES] + (due - first) * PROCESS_FIELDS
            issued += 1
            if m[m[p + POSITION] + OPERATION] == ASK:
                ask(p, m)
                p = NOTHING
            else:
                issue(p, m)
        else:
            p = decide(m[ARBITRATED] + (due - decisions) * PORT_FIELDS, m)
        if p != NOTHING and not advance(p, m):
            return FULL


@kernel
def issue(p: int, m: IntArray) -> None:
    """Request every port at once; go on when all have served, results some time later."""
    step = m[p + POSITION]
    issued = done = started = m[p + TIME]
    for request in range(m[step + FIRST], m[step + LAST], REQUEST_FIELDS):
        port = m[request + PORT]
        start = m[port]
        if start < issued:
            if port == m[WATCHED]:
                explain(start, issued, p, m)
            start = issued
        end = start + m[request + BUSY]
        m[port] = end + m[request + RECOVERY]
        if end > done:
            done, started = end, start
    there = 0
    for transfer in range(m[step + FIRST_TRANSFER], m[step + LAST_TRANSFER], TRANSFER_FIELDS):
        start, end, arrived = move_tile(transfer, p, issued, m)
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


@kernel
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
            if operation <= ASK:
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


@kernel
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


@kernel
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


@kernel
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

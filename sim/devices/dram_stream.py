"""A stream of requests through a DRAM's controllers, command by command, compiled.

Requests are given in order, ``inject`` in a cycle at most, as long as the first one's channel
has room for it. Cycles in which nothing can happen are skipped.
"""

from __future__ import annotations

import numpy as np

from mapper.compiled import compiled, kernel
from sim.devices import dram_bank_queues, dram_shared_queue
from sim.devices.dram_image import (
    ACCEPTED,
    BANK_AT,
    CHANNEL_AT,
    CHANNEL_SIZE,
    CHANNELS,
    CHANNELS_AT,
    COMPLETED,
    FAR,
    IN_ORDER,
    IS_WRITE,
    LAST_DATA,
    NO_ROOM,
    READS,
    READS_AT,
    REQUEST_SIZE,
    REQUESTS_AT,
    REQUESTS_END,
    SHARED_QUEUE,
    TRANSACTION_DEPTH,
    WAKE,
    WRITES,
    WRITES_AT,
    IntArray,
)

bank_queues_cycle = dram_bank_queues.cycle
shared_queue_cycle = dram_shared_queue.cycle

#: Why no more requests were given in a cycle; cycles are counted for each.
ALL_GIVEN, INJECTION, OUTSTANDING, FULL = range(4)
REASONS = 4


# How the stream stands: positions in ``s``. After the fields, two rings with the cycles in which
# reads and writes are answered; their ends are counts of answers ever put in and taken out.
(
    NEXT,
    FLYING,
    INJECT,
    LIMIT,
    RING_SIZE,
    READS_IN,
    READS_OUT,
    WRITES_IN,
    WRITES_OUT,
    CYCLES,
    REASON_CYCLES,
) = range(11)
RINGS = REASON_CYCLES + REASONS
_READ, _WRITE = READS_IN, WRITES_IN


@compiled
def run(m: IntArray, inject: int, outstanding: int) -> IntArray:
    """Simulates to the end; the fields of ``s``."""
    total = (m[REQUESTS_END] - m[REQUESTS_AT]) // REQUEST_SIZE
    limit = min(outstanding, total)
    s = np.zeros(RINGS + 2 * (limit + 2), np.int64)
    s[NEXT], s[INJECT], s[LIMIT], s[RING_SIZE] = m[REQUESTS_AT], inject, limit, limit + 2
    clock = 0
    while s[NEXT] < m[REQUESTS_END] or _completed(m) < total:
        reason = _give(m, s, clock)
        upcoming = _tick(m, s, clock)
        if s[NEXT] < m[REQUESTS_END]:
            upcoming = min(upcoming, _can_give(m, s, reason, clock))
        s[REASON_CYCLES + reason] += upcoming - clock
        clock = upcoming
    for number in range(m[CHANNELS]):
        ch = m[CHANNELS_AT] + number * m[CHANNEL_SIZE]
        s[CYCLES] = max(s[CYCLES], m[ch + LAST_DATA] + 1)
    return s


@kernel
def _completed(m: IntArray) -> int:
    done = 0
    for number in range(m[CHANNELS]):
        done += m[m[CHANNELS_AT] + number * m[CHANNEL_SIZE] + COMPLETED]
    return int(done)


@kernel
def _give(m: IntArray, s: IntArray, clock: int) -> int:
    """Gives what can be given in this cycle; why not more."""
    _answer(s, clock)
    for _ in range(s[INJECT]):
        if s[NEXT] == m[REQUESTS_END]:
            return ALL_GIVEN
        if s[FLYING] == s[LIMIT]:
            return OUTSTANDING
        if not _has_room(m, s[NEXT]):
            return FULL
        _accept(m, s, s[NEXT], clock)
        s[NEXT] += REQUEST_SIZE
        if s[NEXT] == m[REQUESTS_END]:
            _tell_all_channels(m, clock)
    return INJECTION if s[NEXT] < m[REQUESTS_END] else ALL_GIVEN


@kernel
def _tell_all_channels(m: IntArray, clock: int) -> None:
    """That there will be no more requests: writes need not be collected any longer."""
    for number in range(m[CHANNELS]):
        m[m[CHANNELS_AT] + number * m[CHANNEL_SIZE] + WAKE] = clock


@kernel
def _accept(m: IntArray, s: IntArray, request: int, clock: int) -> None:
    ch = m[m[request + BANK_AT] + CHANNEL_AT]
    m[ch + WAKE] = clock
    m[ch + NO_ROOM] = 0
    m[request + ACCEPTED] = clock
    s[FLYING] += 1
    if m[request + IS_WRITE] and not m[IN_ORDER]:
        m[m[ch + WRITES_AT] + m[ch + WRITES]] = request
        m[ch + WRITES] += 1
    else:
        m[m[ch + READS_AT] + m[ch + READS]] = request
        m[ch + READS] += 1
    if m[request + IS_WRITE]:  # a write is answered as soon as the controller has it
        _will_answer(s, _WRITE, clock + 1)


@kernel
def _has_room(m: IntArray, request: int) -> bool:
    ch = m[m[request + BANK_AT] + CHANNEL_AT]
    which = WRITES if m[request + IS_WRITE] and not m[IN_ORDER] else READS
    return bool(m[ch + which] < m[TRANSACTION_DEPTH])


@kernel
def _will_answer(s: IntArray, kind: int, clock: int) -> None:
    ring = RINGS + (s[RING_SIZE] if kind == _WRITE else 0)
    s[ring + s[kind] % s[RING_SIZE]] = clock
    s[kind] += 1


@kernel
def _next_answer(s: IntArray, kind: int) -> int:
    """The cycle of the next answer of a kind: each kind's answers come in order."""
    if s[kind] == s[kind + 1]:
        return FAR
    ring = RINGS + (s[RING_SIZE] if kind == _WRITE else 0)
    return int(s[ring + s[kind + 1] % s[RING_SIZE]])


@kernel
def _answer(s: IntArray, clock: int) -> None:
    """Takes the requests that were answered before this cycle."""
    for kind in (_READ, _WRITE):
        while _next_answer(s, kind) < clock:
            s[kind + 1] += 1
            s[FLYING] -= 1


@kernel
def _tick(m: IntArray, s: IntArray, clock: int) -> int:
    """All channels in which something may happen now; when the next one has something."""
    upcoming, last = FAR, s[NEXT] == m[REQUESTS_END]
    for number in range(m[CHANNELS]):
        ch = m[CHANNELS_AT] + number * m[CHANNEL_SIZE]
        if m[ch + WAKE] <= clock:
            if m[SHARED_QUEUE]:
                wake, request, end = shared_queue_cycle(m, ch, clock)
            else:
                wake, request, end = bank_queues_cycle(m, ch, clock, last)
            m[ch + WAKE] = wake
            if request >= 0 and not m[request + IS_WRITE]:
                _will_answer(s, _READ, end)
        upcoming = min(upcoming, m[ch + WAKE])
    return int(upcoming)


@kernel
def _can_give(m: IntArray, s: IntArray, reason: int, clock: int) -> int:
    """The next cycle in which a request may be given, as far as no channel has to act first."""
    if reason == INJECTION:
        return clock + 1
    if reason == FULL:
        return clock + 1 if _has_room(m, s[NEXT]) else FAR
    return int(max(min(_next_answer(s, _READ), _next_answer(s, _WRITE)), clock) + 1)

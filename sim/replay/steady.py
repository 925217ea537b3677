"""Skip-ahead, compiled: what ``sim/steady.py`` does, on an image.

A loop's state is compared with one earlier state, which is replaced ever more rarely (Brent,
"An improved Monte Carlo factorization algorithm", BIT 1980), instead of with all of them; a
skip is exact whichever earlier state it came from.
"""

from __future__ import annotations

from mapper.compiled import kernel
from sim.replay.image import (
    ADMITTED,
    ASK_DONE,
    CAUSES,
    CHANNELS,
    CHANNELS_END,
    CLOCK,
    COMPARED,
    COUNT,
    COUNTER,
    COUNTERS,
    COUNTERS_END,
    DECISION,
    DOORS,
    ELSEWHERE,
    ELSEWHERE_END,
    ENTRY,
    EXIT,
    FINISH,
    HELD_BACK,
    HOLDER,
    LAST_SERVED,
    LOST,
    LOST_SEEN,
    MEMBER,
    MEMBER_FIELDS,
    MEMBERS,
    MEMBERS_END,
    NEVER,
    OLDEST,
    OTHERS,
    OTHERS_END,
    PATIENCE,
    PLACE_FIELDS,
    PORTS,
    PORTS_END,
    POSITION,
    QUEUE,
    QUEUED,
    QUEUES,
    QUEUES_END,
    RING,
    RING_END,
    SCRIPT_END,
    SEEN,
    SEEN_AT,
    SEEN_PS,
    TIME,
    TOKEN,
    TOKEN_FIELDS,
    TOKENS,
    WAITING_IN,
    WAKE,
    WATCHED,
    IntArray,
)

#: Instead of where to go on: the state is another one.
MISMATCH = -1


@kernel
def between_iterations(loop: int, iteration: int, m: IntArray) -> None:
    """Skip ahead if the state is the one that is kept; keep another one from time to time."""
    if iteration > 1:
        if visit(loop, iteration, False, m):
            period, span = iteration - m[loop + SEEN_AT], m[CLOCK] - m[loop + SEEN_PS]
            times = periods(loop, period, span, m)
            if times > 0:
                skip(loop, times, period, span, m)
                keep(loop, iteration + times * period, m)
            return
        m[loop + COMPARED] += 1
        if m[loop + COMPARED] < m[loop + PATIENCE]:
            return
    m[loop + PATIENCE] = 1 if iteration == 1 else 2 * m[loop + PATIENCE]
    keep(loop, iteration, m)


@kernel
def keep(loop: int, iteration: int, m: IntArray) -> None:
    m[loop + SEEN_AT] = iteration
    m[loop + SEEN_PS] = m[CLOCK]
    m[loop + COMPARED] = 0
    for cause in range(CAUSES):
        m[loop + LOST_SEEN + cause] = m[LOST + cause]
    visit(loop, iteration, True, m)


@kernel
def visit(loop: int, iteration: int, store: bool, m: IntArray) -> bool:
    """Keep the loop's state, or say whether it is the one that is kept."""
    place = visit_members(loop, iteration, store, m)
    if place != MISMATCH:
        place = visit_others(loop, place, store, m)
    if place != MISMATCH:
        place = visit_channels(loop, place, store, m)
    if place != MISMATCH:
        place = visit_ports(loop, place, store, m)
    return place != MISMATCH and visit_queues(loop, place, store, m)


@kernel
def same(place: int, value: int, store: bool, m: IntArray) -> bool:
    if store:
        m[place] = value
    return bool(m[place] == value)


@kernel
def inside(member: int, m: IntArray) -> bool:
    """Is the process of a member in the loop?"""
    return bool(m[member + ENTRY] <= m[m[member + MEMBER] + POSITION] <= m[member + EXIT])


@kernel
def visit_members(loop: int, iteration: int, store: bool, m: IntArray) -> int:
    now, place = m[CLOCK], m[loop + SEEN]
    for member in range(m[loop + MEMBERS], m[loop + MEMBERS_END], MEMBER_FIELDS):
        p, within = m[member + MEMBER], inside(member, m)
        if not same(place, m[p + POSITION], store, m):
            return MISMATCH
        if within:
            for number, time in enumerate((TIME, FINISH, ASK_DONE)):
                if not same(place + 1 + number, max(m[p + time] - now, 0), store, m):
                    return MISMATCH
        place = visit_request(p, place + 4, store, m)
        if place == MISMATCH:
            return MISMATCH
        for counter in range(m[p + COUNTERS], m[p + COUNTERS_END]):
            passed = iteration if within and counter == m[member + COUNTER] else 0
            if not same(place, m[counter] - passed, store, m):
                return MISMATCH
            place += 1
    return int(place)


@kernel
def visit_request(p: int, place: int, store: bool, m: IntArray) -> int:
    """How far an operation that waits for ports has come."""
    if not same(place, m[p + ADMITTED], store, m):
        return MISMATCH
    if not same(place + 1, m[p + WAITING_IN], store, m):
        return MISMATCH
    return place + 2


@kernel
def visit_others(loop: int, place: int, store: bool, m: IntArray) -> int:
    for other in range(m[loop + OTHERS], m[loop + OTHERS_END]):
        p = m[other]
        if not same(place, m[p + POSITION], store, m):
            return MISMATCH
        place = visit_request(p, place + 1, store, m)
        if place == MISMATCH:
            return MISMATCH
        for counter in range(m[p + COUNTERS], m[p + COUNTERS_END]):
            if not same(place, m[counter], store, m):
                return MISMATCH
            place += 1
    return place


@kernel
def visit_channels(loop: int, place: int, store: bool, m: IntArray) -> int:
    now = m[CLOCK]
    for used in range(m[loop + CHANNELS], m[loop + CHANNELS_END]):
        channel = m[used]
        if not same(place, m[channel + TOKENS], store, m):
            return MISMATCH
        place += 1
        token = m[channel + OLDEST]
        for _ in range(m[channel + TOKENS]):
            if not same(place, max(m[token + TOKEN] - now, 0), store, m):
                return MISMATCH
            place += 1
            token += TOKEN_FIELDS
            if token == m[channel + RING_END]:
                token = m[channel + RING]
    return place


@kernel
def visit_ports(loop: int, place: int, store: bool, m: IntArray) -> int:
    """Times that have passed are equal to now, but not on the watched port: how long it has
    been idle is accounted for."""
    for used in range(m[loop + PORTS], m[loop + PORTS_END]):
        if not same(place, free_from_now(m[used], m), store, m):
            return MISMATCH
        place += 1
    return place


@kernel
def free_from_now(port: int, m: IntArray) -> int:
    free = m[port] - m[CLOCK]
    return int(free if port == m[WATCHED] else max(free, 0))


@kernel
def visit_queues(loop: int, place: int, store: bool, m: IntArray) -> bool:
    """Ports that have an arbiter: who waits, in which order, who keeps them, who was last."""
    for used in range(m[loop + QUEUES], m[loop + QUEUES_END]):
        port = m[used]
        if not same(place, free_from_now(port, m), store, m):
            return False
        place += 1
        for field in (LAST_SERVED, HOLDER, QUEUED, HELD_BACK):
            if not same(place, m[port + field], store, m):
                return False
            place += 1
        for number in range(m[port + QUEUED]):
            if not same(place, m[m[port + QUEUE] + number * PLACE_FIELDS], store, m):
                return False
            place += 1
        for number in range(m[port + HELD_BACK]):
            if not same(place, m[m[port + DOORS] + number], store, m):
                return False
            place += 1
    return True


@kernel
def periods(loop: int, period: int, span: int, m: IntArray) -> int:
    """How many whole periods nothing outside the loop happens, and its end is not reached."""
    times = m[loop + COUNT]
    for member in range(m[loop + MEMBERS], m[loop + MEMBERS_END], MEMBER_FIELDS):
        if inside(member, m):
            left = m[loop + COUNT] - 1 - m[m[member + COUNTER]]
            times = min(times, left // period)
        else:
            times = min(times, undisturbed(m[m[member + MEMBER] + WAKE], span, m))
    for other in range(m[loop + OTHERS], m[loop + OTHERS_END]):
        times = min(times, undisturbed(m[m[other] + WAKE], span, m))
    for elsewhere in range(m[loop + ELSEWHERE], m[loop + ELSEWHERE_END]):
        times = min(times, undisturbed(m[m[elsewhere] + DECISION], span, m))
    return int(times)


@kernel
def undisturbed(wake: int, span: int, m: IntArray) -> int:
    """Periods before a process outside the loop wakes up, or an arbiter decides."""
    if span == 0 or m[wake] == NEVER:
        return NEVER
    return int((m[wake] - m[CLOCK] - 1) // span)


@kernel
def skip(loop: int, times: int, period: int, span: int, m: IntArray) -> None:
    """All that takes part moves on by whole periods."""
    jump = times * span
    for member in range(m[loop + MEMBERS], m[loop + MEMBERS_END], MEMBER_FIELDS):
        if inside(member, m):
            m[m[member + COUNTER]] += times * period
            move(m[member + MEMBER] + TIME, m[member + MEMBER] + SCRIPT_END, jump, m)
            postpone(m[m[member + MEMBER] + WAKE], jump, m)
    for used in range(m[loop + CHANNELS], m[loop + CHANNELS_END]):
        move(m[m[used] + RING], m[m[used] + RING_END], jump, m)
    for used in range(m[loop + PORTS], m[loop + PORTS_END]):
        m[m[used]] += jump
    for used in range(m[loop + QUEUES], m[loop + QUEUES_END]):
        m[m[used]] += jump
        postpone(m[m[used] + DECISION], jump, m)
    for cause in range(LOST, LOST + CAUSES):
        m[cause] += (m[cause] - m[loop + LOST_SEEN + cause - LOST]) * times
    m[CLOCK] += jump


@kernel
def postpone(wake: int, jump: int, m: IntArray) -> None:
    if m[wake] != NEVER:
        m[wake] += jump


@kernel
def move(first: int, end: int, jump: int, m: IntArray) -> None:
    for cell in range(first, end):
        m[cell] += jump

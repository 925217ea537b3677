"""What ports do, compiled: why they were idle, tiles of devices, and arbiters.

``sim/process.py`` and ``sim/arbiter.py`` say what it means.
"""

from __future__ import annotations

from mapper.compiled import kernel
from sim.devices.banked_sram import QUIET, touch
from sim.devices.dram_burst import COLUMN_FREE, FRONT, serve
from sim.replay.image import (
    ADMITTED,
    AMOUNT,
    ASK_DONE,
    ASK_STARTED,
    ASK_THERE,
    BACK_PRESSURE,
    BASE,
    BUSY,
    CLOCK,
    CONTENTION,
    CURSOR,
    DECISION,
    DEMAND_FIELDS,
    DEPENDENCE,
    DOORS,
    FIFO,
    FILL,
    FINISH,
    FINISH_DONE,
    FINISH_ISSUED,
    FINISH_STARTED,
    FIRST,
    FIRST_MOVE,
    HAS_ARBITER,
    HELD_BACK,
    HOLDER,
    IMPORTANCE,
    IS_BANKED,
    IS_WRITE,
    LAST,
    LAST_MOVE,
    LAST_SERVED,
    LATENCY,
    LIMIT,
    LOST,
    NEVER,
    NOTHING,
    PLACE_DEMAND,
    PLACE_FIELDS,
    PLACE_PROCESS,
    PLACE_SINCE,
    POLICY,
    PORT,
    POSITION,
    PRIORITY,
    PROCESS_FIELDS,
    PROCESSES,
    PROCESSES_END,
    QUEUE,
    QUEUED,
    RECOVERY,
    REGION,
    ROOM,
    SIZE,
    STATE,
    STATE_END,
    STEP_FIELDS,
    TIME,
    TIME_DONE,
    TIME_ISSUED,
    TIME_STARTED,
    TIMING,
    TIMING_END,
    TRANSFER_FIELDS,
    WAITING_IN,
    WATCHED,
    IntArray,
)


@kernel
def move_tile(transfer: int, p: int, ready: int, m: IntArray) -> tuple[int, int, int]:
    """Ask a device: when its bus is there for a tile, when it has done it, when the data is."""
    if m[transfer + IS_BANKED]:
        return touch_banks(transfer, p, ready, m)
    state = m[m[transfer + STATE] : m[transfer + STATE_END]]
    timing = m[m[transfer + TIMING] : m[transfer + TIMING_END]]
    region, size = m[transfer + REGION], m[transfer + SIZE]
    free = state[COLUMN_FREE]
    if free < ready + timing[FRONT] and m[transfer + STATE] + COLUMN_FREE == m[WATCHED]:
        if 0 < free < ready:
            m[LOST + LATENCY] += timing[FRONT]
            explain(free, ready, p, m)
        else:
            m[LOST + (LATENCY if free else FILL)] += ready + timing[FRONT] - free
    address = m[region + BASE] + m[region + CURSOR]
    m[region + CURSOR] = (m[region + CURSOR] + size) % m[region + ROOM]
    there = serve(state, timing, address, size, m[transfer + IS_WRITE], ready)
    return max(free, ready + timing[FRONT]), state[COLUMN_FREE], there


@kernel
def touch_banks(transfer: int, p: int, ready: int, m: IntArray) -> tuple[int, int, int]:
    """As ``move_tile``, for a memory with several banks."""
    state = m[m[transfer + STATE] : m[transfer + STATE_END]]
    constants = m[m[transfer + TIMING] : m[transfer + TIMING_END]]
    region, size = m[transfer + REGION], m[transfer + SIZE]
    if state[QUIET] < ready and m[transfer + STATE] + QUIET == m[WATCHED]:
        explain(state[QUIET], ready, p, m)
    address = m[region + BASE] + m[region + CURSOR]
    m[region + CURSOR] = (m[region + CURSOR] + size) % m[region + ROOM]
    end = touch(state, constants, address, size, ready)
    return ready, end, end


@kernel
def explain(free: int, asked: int, p: int, m: IntArray) -> None:
    """Why the watched port was idle from ``free`` until a process asked for it.

    The process was held back on its way here; before that it waited for the latency of an
    operation, for its service elsewhere, and while that waited for ports that others used; and
    before that, for whatever came before it.
    """
    if free == 0:
        m[LOST + FILL] += asked
        return
    m[LOST + BACK_PRESSURE] += asked - max(m[p + TIME], free)
    if m[p + TIME] <= free:
        return
    done = max(m[p + TIME_DONE], free)
    started = max(m[p + TIME_STARTED], free)
    issued = max(m[p + TIME_ISSUED], free)
    m[LOST + LATENCY] += m[p + TIME] - done
    m[LOST + CONTENTION] += started - issued
    m[LOST + DEPENDENCE] += (done - started) + (issued - free)


@kernel
def ask(p: int, m: IntArray) -> None:
    """Begin an operation that needs a port that has an arbiter."""
    m[p + ADMITTED] = m[m[p + POSITION] + FIRST]
    m[p + WAITING_IN] = m[p + ASK_THERE] = 0
    m[p + ASK_DONE] = m[p + ASK_STARTED] = m[p + TIME]
    admit(p, m)


@kernel
def admit(p: int, m: IntArray) -> None:
    """Into as many ports as there is room in, in order."""
    step = m[p + POSITION]
    while m[p + ADMITTED] < m[step + LAST]:
        demand = m[p + ADMITTED]
        port = m[demand + PORT]
        if not m[demand + HAS_ARBITER]:
            serve_demand(demand, p, m[CLOCK], m)
        elif m[port + QUEUED] == m[port + LIMIT]:
            m[m[port + DOORS] + m[port + HELD_BACK]] = p
            m[port + HELD_BACK] += 1
            return
        else:
            place = m[port + QUEUE] + m[port + QUEUED] * PLACE_FIELDS
            m[place + PLACE_PROCESS] = p
            m[place + PLACE_DEMAND] = demand
            m[place + PLACE_SINCE] = m[CLOCK]
            m[port + QUEUED] += 1
            m[p + WAITING_IN] += 1
            plan(port, m)
        m[p + ADMITTED] += DEMAND_FIELDS
    for demand in range(m[step + FIRST], m[step + LAST], DEMAND_FIELDS):
        if m[demand + HAS_ARBITER] and m[m[demand + PORT] + HOLDER] == p:
            let_go(m[demand + PORT], p, m)


@kernel
def let_go(port: int, p: int, m: IntArray) -> None:
    """Of a port that was kept after its work, because others held the operation back."""
    now = m[CLOCK]
    if m[port] < now:
        if port == m[WATCHED]:
            m[LOST + BACK_PRESSURE] += now - m[port]
        m[port] = now
    m[port + HOLDER] = NOTHING
    m[p + ASK_DONE] = max(m[p + ASK_DONE], now)
    plan(port, m)


@kernel
def plan(port: int, m: IntArray) -> None:
    """Decide when the port is free."""
    decision = m[port + DECISION]
    if m[port + QUEUED] > 0 and m[port + HOLDER] == NOTHING and m[decision] == NEVER:
        m[decision] = max(m[port], m[CLOCK])


@kernel
def decide(port: int, m: IntArray) -> int:
    """Serve one of those who wait. The process whose operation is over by that, or ``NOTHING``."""
    place = m[port + QUEUE] + choose(port, m) * PLACE_FIELDS
    p, demand, since = m[place + PLACE_PROCESS], m[place + PLACE_DEMAND], m[place + PLACE_SINCE]
    m[port + QUEUED] -= 1
    remove(place, m[port + QUEUE] + m[port + QUEUED] * PLACE_FIELDS, PLACE_FIELDS, m)
    m[port + LAST_SERVED] = number_of(p, m)
    m[p + WAITING_IN] -= 1
    serve_demand(demand, p, since, m)
    let_in = m[p + ADMITTED] == m[m[p + POSITION] + LAST]
    m[port + HOLDER] = NOTHING if let_in else p
    while m[port + HELD_BACK] > 0 and m[port + QUEUED] < m[port + LIMIT]:
        first = m[m[port + DOORS]]
        m[port + HELD_BACK] -= 1
        remove(m[port + DOORS], m[port + DOORS] + m[port + HELD_BACK], 1, m)
        admit(first, m)
    plan(port, m)
    if not let_in or m[p + WAITING_IN] > 0:
        return NOTHING
    end_of_ask(p, m)
    return int(p)


@kernel
def remove(place: int, last: int, fields: int, m: IntArray) -> None:
    """Those behind a place move up; ``last`` is where the last one stood."""
    for cell in range(place, last):
        m[cell] = m[cell + fields]


@kernel
def number_of(p: int, m: IntArray) -> int:
    return int((p - m[PROCESSES]) // PROCESS_FIELDS)


@kernel
def choose(port: int, m: IntArray) -> int:
    """The place of the one that goes next."""
    if m[port + POLICY] == FIFO:
        return 0
    count = (m[PROCESSES_END] - m[PROCESSES]) // PROCESS_FIELDS
    best, chosen = NEVER, 0
    for number in range(m[port + QUEUED]):
        p = m[m[port + QUEUE] + number * PLACE_FIELDS + PLACE_PROCESS]
        key = number_of(p, m)
        if m[port + POLICY] == PRIORITY:
            key = m[m[port + IMPORTANCE] + key]
        elif key <= m[port + LAST_SERVED]:
            key += count
        if key < best:
            best, chosen = key, number
    return chosen


@kernel
def serve_demand(demand: int, p: int, since: int, m: IntArray) -> None:
    """What an operation asked of one port at ``since`` begins."""
    now, port = m[CLOCK], m[demand + PORT]
    if m[demand + FIRST_MOVE] == m[demand + LAST_MOVE]:
        start = m[port]
        if start < now:
            if port == m[WATCHED]:
                explain(start, now, p, m)
            start = now
        end = start + m[demand + BUSY]
        m[port] = end + m[demand + RECOVERY]
        note(p, start, end, m)
    for transfer in range(m[demand + FIRST_MOVE], m[demand + LAST_MOVE], TRANSFER_FIELDS):
        start, end, there = move_tile(transfer, p, since, m)
        m[port] = end
        m[p + ASK_THERE] = max(m[p + ASK_THERE], there)
        note(p, start, end, m)


@kernel
def note(p: int, start: int, end: int, m: IntArray) -> None:
    if end > m[p + ASK_DONE]:
        m[p + ASK_DONE] = end
        m[p + ASK_STARTED] = start


@kernel
def end_of_ask(p: int, m: IntArray) -> None:
    """All ports have served the operation."""
    step = m[p + POSITION]
    issued, done = m[p + TIME], m[p + ASK_DONE]
    finish = max(done, m[p + ASK_THERE]) + m[step + AMOUNT]
    m[p + POSITION] = step + STEP_FIELDS
    m[p + ADMITTED] = NOTHING
    m[p + TIME] = m[p + TIME_DONE] = done
    m[p + TIME_STARTED] = m[p + ASK_STARTED]
    m[p + TIME_ISSUED] = issued
    if finish > m[p + FINISH]:
        m[p + FINISH] = finish
        m[p + FINISH_DONE] = done
        m[p + FINISH_STARTED] = m[p + ASK_STARTED]
        m[p + FINISH_ISSUED] = issued

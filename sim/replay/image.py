"""Scripts and state as one array of integers: what the compiled engine runs on.

Everything is a row of cells in this array and refers to other rows by where they begin, so
that the compiled functions have one argument and no bookkeeping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from sim.arbiter import ArbitratedPort, Ask, Demand
from sim.deadlock import Jam
from sim.device_port import DevicePort
from sim.devices.banked_sram import QUIET
from sim.devices.dram_burst import COLUMN_FREE
from sim.process import Channel, EndOfLoop, Instruction, Issue, Process, Put, Take, Transfer
from sim.scripts import Cast, DeviceTransfer, LoopUse
from sim.steady import FEWEST_ITERATIONS

IntArray = NDArray[np.int64]

#: A wake that is not planned, and a reference to nothing.
NEVER, NOTHING = np.iinfo(np.int64).max, -1

# The head of the image: the time of the event that is being worked on, the processes, the ports
# that have an arbiter, when processes wake and (from DECISIONS on) arbiters decide, the watched
# port, room for a stack of processes, and for LOST (one cell per cause).
CLOCK, PROCESSES, PROCESSES_END, ARBITRATED = range(4)
WAKES, DECISIONS, WAKES_END, WATCHED, STACK, LOST = range(4, 10)
#: Causes of time that the watched port does not work.
FILL, LATENCY, DEPENDENCE, CONTENTION, BACK_PRESSURE = range(5)
CAUSES = 5
HEAD_FIELDS = LOST + CAUSES

# A process. A time comes with why it is that: when the operation that it waited for was DONE
# (before its latency), STARTED on its last port, and was ISSUED. Of an operation under way (ASK):
# when the ports that it has got so far are done, its next demand (or NOTHING), and in how many
# queues it waits. TIME to ASK_THERE are times.
POSITION, TIME, TIME_DONE, TIME_STARTED, TIME_ISSUED = range(5)
FINISH, FINISH_DONE, FINISH_STARTED, FINISH_ISSUED = range(5, 9)
ASK_DONE, ASK_STARTED, ASK_THERE, SCRIPT_END, WAKE = range(9, 14)
COUNTERS, COUNTERS_END, ADMITTED, WAITING_IN = range(14, 18)
PROCESS_FIELDS = 18

# A step of a script. ISSUE: requests FIRST to LAST, latency AMOUNT. ASK: demands FIRST to LAST,
# latency AMOUNT. PUT, TAKE: channel FIRST.
# END_OF_LOOP: back to FIRST, counter LAST, trip count AMOUNT, WATCH (a loop, or NOTHING).
# An ISSUE also asks for transfers FIRST_TRANSFER to LAST_TRANSFER of devices.
OPERATION, FIRST, LAST, AMOUNT, WATCH, FIRST_TRANSFER, LAST_TRANSFER = range(7)
STEP_FIELDS = 7
ISSUE, ASK, PUT, TAKE, END_OF_LOOP = range(5)

# A request: the port (one cell, the time at which it is free), how long it serves, and how
# long it then is not ready for others.
PORT, BUSY, RECOVERY = range(3)
REQUEST_FIELDS = 3

# A demand: as a request, then whether its port has an arbiter, and which transfers it stands for.
HAS_ARBITER, FIRST_MOVE, LAST_MOVE = range(3, 6)
DEMAND_FIELDS = 6

# A port that has an arbiter, beginning, as every port, with when it is free: where its time to
# decide is, how many may wait and are held back, its policy, the process served last, the process
# that keeps it, the queue (how many, where), those held back (likewise), importance by process.
FREE, DECISION, LIMIT, POLICY, LAST_SERVED, HOLDER = range(6)
QUEUED, QUEUE, HELD_BACK, DOORS, IMPORTANCE = range(6, 11)
PORT_FIELDS = 11
POLICIES = ("fifo", "priority", "round_robin")
FIFO, PRIORITY, ROUND_ROBIN = range(3)
# A place in a queue: process, demand, since when.
PLACE_PROCESS, PLACE_DEMAND, PLACE_SINCE = range(3)
PLACE_FIELDS = 3

# A transfer: where the device's state and timing are, and where the operand lies (its base,
# size and cursor), how much is moved, whether it is written, and whether the device is a memory
# with several banks.
STATE, STATE_END, TIMING, TIMING_END, REGION, SIZE, IS_WRITE, IS_BANKED = range(8)
TRANSFER_FIELDS = 8
BASE, ROOM, CURSOR = range(3)

# A channel, a ring of tokens: the oldest, how many there are, who waits, and where the ring is.
OLDEST, TOKENS, WAITING, RING, RING_END = range(5)
CHANNEL_FIELDS = 5
# A token, with why it has its time.
TOKEN, TOKEN_DONE, TOKEN_STARTED, TOKEN_ISSUED = range(4)
TOKEN_FIELDS = 4

# A watched loop: its trip count, what it touches (QUEUES are ports that have an arbiter), arbiters
# ELSEWHERE, and the state that is kept: where, of which iteration and time, compared how often and
# how often at most, and what was lost until then.
COUNT, MEMBERS, MEMBERS_END, OTHERS, OTHERS_END = range(5)
CHANNELS, CHANNELS_END, PORTS, PORTS_END = range(5, 9)
QUEUES, QUEUES_END, ELSEWHERE, ELSEWHERE_END = range(9, 13)
SEEN, SEEN_AT, SEEN_PS, COMPARED, PATIENCE, LOST_SEEN = range(13, 19)
LOOP_FIELDS = LOST_SEEN + CAUSES
# A member of a loop: process, first and last step in the loop, its counter.
MEMBER, ENTRY, EXIT, COUNTER = range(4)
MEMBER_FIELDS = 4


class Image:
    """The image of a cast at time zero. Channels have room for ``capacity`` tokens."""

    def __init__(
        self, cast: Cast, *, capacity: int, skip_ahead: bool, watched_port: str | None
    ) -> None:
        self.capacity = capacity
        self.processes = cast.processes
        self.cells: list[int] = [0] * HEAD_FIELDS
        self.ports = {port: self._place([0]) for port in cast.ports.values()}
        self.arbitrated = [p for p in cast.ports.values() if isinstance(p, ArbitratedPort)]
        rows = self._stride(len(self.arbitrated), PORT_FIELDS)
        self.ports |= dict(zip(self.arbitrated, rows, strict=True))
        self.devices = {port: self._device(port) for port in cast.devices.values()}
        self.counters = {p: self._place([0] * len(p.counters)) for p in cast.processes}
        self.channels: dict[Channel, int] = {}
        self.rows = self._stride(len(cast.processes), PROCESS_FIELDS)
        self.wakes = self._stride(len(cast.processes) + len(self.arbitrated), 1, fill=NEVER)
        self.scripts = {p: self._place([0] * (len(p.script) * STEP_FIELDS)) for p in cast.processes}
        watched = self._watched(cast) if skip_ahead else []
        self.watches = {self._watch_step(use): self._loop(use) for use in watched}
        for p in cast.processes:
            self._write_script(p)
        for p, row, wake in zip(cast.processes, self.rows, self.wakes, strict=False):
            self._write_process(p, row, wake)
        for port, wake in zip(self.arbitrated, self.wakes[len(self.rows) :], strict=True):
            self._write_port(port, wake)
        free = {port.name: cell for port, cell in self.ports.items()}
        free |= {
            port.name: row[STATE] + (QUIET if port.is_banked else COLUMN_FREE)
            for port, row in self.devices.items()
        }
        self._write_head(free.get(watched_port or "", NOTHING))
        self.array: IntArray = np.array(self.cells, dtype=np.int64)

    def _place(self, values: Iterable[int]) -> int:
        """Append a row; where it begins."""
        begin = len(self.cells)
        self.cells.extend(values)
        return begin

    def _stride(self, count: int, fields: int, fill: int = 0) -> list[int]:
        return [self._place([fill] * fields) for _ in range(count)]

    def _device(self, port: DevicePort) -> tuple[int, ...]:
        """Where its state, its timing and the places of its operands are."""
        vectors = (port.state, port.timing, port.regions.ravel())
        ranges = [end for v in vectors for end in (self._place(v.tolist()), len(self.cells))]
        return tuple(ranges[:-1])

    def _transfer(self, transfer: Transfer) -> tuple[int, ...]:
        assert isinstance(transfer, DeviceTransfer)
        port, access = transfer.port, transfer.access
        *device, regions = self.devices[port]
        region = regions + port.region(access) * port.regions.shape[1]
        return (*device, region, access.size_bytes, int(access.is_write), int(port.is_banked))

    def _channel(self, channel: Channel) -> int:
        if channel not in self.channels:
            ring = self._place([0] * (TOKEN_FIELDS * self.capacity))
            tokens = len(channel.tokens_ps)
            row = (ring, tokens, NOTHING, ring, len(self.cells))
            self.channels[channel] = self._place(row)
        return self.channels[channel]

    def _watched(self, cast: Cast) -> list[LoopUse]:
        """Loops of the compute process that are worth watching."""
        return [
            use
            for use in cast.loops.values()
            if use.loop.count >= FEWEST_ITERATIONS
            and use.members[0].process is self.processes[0]
            and not use.unsteady
        ]

    def _watch_step(self, use: LoopUse) -> int:
        return self._step_at(self.processes[0], use.members[0].last)

    def _step_at(self, process: Process, position: int) -> int:
        return self.scripts[process] + position * STEP_FIELDS

    def _loop(self, use: LoopUse) -> int:
        row_of = dict(zip(self.processes, self.rows, strict=True))
        taking_part = {member.process for member in use.members}
        members = [
            cell
            for m in use.members
            for cell in (
                row_of[m.process],
                self._step_at(m.process, m.first),
                self._step_at(m.process, m.last),
                self.counters[m.process] + use.level,
            )
        ]
        touched = [
            members,
            [row_of[p] for p in self.processes if p not in taking_part],
            [self._channel(channel) for channel in use.channels],
            [self.ports[port] for port in use.ports if not isinstance(port, ArbitratedPort)],
            [self.ports[port] for port in self.arbitrated if port in use.ports],
            [self.ports[port] for port in self.arbitrated if port not in use.ports],
        ]
        ranges = [end for row in touched for end in (self._place(row), len(self.cells))]
        seen = self._place([0] * self._state_width(use))
        return self._place([use.loop.count, *ranges, seen] + [0] * (LOOP_FIELDS - SEEN - 1))

    def _state_width(self, use: LoopUse) -> int:
        """The most cells that the state of a loop takes."""
        counters = sum(len(p.counters) for p in self.processes)
        channels = (1 + self.capacity) * len(use.channels)
        arbitrated = (5 + 2 * len(self.processes)) * len(self.arbitrated)
        return 7 * len(self.processes) + counters + channels + len(use.ports) + arbitrated

    def _write_script(self, process: Process) -> None:
        for position, step in enumerate(process.script):
            at = self._step_at(process, position)
            row = self._step(process, step, at)
            self.cells[at : at + STEP_FIELDS] = row

    def _step(self, process: Process, step: Instruction, at: int) -> tuple[int, ...]:
        match step:
            case Issue(op=op, ports=ports, transfers=transfers):
                requests = [cell for port, *times in ports for cell in (self.ports[port], *times)]
                request, end = self._place(requests), len(self.cells)
                moves = self._place(cell for t in transfers for cell in self._transfer(t))
                return (ISSUE, request, end, op.latency_ps, NOTHING, moves, len(self.cells))
            case Ask(op=op, demands=demands):
                rows = [cell for demand in demands for cell in self._demand(demand)]
                first = self._place(rows)
                return (ASK, first, len(self.cells), op.latency_ps, NOTHING, 0, 0)
            case Put(channel):
                return (PUT, self._channel(channel), 0, 0, NOTHING, 0, 0)
            case Take(channel):
                return (TAKE, self._channel(channel), 0, 0, NOTHING, 0, 0)
            case EndOfLoop(level=level, first=first, count=count):
                back, counter = self._step_at(process, first), self.counters[process] + level
                return (END_OF_LOOP, back, counter, count, self.watches.get(at, NOTHING), 0, 0)
        raise TypeError(f"no operation for {step!r}")

    def _demand(self, demand: Demand) -> tuple[int, ...]:
        first = self._place(c for t in demand.transfers for c in self._transfer(t))
        has_arbiter = int(isinstance(demand.port, ArbitratedPort))
        times = (demand.busy_ps, demand.recovery_ps)
        return (self.ports[demand.port], *times, has_arbiter, first, len(self.cells))

    def _write_port(self, port: ArbitratedPort, wake: int) -> None:
        """Importances as one number each."""
        ranks = [p.rank for p in self.processes]
        order = sorted(ranks, key=lambda rank: port.importance[rank])
        count = len(ranks)
        limit = count if port.arbiter.queue is None else port.arbiter.queue
        row = [0, wake, limit, POLICIES.index(port.arbiter.policy), -1, NOTHING]
        row += [0, self._place([0] * (PLACE_FIELDS * count)), 0, self._place([0] * count)]
        row += [self._place(order.index(rank) for rank in ranks)]
        self.cells[self.ports[port] : self.ports[port] + PORT_FIELDS] = row

    def _write_process(self, process: Process, row: int, wake: int) -> None:
        self.cells[row + POSITION] = self.scripts[process]
        self.cells[row + SCRIPT_END] = self._step_at(process, len(process.script))
        self.cells[row + WAKE] = wake
        self.cells[row + COUNTERS] = self.counters[process]
        self.cells[row + COUNTERS_END] = self.counters[process] + len(process.counters)
        self.cells[row + ADMITTED] = NOTHING

    def _write_head(self, watched: int) -> None:
        self.cells[PROCESSES] = self.rows[0]
        self.cells[PROCESSES_END] = self.rows[-1] + PROCESS_FIELDS
        self.cells[WAKES] = self.wakes[0]
        self.cells[DECISIONS] = self.wakes[0] + len(self.rows)
        self.cells[WAKES_END] = self.wakes[-1] + 1
        self.cells[ARBITRATED] = self.ports[self.arbitrated[0]] if self.arbitrated else NOTHING
        self.cells[WATCHED] = watched
        self.cells[STACK] = self._place([0] * (len(self.processes) + 1))

    def copy_back(self) -> None:
        """The devices' states, as they are now."""
        for port, row in self.devices.items():
            port.state[:] = self.array[row[STATE] : row[STATE_END]]

    def positions(self) -> dict[Process, int]:
        """Where in its script each process is."""
        return {
            p: (int(self.array[row + POSITION]) - self.scripts[p]) // STEP_FIELDS
            for p, row in zip(self.processes, self.rows, strict=True)
        }

    def jams(self) -> Iterator[Jam]:
        """Who waits at ports that have an arbiter."""
        of_row = dict(zip(self.rows, self.processes, strict=True))
        for port in self.arbitrated:
            at = self.ports[port]
            queue, doors = (int(self.array[at + field]) for field in (QUEUE, DOORS))
            waiting = queue + PLACE_FIELDS * int(self.array[at + QUEUED])
            yield Jam(
                port=port.name,
                keeper=of_row.get(int(self.array[at + HOLDER])),
                queued=[of_row[row] for row in self.array[queue:waiting:PLACE_FIELDS]],
                held_back=[
                    of_row[row] for row in self.array[doors : doors + self.array[at + HELD_BACK]]
                ],
            )

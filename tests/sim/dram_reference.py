"""DRAM controllers, written to be read: every cycle, every command, plain lists.

The timing rules are checked from the other side than in the compiled code: here every command
ever issued is remembered, and a command may be issued if no rule forbids it, looking back.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

from arch.dram_device import DramDevice
from arch.timing import COMMANDS, SCOPES


@dataclass(eq=False)
class Request:
    channel: int
    bank: int  # within the channel
    row: int
    is_write: bool
    accepted: int = -1
    end: int = -1
    number: int = -1


@dataclass(eq=False)
class Channel:
    """One channel: what was issued when, open rows, and who waits."""

    device: DramDevice
    log: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    open_row: dict[int, int] = field(default_factory=dict)
    accesses: Counter[int] = field(default_factory=Counter)
    reads: list[Request] = field(default_factory=list)
    writes: list[Request] = field(default_factory=list)
    due: deque[int] = field(default_factory=deque)
    refreshes_started: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    row_hits: int = 0
    served: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        device = self.device
        self.banks = range(device.ranks * device.banks)
        self.queues: list[list[Request]] = [[] for _ in self.banks]
        self.active: list[Request] = []
        self.turn = 0
        self.draining = 0
        self.write_mode = False
        self.row_bus_free = 0
        self.refreshing: tuple[int, ...] = ()
        self.rules: dict[str, list[tuple[str, str, int, int]]] = defaultdict(list)
        for g in device.gates:
            rule = COMMANDS[g.previous], SCOPES[g.scope], g.cycles, g.window
            self.rules[COMMANDS[g.next]].append(rule)

    def concerns(self, scope: str, one: int, other: int) -> bool:
        """Is the bank ``other`` in the scope of a command to the bank ``one``?"""
        device = self.device
        same_rank = one // device.banks == other // device.banks
        same_group = one // device.banks_per_group == other // device.banks_per_group
        return {
            "bank": one == other,
            "group": same_group,
            "rank": same_rank,
            "other_ranks": not same_rank,
        }[scope]

    def may(self, command: str, bank: int, clock: int) -> bool:
        """Does no rule forbid it, looking back at all commands that are recent enough?"""
        for previous, scope, cycles, window in self.rules[command]:
            seen = 0
            for at, other in reversed(self.log[previous]):
                if clock - at >= cycles:
                    break
                seen += self.concerns(scope, bank, other)
                if seen == window:
                    return False
        return True

    def issue(self, command: str, bank: int, row: int, clock: int) -> None:
        self.log[command].append((clock, bank))
        self.counts[command] += 1
        if command in ("RD", "WR", "RDA", "WRA"):
            self.row_hits += self.accesses[bank] > 0
            self.accesses[bank] += 1
        if command == "ACT":
            self.open_row[bank] = row
            self.row_bus_free = clock + self.device.parameters["ACT_BUS"]
        if command in ("PRE", "RDA", "WRA"):
            del self.open_row[bank]
            self.accesses[bank] = 0

    def next_command(self, request: Request) -> str:
        row = self.open_row.get(request.bank)
        if row is None:
            return "ACT"
        if row != request.row:
            return "PRE"
        closing = "A" if self.device.controller.page == "closed" else ""
        return ("WR" if request.is_write else "RD") + closing

    def serve(self, request: Request, clock: int) -> None:
        p = self.device.parameters
        delay = p["CWL"] if request.is_write else p["CL"]
        request.end = clock + delay + p["BURST"]
        self.served.append(request)

    # Refresh

    def refresh_falls_due(self, clock: int) -> None:
        device, how = self.device, self.device.controller.refresh
        if how == "none":
            return
        per_bank = how == "per_bank"
        shared = device.controller.queue == "shared"
        period = device.parameters["REFIPB" if per_bank else "REFI"] // device.ranks
        targets = len(self.banks) if per_bank else device.ranks
        together = device.ranks if shared and not per_bank else 1
        tick = clock + 1 if shared else clock
        if tick and tick % (period * together) == 0:
            for _ in range(together):
                self.due.append(self.refreshes_started % targets)
                self.refreshes_started += 1

    def due_banks(self) -> list[int]:
        size = 1 if self.device.controller.refresh == "per_bank" else self.device.banks
        return [bank for bank in self.banks if bank // size == self.due[0]]

    def refresh_closed(self, banks: list[int], clock: int) -> bool:
        command = "REFPB" if self.device.controller.refresh == "per_bank" else "REF"
        if not self.may(command, banks[0], clock):
            return False
        self.issue(command, banks[0], -1, clock)
        self.due.popleft()
        self.refreshing = ()
        return True

    # A queue per bank

    def bank_queues_cycle(self, clock: int, last: bool) -> None:
        self.refresh_falls_due(clock)
        acted, was_column = self.refresh_step(clock), False
        if not acted:
            acted, was_column = self.bank_queue_command(clock, None)
        if acted and self.device.row_and_column_bus:
            self.bank_queue_command(clock, was_column)
        self.let_in(last)

    def refresh_step(self, clock: int) -> bool:
        if not self.due:
            return False
        banks = self.due_banks()
        self.refreshing = tuple(banks)
        still_open = [bank for bank in banks if bank in self.open_row]
        for bank in still_open:
            if self.may("PRE", bank, clock):
                self.issue("PRE", bank, -1, clock)
                return True
        return not still_open and self.refresh_closed(banks, clock)

    def bank_queue_command(self, clock: int, after_column: bool | None) -> tuple[bool, bool]:
        """(was one issued, was it a column command)"""
        waiting = [r for queue in self.queues for r in queue]
        in_order = self.device.controller.scheduler == "fcfs"
        oldest = min(waiting, key=lambda r: r.number, default=None) if in_order else None
        count = len(self.banks)
        for bank in [(self.turn + 1 + n) % count for n in range(count)]:
            if bank in self.refreshing or (oldest and oldest.bank != bank):
                continue
            for place, request in enumerate(self.queues[bank]):
                command = self.next_command(request)
                if place > 0 and (in_order or command == "PRE"):
                    continue
                if command == "PRE" and not self.may_close(bank):
                    continue
                if not self.may(command, bank, clock):
                    continue
                self.turn = bank
                column = command not in ("ACT", "PRE")
                if column is after_column:
                    return False, False
                self.issue(command, bank, request.row, clock)
                if column:
                    self.queues[bank].remove(request)
                    self.serve(request, clock)
                return True, column
        return False, False

    def may_close(self, bank: int) -> bool:
        if self.device.controller.scheduler == "fcfs":
            return True
        wanted = any(r.row == self.open_row[bank] for r in self.queues[bank])
        return not wanted or self.accesses[bank] >= self.device.controller.row_hit_limit

    def let_in(self, last: bool) -> None:
        controller = self.device.controller
        idle = not any(self.queues)
        if self.draining == 0 and self.writes:
            enough = len(self.writes) > 8 or (last and not self.reads)
            if len(self.writes) == controller.transaction_depth or (enough and idle):
                self.draining = len(self.writes)
        waiting = self.writes if self.draining else self.reads
        for request in waiting:
            if len(self.queues[request.bank]) < controller.queue_depth:
                self.queues[request.bank].append(request)
                self.draining -= waiting is self.writes
                waiting.remove(request)
                return
            if controller.scheduler == "fcfs":
                return

    # One queue for the channel

    def shared_queue_cycle(self, clock: int) -> None:
        self.refresh_falls_due(clock)
        if self.device.row_and_column_bus:
            self.shared_command(clock, lambda command: command not in ("ACT", "PRE"), column=True)
            self.shared_command(clock, lambda command: command in ("ACT", "PRE"), column=False)
        else:
            self.shared_command(clock, lambda command: True, column=False)

    def shared_command(self, clock: int, fits, column: bool) -> None:  # type: ignore[no-untyped-def]
        if not column and clock < self.row_bus_free:
            return
        request = self.oldest_ready(self.active, clock, fits)
        if request is not None:
            self.issue(self.next_command(request), request.bank, request.row, clock)
            self.active.remove(request)
            self.serve(request, clock)
        elif self.due:
            if not column:
                self.shared_refresh(clock)
        else:
            self.from_queue(clock, fits)

    def from_queue(self, clock: int, fits) -> None:  # type: ignore[no-untyped-def]
        queue = self.writes if self.writes_turn() else self.reads
        request = self.oldest_ready(queue, clock, fits)
        if request is None:
            return
        command = self.next_command(request)
        self.issue(command, request.bank, request.row, clock)
        if command == "ACT":
            self.active.append(request)
        if command != "PRE":
            queue.remove(request)
        if command not in ("ACT", "PRE"):
            self.serve(request, clock)

    def oldest_ready(self, queue: list[Request], clock: int, fits) -> Request | None:  # type: ignore[no-untyped-def]
        held = {request.bank for request in self.active}
        if self.device.controller.scheduler == "fcfs":
            queue = queue[:1]
        ready = [
            request
            for request in queue
            if fits(command := self.next_command(request))
            and not (command == "PRE" and request.bank in held)
            and self.may(command, request.bank, clock)
        ]
        return min(ready, key=lambda r: r.number, default=None)

    def writes_turn(self) -> bool:
        depth = self.device.controller.transaction_depth
        if not self.write_mode:
            self.write_mode = len(self.writes) > 0.8 * depth or not self.reads
        elif len(self.writes) < 0.2 * depth and self.reads:
            self.write_mode = False
        return self.write_mode and self.device.controller.scheduler != "fcfs"

    def shared_refresh(self, clock: int) -> None:
        banks = self.due_banks()
        if any(r.bank in banks for r in self.active if r.bank in self.open_row):
            return
        still_open = [bank for bank in banks if bank in self.open_row]
        if not still_open:
            self.refresh_closed(banks, clock)
        elif all(self.may("PRE", bank, clock) for bank in still_open):
            for bank in still_open:
                self.issue("PRE", bank, -1, clock)


@dataclass(frozen=True, kw_only=True)
class Answer:
    cycles: int
    commands: dict[str, int]
    row_hits: int
    latency: int


def simulate(device: DramDevice, requests: list[Request], inject: int, outstanding: int) -> Answer:
    """The whole stream, cycle by cycle."""
    channels = [Channel(device) for _ in range(device.channels)]
    for number, request in enumerate(requests):
        request.number = number
    shared = device.controller.queue == "shared"
    given, clock = 0, 0
    while sum(len(ch.served) for ch in channels) < len(requests):
        flying = sum(not _answered(r, clock) for r in requests[:given])
        for _ in range(inject):
            if given == len(requests) or flying >= outstanding:
                break
            if not _accept(channels, device, requests[given], clock):
                break
            given, flying = given + 1, flying + 1
        for ch in channels:
            if shared:
                ch.shared_queue_cycle(clock)
            else:
                ch.bank_queues_cycle(clock, given == len(requests))
        clock += 1
    counts = sum((ch.counts for ch in channels), Counter())
    front = 2 if shared else 1
    return Answer(
        cycles=max(r.end for r in requests) + 1,
        commands=dict(counts),
        row_hits=sum(ch.row_hits for ch in channels),
        latency=sum(r.end + front - r.accepted for r in requests if not r.is_write),
    )


def _answered(request: Request, clock: int) -> bool:
    if request.is_write:
        return request.accepted + 1 < clock
    return 0 <= request.end < clock


def _accept(channels: list[Channel], device: DramDevice, request: Request, clock: int) -> bool:
    channel = channels[request.channel]
    in_order = device.controller.scheduler == "fcfs"
    waiting = channel.writes if request.is_write and not in_order else channel.reads
    if len(waiting) >= device.controller.transaction_depth:
        return False
    waiting.append(request)
    request.accepted = clock
    return True

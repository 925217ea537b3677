"""From a program and a price list to a tree of priced operations: what the engine runs.

Loops that the program does not need are removed (one iteration; a loop that only holds another
loop becomes one loop), holds are grouped into stages, and every tile operation knows how long
it occupies each port.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from arch.dram_device import DramDevice
from arch.spec import Arbiter, Banks
from mapper.cost import Price
from mapper.program import Compute, Hold, Node, Program, Repeat, TileOp, Work
from sim.ports import Prices, occupancy_ps, port_name, ports_of, sources

#: Where tiles lie in a memory that is simulated in detail: the operand, and whether they are seen
#: from the outside (filled and emptied) or from the inside.
Region = tuple[int, bool]


@dataclass(frozen=True, slots=True)
class DeviceAccess:
    """What a tile operation moves on a memory that is simulated in detail."""

    port: str
    region: Region
    size_bytes: int
    is_write: bool


@dataclass(frozen=True, slots=True)
class PricedOp:
    """A tile operation on idle hardware: occupancy per port (never zero) and result latency.

    ``pauses_ps`` has, for a port that turns around between folds, how long it does so in all,
    and after the last one (``recovery``): the others are part of the occupancy. Ports that
    ``accesses`` go to have their least occupancy, and decide themselves how long they take.
    ``moved_bytes`` is what is on its way in a transfer.
    """

    name: str
    occupancy_ps: tuple[tuple[str, int], ...]
    latency_ps: int
    pauses_ps: tuple[tuple[str, int], ...] = ()
    recovery_ps: int = 0
    accesses: tuple[DeviceAccess, ...] = ()
    moved_bytes: int = 0
    energy_pj: float = 0.0

    def recovery_of(self, port: str) -> int:
        """How long the port is not ready for another request after this one."""
        return self.recovery_ps if any(port == paused for paused, _ in self.pauses_ps) else 0


@dataclass(frozen=True, slots=True)
class Stage:
    """All holds of one operand in one memory. They share ``slots`` and take turns in order."""

    operand: int
    memory: str
    slots: int

    def __str__(self) -> str:
        return f"operand {self.operand} in {self.memory}"


@dataclass(frozen=True, slots=True, eq=False)
class ComputeStep:
    op: PricedOp


@dataclass(frozen=True, slots=True, eq=False)
class HeldTile:
    """``inner`` are the stages that this tile feeds, or that are emptied into it."""

    stage: Stage
    load: PricedOp | None
    store: PricedOp | None
    inner: tuple[Stage, ...]
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """``number`` is unique in the schedule, in program order."""

    number: int
    label: str
    count: int
    body: tuple[Step, ...]


Step = ComputeStep | HeldTile | Loop


@dataclass(frozen=True, slots=True)
class BankedPort:
    """A port of a memory with several banks: its rate, and how much room the tiles of each operand
    have (its slots), in program order."""

    banks: Banks
    ps_per_bit: Fraction
    rooms: Mapping[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """``stages`` in program order; ``ports`` in the order in which they are first used.

    ``devices`` are ports of memories that are simulated in detail, ``operand_bytes`` is how much
    room each operand has there. ``arbiters`` are those of ports that are more than first come,
    first served, ``banked`` are ports of memories that have several banks.
    """

    body: tuple[Step, ...]
    stages: tuple[Stage, ...]
    ports: tuple[str, ...]
    devices: Mapping[str, DramDevice] = field(default_factory=dict)
    operand_bytes: Mapping[int, int] = field(default_factory=dict)
    arbiters: Mapping[str, Arbiter] = field(default_factory=dict)
    banked: Mapping[str, BankedPort] = field(default_factory=dict)


#: The operand of what a computation moves by itself, of whatever operands.
ANY_OPERAND = -1


def price_operation(
    op: TileOp, prices: Prices, operand: int = ANY_OPERAND, held_in: str = ""
) -> PricedOp:
    """``held_in`` is the memory that a transfer fills or empties."""
    total = op.totals()
    latency = max((_latency_ps(prices[component]) for component in sources(total)), default=0)
    latency += sum(prices[component].transit_ps for component in total)
    busy = occupancy_ps(total, prices)
    paused: dict[str, int] = {}
    recovery = 0
    for component, work in total.items():
        if work.folds and prices[component].turnaround_ps:
            recovery = prices[component].turnaround_ps
            paused[component] = work.folds * recovery
            busy[component] = busy.get(component, 0) + paused[component] - recovery
    return PricedOp(
        name=op.name,
        occupancy_ps=tuple(busy.items()),
        latency_ps=latency,
        pauses_ps=tuple(paused.items()),
        recovery_ps=recovery,
        accesses=tuple(_accesses(total, prices, operand, held_in)),
        moved_bytes=_moved_by(total),
        energy_pj=math.fsum(prices[name].energy_pj(work) for name, work in total.items()),
    )


def _moved_by(total: Mapping[str, Work]) -> int:
    """Bytes of a transfer; what a computation reads and writes is not on its way."""
    if any(work.steps for work in total.values()):
        return 0
    return math.ceil(sum(work.read_bits for work in total.values()) / 8)


def _latency_ps(price: Price) -> int:
    """Without what a simulated device says itself."""
    return price.latency_ps - (0 if price.device is None else price.device.least_latency_ps)


def _accesses(
    works: Mapping[str, Work], prices: Prices, operand: int, held_in: str
) -> Iterator[DeviceAccess]:
    for component, work in works.items():
        price = prices[component]
        if price.device is None and price.banks is None:
            continue
        region = (operand, component == held_in)
        for bits, is_write in ((work.read_bits, False), (work.write_bits, True)):
            port = port_name(component, _side(price, is_write=is_write))
            if bits:
                yield DeviceAccess(port, region, math.ceil(bits / 8), is_write)


def _side(price: Price, *, is_write: bool) -> str:
    if price.shared_port:
        return ""
    return "write" if is_write else "read"


def busy_ps(steps: tuple[Step, ...]) -> Counter[str]:
    """How long the steps keep each port busy in all, whenever that may be; without pauses."""
    total: Counter[str] = Counter()
    for count, op in operations(steps):
        for port, busy in op.occupancy_ps:
            total[port] += count * busy
        for port, paused in op.pauses_ps:
            total[port] -= count * (paused - op.recovery_ps)
    return total


def paused_ps(steps: tuple[Step, ...], port: str) -> int:
    """How long the steps let a port turn around in all, after the last one included."""
    return sum(count * dict(op.pauses_ps).get(port, 0) for count, op in operations(steps))


def build_schedule(
    program: Program, prices: Prices, operand_bytes: Mapping[int, int] | None = None
) -> Schedule:
    """``operand_bytes`` is the size of each operand; without it, of all that is moved of it."""
    builder = _Builder(prices)
    body = builder.steps(program.body)
    devices = {name: p.device for name, p in prices.items() if p.device is not None}
    moved = _moved_bytes(body) if devices else {}
    return Schedule(
        body=body,
        stages=tuple(builder.stages.values()),
        ports=tuple(builder.ports),
        devices={name: device for name, device in devices.items() if name in builder.ports},
        operand_bytes={o: (operand_bytes or {}).get(o, total) for o, total in moved.items()},
        arbiters=_arbiters(prices, builder.ports),
        banked=_banked(prices, builder.ports, _rooms(body)),
    )


def _banked(
    prices: Prices, used: Mapping[str, None], rooms: Mapping[str, Mapping[int, int]]
) -> dict[str, BankedPort]:
    found = {}
    for component, price in prices.items():
        if price.banks is None:
            continue
        for is_write in (False, True):
            port = port_name(component, _side(price, is_write=is_write))
            rate = price.write_ps_per_bit if is_write else price.read_ps_per_bit
            if port in used:
                found[port] = BankedPort(price.banks, rate, rooms.get(component, {}))
    return found


def _rooms(body: tuple[Step, ...]) -> dict[str, dict[int, int]]:
    """Memory -> operand -> bytes of all its slots there, each as large as its largest transfer."""
    rooms: dict[str, dict[int, int]] = {}
    for tile in _tiles(body):
        of_memory = rooms.setdefault(tile.stage.memory, {})
        sizes = [
            access.size_bytes
            for op in (tile.load, tile.store)
            if op is not None
            for access in op.accesses
            if access.region == (tile.stage.operand, True)
        ]
        needed = tile.stage.slots * max(sizes, default=0)
        of_memory[tile.stage.operand] = max(of_memory.get(tile.stage.operand, 0), needed)
    return rooms


def _tiles(body: tuple[Step, ...]) -> Iterator[HeldTile]:
    for step in body:
        match step:
            case HeldTile():
                yield step
                yield from _tiles(step.body)
            case Loop():
                yield from _tiles(step.body)
            case ComputeStep():
                pass


def _arbiters(prices: Prices, used: Mapping[str, None]) -> dict[str, Arbiter]:
    """In the order in which the ports are first used."""
    found = {
        port: price.arbiter
        for component, price in prices.items()
        if not price.arbiter.is_plain
        for port in ports_of(component)
    }
    return {port: found[port] for port in used if port in found}


def operations(steps: tuple[Step, ...]) -> Iterator[tuple[int, PricedOp]]:
    """Each operation with how often it runs."""
    for step in steps:
        match step:
            case ComputeStep(op):
                yield 1, op
            case HeldTile(load=load, store=store, body=body):
                yield from ((1, op) for op in (load, store) if op is not None)
                yield from operations(body)
            case Loop(count=count, body=body):
                yield from ((count * times, op) for times, op in operations(body))


def _moved_bytes(body: tuple[Step, ...]) -> Counter[int]:
    """What devices move of each operand."""
    total: Counter[int] = Counter()
    for count, op in operations(body):
        for access in op.accesses:
            total[access.region[0]] += count * access.size_bytes
    return total


@dataclass(slots=True)
class _Builder:
    prices: Prices
    stages: dict[tuple[int, str], Stage] = field(default_factory=dict)
    ports: dict[str, None] = field(default_factory=dict)
    ops: dict[TileOp, PricedOp] = field(default_factory=dict)
    loops: int = 0

    def steps(self, nodes: tuple[Node, ...]) -> tuple[Step, ...]:
        return tuple(step for node in nodes for step in self._step(node))

    def _step(self, node: Node) -> tuple[Step, ...]:
        match node:
            case Compute(op):
                return (ComputeStep(self._priced(op)),)
            case Hold():
                return (self._held(node),)
            case Repeat():
                return self._loop(node)

    def _loop(self, node: Repeat) -> tuple[Step, ...]:
        nest = [node]
        while len(node.body) == 1 and isinstance(inner := node.body[0], Repeat):
            node = inner
            nest.append(node)
        count = math.prod(repeat.count for repeat in nest)
        if count == 1:
            return self.steps(node.body)
        self.loops += 1
        number = self.loops
        body = self.steps(node.body)
        label = ", ".join(repeat.dim for repeat in nest if repeat.count > 1)
        return (Loop(number, label, count, body),) if body and count else ()

    def _held(self, node: Hold) -> HeldTile:
        stage = self._stage(node)
        load = None if node.load is None else self._priced(node.load, node)
        body = self.steps(node.body)
        store = None if node.store is None else self._priced(node.store, node)
        return HeldTile(stage, load, store, _inner_stages(stage.operand, body), body)

    def _stage(self, node: Hold) -> Stage:
        stage = Stage(node.operand, node.memory, node.slots)
        known = self.stages.setdefault((node.operand, node.memory), stage)
        if known != stage:
            raise ValueError(f"{stage} has both {known.slots} and {stage.slots} slots")
        return known

    def _priced(self, op: TileOp, hold: Hold | None = None) -> PricedOp:
        if op not in self.ops:
            where = (ANY_OPERAND, "") if hold is None else (hold.operand, hold.memory)
            self.ops[op] = price_operation(op, self.prices, *where)
            self.ports |= dict.fromkeys(port for port, _ in self.ops[op].occupancy_ps)
        return self.ops[op]


def _inner_stages(operand: int, body: tuple[Step, ...]) -> tuple[Stage, ...]:
    """The outermost stages of ``operand`` within ``body``."""
    found: dict[Stage, None] = {}
    for step in body:
        match step:
            case HeldTile(stage=stage) if stage.operand == operand:
                found[stage] = None
            case HeldTile() | Loop():
                found |= dict.fromkeys(_inner_stages(operand, step.body))
            case ComputeStep():
                pass
    return tuple(found)

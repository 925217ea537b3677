"""A second, much simpler implementation of the event semantics, to compare the engine with.

The program is unrolled completely into one list of steps per process. A step waits for earlier
steps (their tokens), requests ports, and is done. Among all requests whose time is known the
earliest goes first; at equal times that of the process of lower rank. Every port, a plain one as
well, has a list of those who wait; at each time all requests come first, then ports that are free
choose. No SimPy, no loops, no skipping.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from arch.spec import REQUESTERS, Arbiter
from mapper.cost import Price
from mapper.program import Compute, Hold, Node, Program, Repeat, TileOp, Work
from sim.ports import port_name
from sim.schedule import build_schedule

StageKey = tuple[int, str]


@dataclass(slots=True, eq=False)
class Step:
    """``request`` is None for a step that only waits for others."""

    after: list[Step]
    request: dict[str, int] | None = None
    latency_ps: int = 0
    done_ps: int | None = None
    token_ps: int = 0


@dataclass(slots=True, eq=False)
class Actor:
    """One process: its steps, how many are done, when the last was, and its last token."""

    steps: list[Step] = field(default_factory=list)
    done: int = 0
    time_ps: int = 0
    token_ps: int = 0

    def next_step(self) -> Step | None:
        """The next step if everything that it waits for has happened."""
        if self.done == len(self.steps):
            return None
        step = self.steps[self.done]
        return step if all(s.done_ps is not None for s in step.after) else None

    def finish(self, step: Step, time_ps: int) -> None:
        self.time_ps = step.done_ps = time_ps
        self.token_ps = step.token_ps = max(self.token_ps, time_ps + step.latency_ps)
        self.done += 1


class Unrolled:
    """The actors of a program: compute first, then storers, then loaders."""

    def __init__(self, program: Program, prices: Mapping[str, Price]) -> None:
        self.prices = prices
        self.emptied = set(emptied_stages(program.body))
        self.freed: dict[StageKey, list[Step]] = {}
        self.compute = Actor()
        self.storers: dict[StageKey, Actor] = {}
        self.loaders: dict[StageKey, Actor] = {}
        self._walk(program.body, {}, {})

    def actors(self) -> list[Actor]:
        return [self.compute, *self.storers.values(), *self.loaders.values()]

    def _add(self, actor: Actor, op: TileOp | None, after: list[Step]) -> Step:
        if after or op is None:
            actor.steps.append(Step(after))
        if op is not None:
            actor.steps.append(self._request(op))
        return actor.steps[-1]

    def _request(self, op: TileOp) -> Step:
        total: dict[str, Work] = {}
        for component, work in op.work:
            total[component] = total.get(component, Work()) + work
        busy = {
            port_name(component, port): ps
            for component, work in total.items()
            for port, ps in self.prices[component].occupancy(work).items()
            if ps
        }
        return Step([], busy, _latency(total, self.prices))

    def _walk(
        self, nodes: tuple[Node, ...], tiles: Mapping[int, Step], stores: dict[int, list[Step]]
    ) -> None:
        """``tiles`` has the load of the enclosing tile of each operand; ``stores`` collects."""
        for node in nodes:
            match node:
                case Compute(op):
                    self._add(self.compute, op, [])
                case Repeat(count=count, body=body):
                    for _ in range(count):
                        self._walk(body, tiles, stores)
                case Hold():
                    self._hold(node, tiles, stores)

    def _hold(self, node: Hold, tiles: Mapping[int, Step], stores: dict[int, list[Step]]) -> None:
        stage = (node.operand, node.memory)
        loader = self.loaders.setdefault(stage, Actor())
        if stage in self.emptied:
            self.storers.setdefault(stage, Actor())
        freed = self.freed.setdefault(stage, [])
        slot = freed[-node.slots :][:1] if len(freed) >= node.slots else []
        outer = [tiles[node.operand]] if node.operand in tiles else []
        load = self._add(loader, None, slot + outer)
        if node.load is not None:
            load = self._add(loader, node.load, [])
        self._add(self.compute, None, [load])
        inner: dict[int, list[Step]] = {}
        self._walk(node.body, {**tiles, node.operand: load}, inner)
        end = self._add(self.compute, None, [])
        if stage in self.emptied:
            end = self._add(self.storers[stage], node.store, [end, *inner.pop(node.operand, [])])
            stores.setdefault(node.operand, []).append(end)
        for operand, steps in inner.items():
            stores.setdefault(operand, []).extend(steps)
        freed.append(end)


def _latency(total: Mapping[str, Work], prices: Mapping[str, Price]) -> int:
    read = [name for name, work in total.items() if work.read_bits or work.steps]
    return max((prices[name].latency_ps for name in read or list(total)[:1]), default=0)


@dataclass(slots=True, eq=False)
class Visit:
    """An actor's request on its way through its ports: those asked, those that have begun."""

    actor: Actor
    rank: int
    step: Step
    ports: list[str]
    asked: int = 0
    ends: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Counter:
    """A port: who waits in it (since when somebody does) and before it, who keeps it, and who was
    served last."""

    arbiter: Arbiter
    free_ps: int = 0
    since_ps: int = 0
    waiting: list[Visit] = field(default_factory=list)
    outside: list[Visit] = field(default_factory=list)
    kept_by: Visit | None = None
    last: int = -1

    @property
    def is_full(self) -> bool:
        return self.arbiter.queue is not None and len(self.waiting) == self.arbiter.queue

    def choose(self, kinds: list[str]) -> Visit:
        if self.arbiter.policy == "fifo":
            return self.waiting[0]
        by_rank = sorted(self.waiting, key=lambda visit: visit.rank)
        if self.arbiter.policy == "round_robin":
            return next((v for v in by_rank if v.rank > self.last), by_rank[0])
        order = [*self.arbiter.order, *(k for k in REQUESTERS if k not in self.arbiter.order)]
        listed = len(self.arbiter.order)
        return min(by_rank, key=lambda visit: min(order.index(kinds[visit.rank]), listed))


class StuckError(Exception):
    """Actors wait for each other."""


class Playback:
    """Time goes from request to request and from choice to choice."""

    def __init__(
        self, program: Program, prices: Mapping[str, Price], port_order: Sequence[str]
    ) -> None:
        unrolled = Unrolled(program, prices)
        self.actors = unrolled.actors()
        self.kinds = ["compute", *("store" for _ in unrolled.storers)]
        self.kinds += ["load"] * len(unrolled.loaders)
        self.busy: set[int] = set()
        self.counters = {
            port: Counter(prices[port.partition(".")[0]].arbiter) for port in port_order
        }

    def run(self) -> int:
        while any(_wait(actor) for actor in self.actors):
            pass
        while (event := self._next()) is not None:
            now, number = event
            if number < len(self.actors):
                self._request(number, now)
            else:
                self._choose(list(self.counters)[number - len(self.actors)], now)
            while any(_wait(actor) for actor in self.actors):
                pass
        if any(actor.done != len(actor.steps) for actor in self.actors):
            raise StuckError
        return max(max(actor.time_ps, actor.token_ps) for actor in self.actors)

    def _next(self) -> tuple[int, int] | None:
        times = [
            (actor.time_ps, rank)
            for rank, actor in enumerate(self.actors)
            if rank not in self.busy and actor.next_step() is not None
        ]
        times += [
            (max(counter.free_ps, counter.since_ps), number)
            for number, counter in enumerate(self.counters.values(), len(self.actors))
            if counter.waiting and counter.kept_by is None
        ]
        return min(times, default=None)

    def _request(self, rank: int, now: int) -> None:
        actor = self.actors[rank]
        step = actor.next_step()
        assert step is not None
        assert step.request is not None
        visit = Visit(actor, rank, step, list(step.request))
        self.busy.add(rank)
        self._go_in(visit, now)
        self._finish_if_over(visit, now)

    def _go_in(self, visit: Visit, now: int) -> None:
        while visit.asked < len(visit.ports):
            counter = self.counters[visit.ports[visit.asked]]
            if counter.is_full:
                counter.outside.append(visit)
                return
            if not counter.waiting:
                counter.since_ps = now
            counter.waiting.append(visit)
            visit.asked += 1
        for port, end in visit.ends.items():
            counter = self.counters[port]
            if counter.kept_by is visit:
                counter.kept_by = None
                visit.ends[port] = counter.free_ps = max(end, now)

    def _choose(self, port: str, now: int) -> None:
        counter = self.counters[port]
        visit = counter.choose(self.kinds)
        counter.waiting.remove(visit)
        counter.last = visit.rank
        assert visit.step.request is not None
        visit.ends[port] = counter.free_ps = now + visit.step.request[port]
        if visit.asked < len(visit.ports):
            counter.kept_by = visit
        while counter.outside and not counter.is_full:
            self._go_in(counter.outside.pop(0), now)
        self._finish_if_over(visit, now)

    def _finish_if_over(self, visit: Visit, now: int) -> None:
        if len(visit.ends) == len(visit.ports):
            self.busy.remove(visit.rank)
            visit.actor.finish(visit.step, max([now, *visit.ends.values()]))


def reference_latency_ps(program: Program, prices: Mapping[str, Price]) -> int:
    """Ports choose in the order in which the program first uses them."""
    return Playback(program, prices, build_schedule(program, prices).ports).run()


def _wait(actor: Actor) -> bool:
    """Do the next step if it requests nothing and all that it waits for is known."""
    step = actor.next_step()
    if step is None or step.request is not None:
        return False
    actor.finish(step, max([actor.time_ps, *(earlier.token_ps for earlier in step.after)]))
    return True


def emptied_stages(nodes: tuple[Node, ...]) -> Iterator[StageKey]:
    """Stages with a store (the programs to compare store at every level or at none)."""
    for node in nodes:
        match node:
            case Repeat(body=body):
                yield from emptied_stages(body)
            case Hold():
                yield from emptied_stages(node.body)
                if node.store is not None:
                    yield node.operand, node.memory
            case Compute():
                pass

"""A second, much simpler implementation of the event semantics, to compare the engine with.

The program is unrolled completely into one list of steps per process. A step waits for earlier
steps (their tokens), requests ports, and is done. Among all requests whose time is known the
earliest goes first; at equal times that of the process of lower rank. No SimPy, no loops, no
skipping.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mapper.cost import Price
from mapper.program import Compute, Hold, Node, Program, Repeat, TileOp, Work

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
            component + port: ps
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
    return max((prices[component].latency_ps for component in total), default=0)


def reference_latency_ps(program: Program, prices: Mapping[str, Price]) -> int:
    actors = Unrolled(program, prices).actors()
    free: dict[str, int] = {}
    while True:
        while any(_wait(actor) for actor in actors):
            pass
        ready = [(a.time_ps, rank) for rank, a in enumerate(actors) if a.next_step() is not None]
        if not ready:
            break
        now, rank = min(ready)
        step = actors[rank].next_step()
        assert step is not None
        assert step.request is not None
        for port, busy in step.request.items():
            free[port] = max(free.get(port, 0), now) + busy
        actors[rank].finish(step, max((free[port] for port in step.request), default=now))
    assert all(actor.done == len(actor.steps) for actor in actors), "deadlock"
    return max(max(actor.time_ps, actor.token_ps) for actor in actors)


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

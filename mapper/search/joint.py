"""Where to cut a network into units and which core runs each, decided together.

Operators stand in a fixed order. A *choice* is a way to run some neighbouring ones as a unit, in
so many tiles. A way through the order takes choices one after the other and puts each on a core:
its tiles follow each other in equal times, behind what the core had before, and each waits for the
tiles of other units that it reads from. All cores share a port, busy for the sum of what units
need of it.

Ways to the same position whose results are still read from the same units are compared: one that
has no core free later, no tile done later and nothing spent more makes the other superfluous.
Where no more than ``most_labels`` are left at every position the best way is found exactly; where
more are, the most promising are followed, and what was left out says how far the result can be.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import add

import numpy as np

from mapper.search.cut_choices import Cuts, Ends
from mapper.search.paths import ends_after, least_value, longest_latency_ps, within

#: Ways followed per position.
MOST_LABELS = 500
#: In a first pass, whose result spares the second one what cannot be better.
QUICK_LABELS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class JointCut:
    """Choices in order; ``chosen[i]`` runs on ``cores[i]``."""

    chosen: tuple[int, ...]
    cores: tuple[int, ...]
    latency_ps: int
    dynamic_pj: float
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class _Label:
    """A way to run the operators before a position."""

    free: tuple[int, ...]
    done: dict[int, Ends]
    dynamic_pj: float
    shared_ps: int
    bound: float
    last: tuple[int, int]
    before: _Label | None

    def way(self) -> list[tuple[int, int]]:
        steps: list[tuple[int, int]] = []
        label: _Label | None = self
        while label is not None and label.before is not None:
            steps.append(label.last)
            label = label.before
        return steps[::-1]

    def vector(self, live: Sequence[int], *, with_energy: bool) -> list[float]:
        """All that a way can be better in; times before a core is free are as good as that."""
        first = min(self.free)
        times = [max(end, first) for choice in live for end in self.done[choice]]
        energy = [self.dynamic_pj] if with_energy else []
        return [*sorted(self.free), self.shared_ps, *energy, *times]


class _Rest:
    """The least that operators from each position on take, however they are cut into what is kept:
    work, time of the shared port, energy."""

    def __init__(self, cuts: Cuts, kept: Collection[int]) -> None:
        self.starting = [
            [c for c in cuts.starting[at] if c in kept] for at in range(cuts.operators)
        ]
        self.cuts = cuts
        self.busy = self._least([choice.busy_ps for choice in cuts.choices])
        self.shared = self._least([choice.shared_ps for choice in cuts.choices])
        self.dynamic = self._least([choice.dynamic_pj for choice in cuts.choices])

    def _least(self, each: Sequence[float]) -> list[float]:
        cuts = self.cuts
        least = [0.0] * (cuts.operators + 1)
        for at in range(cuts.operators - 1, -1, -1):
            ways = (each[c] + least[cuts.choices[c].end] for c in self.starting[at])
            least[at] = min(ways, default=math.inf)
        return least


def best_cut(
    cuts: Cuts, known: float = math.inf, most_labels: int = MOST_LABELS
) -> tuple[JointCut | None, float]:
    """The best way whose value is below ``known``, if there is one, and a value that no way of
    choosing beats (``known`` at most)."""
    quick = _Search(cuts, known, QUICK_LABELS)
    found = quick.solve()
    if quick.dropped == math.inf:
        return found, found.value if found else known
    search = _Search(cuts, found.value if found else known, most_labels)
    better = search.solve() or found
    value = better.value if better else known
    return better, min(value, max(search.dropped, least_value(cuts)))


class _Search:
    """One pass over the positions. ``dropped`` is the least bound of what was left out."""

    def __init__(self, cuts: Cuts, known: float, most_labels: int) -> None:
        self.cuts = cuts
        self.paths = within(cuts, longest_latency_ps(cuts, known))
        self.rest = _Rest(cuts, self.paths.kept if self.paths else ())
        self.tails = self.paths.tails if self.paths else {}
        self.known = known
        self.most_labels = most_labels
        self.dropped = math.inf

    def solve(self) -> JointCut | None:
        cuts = self.cuts
        waiting: list[list[_Label]] = [[] for _ in range(cuts.operators + 1)]
        waiting[0] = [_Label((0,) * cuts.cores, {}, 0.0, 0, 0.0, (0, 0), None)]
        for at in range(cuts.operators):
            for label in self._followed(waiting[at]):
                for after in self._steps(label, at):
                    waiting[cuts.choices[after.last[0]].end].append(after)
            waiting[at] = []
        best = min(waiting[-1], key=_promise, default=None)
        return None if best is None else self._result(best)

    def _result(self, label: _Label) -> JointCut:
        way = label.way()
        latency = max(*label.free, label.shared_ps)
        return JointCut(
            chosen=tuple(number for number, _ in way),
            cores=tuple(core for _, core in way),
            latency_ps=latency,
            dynamic_pj=label.dynamic_pj,
            value=self.cuts.value(latency, label.dynamic_pj),
        )

    def _steps(self, label: _Label, at: int) -> Iterator[_Label]:
        """Every choice that can come next, on every core (one of those free at one time)."""
        different = {time: core for core, time in reversed(list(enumerate(label.free)))}
        kept: dict[int, dict[int, Ends]] = {}
        for number in self.rest.starting[at]:
            choice = self.cuts.choices[number]
            ready = self.cuts.ready(number, label.done)
            if choice.end not in kept:
                kept[choice.end] = self._read_after(label, choice.end)
            for free, core in different.items():
                ends = ends_after(ready, free, choice)
                after = self._after(label, (number, core), ends, kept[choice.end])
                if after is not None:
                    yield after

    def _read_after(self, label: _Label, at: int) -> dict[int, Ends]:
        """Of units that are still read from there on."""
        last_read = self.cuts.last_read
        return {number: ends for number, ends in label.done.items() if last_read[number] >= at}

    def _after(
        self, label: _Label, taken: tuple[int, int], ends: Ends, kept: dict[int, Ends]
    ) -> _Label | None:
        """``None`` if it cannot end below what is known."""
        number, core = taken
        cuts, rest, choice = self.cuts, self.rest, self.cuts.choices[number]
        free = (*label.free[:core], ends[-1], *label.free[core + 1 :])
        done = {**kept, number: ends} if cuts.last_read[number] >= choice.end else kept
        dynamic = label.dynamic_pj + choice.dynamic_pj
        shared = label.shared_ps + choice.shared_ps
        tails = self.tails
        chains = [max(map(add, done[c], tails[c])) for c in done]
        evenly = -(-(sum(free) + rest.busy[choice.end]) // cuts.cores)
        latency = max(evenly, shared + rest.shared[choice.end], *free, *chains)
        if latency == math.inf:
            return None
        bound = cuts.value(int(latency), dynamic + rest.dynamic[choice.end])
        if bound >= self.known:
            return None
        return _Label(free, done, dynamic, shared, bound, taken, label)

    def _followed(self, labels: list[_Label]) -> list[_Label]:
        """Labels that no other makes superfluous, the most promising of them."""
        groups: dict[tuple[int, ...], list[_Label]] = {}
        for label in labels:
            if label.bound < self.known:
                groups.setdefault(tuple(sorted(label.done)), []).append(label)
        kept = [label for key, group in groups.items() for label in self._front(key, group)]
        kept.sort(key=_promise)
        for label in kept[self.most_labels :]:
            self.dropped = min(self.dropped, label.bound)
        return kept[: self.most_labels]

    def _front(self, live: tuple[int, ...], labels: list[_Label]) -> list[_Label]:
        labels = sorted(labels, key=_promise)
        with_energy = self.cuts.objective != "latency"
        rows = np.array([label.vector(live, with_energy=with_energy) for label in labels])
        front = np.empty_like(rows)
        kept: list[_Label] = []
        for label, row in zip(labels, rows, strict=True):
            if not (front[: len(kept)] <= row).all(axis=1).any():
                front[len(kept)] = row
                kept.append(label)
        return kept


def _promise(label: _Label) -> tuple[float, float]:
    return label.bound, label.dynamic_pj

"""What no way of cutting and placing can beat: longest paths of tiles, work, and the shared port.

A way takes one choice for every operator. A tile waits for the last tile that it reads of the
choice taken for each operator that it reads from: at least for the one that would be done first,
whichever is taken. So every tile has an earliest end and a least time from its end to the end of
all, and a choice that cannot be within a limit is in no way that is. What is left without it has
later ends, longer rests, more work and more traffic, until nothing changes or some operator has no
choice left: then the limit is below every way's time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mapper.search.cut_choices import Choice, Cuts, Ends

#: Weights of the port beside work that is shared evenly, in so many steps: a way takes at least
#: as long as any mixture of both.
MIXTURES = 4
#: Limits are tried down to this share of the least one.
PRECISION = 1e-4
#: Steps of the latency in which the least energy for it is looked up.
STEP = 0.02


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paths:
    """Choices that may be part of a way within the limit; per tile the earliest ends, and the least
    times from there to the end of all."""

    kept: frozenset[int]
    ends: dict[int, Ends]
    tails: dict[int, Ends]


def within(cuts: Cuts, limit_ps: float) -> Paths | None:
    """``None`` if no way ends by the limit."""
    kept = frozenset(range(len(cuts.choices)))
    while True:
        kept = _connected(cuts, kept)
        if not kept:
            return None
        ends, tails = _ends(cuts, kept), _tails(cuts, kept)
        through = {
            number: max(map(sum, zip(ends[number], tails[number], strict=True))) for number in kept
        }
        late = {number for number in kept if through[number] > limit_ps}
        late |= _too_much(cuts, kept, limit_ps)
        if not late:
            return Paths(kept=kept, ends=ends, tails=tails)
        kept -= late


def least_latency_ps(cuts: Cuts) -> int:
    """A time that no way is below, as close as limits can be told apart."""
    low, high = 0, sum(max(c.busy_ps, c.shared_ps) for c in cuts.choices) + 1
    while high - low > PRECISION * high:
        middle = (low + high) // 2
        if within(cuts, middle) is None:
            low = middle + 1
        else:
            high = middle
    return low


def least_value(cuts: Cuts) -> float:
    """An objective that no way is below: of every stretch of latencies its least one, with the
    least energy of a way that may end by the greatest one."""
    everything = _cheapest(cuts, frozenset(range(len(cuts.choices))))
    latency, least = least_latency_ps(cuts), math.inf
    while cuts.value(latency, everything) < least:
        longest = max(latency + 1, math.floor(latency * (1 + STEP)))
        found = within(cuts, longest)
        if found is not None:
            least = min(least, cuts.value(latency, _cheapest(cuts, found.kept)))
        if cuts.objective == "latency":
            return least if found is not None else cuts.value(latency, everything)
        latency = longest
    return least


def longest_latency_ps(cuts: Cuts, value: float) -> float:
    """No way that takes longer has a lower objective."""
    if value == math.inf:
        return math.inf
    energy = _cheapest(cuts, frozenset(range(len(cuts.choices))))
    low, high = 0, sum(c.busy_ps + c.shared_ps for c in cuts.choices) + 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cuts.value(middle, energy) <= value else (low, middle - 1)
    return low


def _connected(cuts: Cuts, kept: frozenset[int]) -> frozenset[int]:
    """Those that are on some way through all operators."""
    reached, leads = {0}, {cuts.operators}
    order = sorted(kept, key=lambda number: cuts.choices[number].start)
    for number in order:
        if cuts.choices[number].start in reached:
            reached.add(cuts.choices[number].end)
    for number in reversed(order):
        if cuts.choices[number].end in leads:
            leads.add(cuts.choices[number].start)
    chosen = ((number, cuts.choices[number]) for number in order)
    return frozenset(n for n, c in chosen if c.start in reached and c.end in leads)


def _ends(cuts: Cuts, kept: frozenset[int]) -> dict[int, Ends]:
    ends: dict[int, Ends] = {}
    for number in sorted(kept, key=lambda n: cuts.choices[n].start):
        choice = cuts.choices[number]
        ready = [0] * choice.tiles
        for others in _alternatives(cuts, kept, number, cuts.sources[number]):
            columns = [_ready(cuts, before, number, ends) for before in others]
            ready = [max(*pair) for pair in zip(ready, map(min, *columns, columns[0]), strict=True)]
        ends[number] = ends_after(ready, 0, choice)
    return ends


def _tails(cuts: Cuts, kept: frozenset[int]) -> dict[int, Ends]:
    tails: dict[int, Ends] = {}
    for number in sorted(kept, key=lambda n: -cuts.choices[n].start):
        choice = cuts.choices[number]
        rest = [0] * choice.tiles
        for others in _alternatives(cuts, kept, number, cuts.readers[number]):
            columns = [_rest(cuts, number, after, tails) for after in others]
            rest = [max(*pair) for pair in zip(rest, map(min, *columns, columns[0]), strict=True)]
        for tile in range(choice.tiles - 2, -1, -1):
            rest[tile] = max(rest[tile], choice.tile_ps + rest[tile + 1])
        tails[number] = tuple(rest)
    return tails


def _alternatives(
    cuts: Cuts, kept: frozenset[int], number: int, related: Iterable[int]
) -> Iterable[list[int]]:
    """For each operator of a related choice, all that may be taken for it beside this one."""
    mine = cuts.choices[number]
    operators = {at for other in related for at in cuts.span(other)}
    for at in operators:
        apart = [
            other
            for other in cuts.covering[at]
            if other in kept and not cuts.choices[other].overlaps(mine)
        ]
        if apart:
            yield apart


def _ready(cuts: Cuts, before: int, number: int, ends: dict[int, Ends]) -> Sequence[int]:
    waits = cuts.waits.get((before, number))
    if waits is None:
        return (0,) * cuts.choices[number].tiles
    return [ends[before][last] if last >= 0 else 0 for last in waits]


def _rest(cuts: Cuts, number: int, after: int, tails: dict[int, Ends]) -> Sequence[int]:
    """From the end of each tile, through the first tile of a reader that waits for it."""
    waits = cuts.waits.get((number, after))
    tiles = range(cuts.choices[number].tiles)
    if waits is None:
        return (0,) * len(tiles)
    first = (bisect_left(waits, tile) for tile in tiles)
    tile_ps = cuts.choices[after].tile_ps
    return [tile_ps + tails[after][tile] if tile < len(waits) else 0 for tile in first]


def ends_after(ready: Iterable[int], free_ps: int, choice: Choice) -> Ends:
    """When each tile ends, on a core that is free from then on."""
    ends, now = [], free_ps
    for time in ready:
        now = max(now, time) + choice.tile_ps
        ends.append(now)
    return tuple(ends)


def _too_much(cuts: Cuts, kept: frozenset[int], limit_ps: float) -> set[int]:
    """Those with which work shared evenly and the port, mixed, are beyond the limit."""
    found: set[int] = set()
    if limit_ps == math.inf:
        return found
    for port in range(MIXTURES + 1):

        def weight(choice: Choice, port: int = port) -> int:
            return (MIXTURES - port) * choice.busy_ps + port * cuts.cores * choice.shared_ps

        before, behind = _cheapest_ways(cuts, kept, weight)
        most = MIXTURES * cuts.cores * limit_ps
        for number in kept:
            choice = cuts.choices[number]
            if before[choice.start] + weight(choice) + behind[choice.end] > most:
                found.add(number)
    return found


def _cheapest(cuts: Cuts, kept: frozenset[int]) -> float:
    """The least energy without leakage; rounded down, since sums may be made in another order."""
    _, behind = _cheapest_ways(cuts, kept, lambda choice: choice.dynamic_pj)
    return behind[0] * (1 - 1e-12)


def _cheapest_ways(
    cuts: Cuts, kept: frozenset[int], weight: Callable[[Choice], float]
) -> tuple[list[float], list[float]]:
    """By position, the least that a way to it and one from it has of something."""
    before = [0.0, *[math.inf] * cuts.operators]
    behind = [*[math.inf] * cuts.operators, 0.0]
    order = sorted(kept, key=lambda number: cuts.choices[number].start)
    for number in order:
        choice = cuts.choices[number]
        before[choice.end] = min(before[choice.end], before[choice.start] + weight(choice))
    for number in reversed(order):
        choice = cuts.choices[number]
        behind[choice.start] = min(behind[choice.start], weight(choice) + behind[choice.end])
    return before, behind

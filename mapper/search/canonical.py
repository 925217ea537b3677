"""Which mappings can be left out because another order of stages has one that costs no more.

Let stage A stand right above stage B of another operand, and let both be free to change places.
Loops between the two are worth having there if A stays the same in them: if A does not depend on
them, or on what their steps share (sliding windows). Without such a loop those between them can
be moved above A, whose tiles then shrink and are loaded as often in all, and B above the loops
that it does not depend on, so that it is loaded less often. That is a mapping under another order
that costs no more. If B has been moved past a loop, tiles change less often in all; otherwise the
stages are exchanged, and are left out only where they are out of order. So this ends, and some
optimum is left.

Where visits of A cost time, or make room for a second tile, no loop is moved above it; nor one that
must stay whole in A's memory. They are not free to change places where B would then be waited for.

Two latches are left to ``space.distinct_orders``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from arch.spec import Memory
from mapper.compiled import compiled
from mapper.hierarchy import Execution
from mapper.search.pricing import IntArray
from mapper.search.space import StageOrder
from mapper.search.tilings import Tilings

#: Pairs that are looked at; each has a bit for what it lacks and one for what is left above it.
PAIRS = 16
_BITS = (1 << PAIRS) - 1

# Columns of the compiled table of pairs.
BEFORE, ABOVE, BELOW, REUSED, LEFT = range(5)


class _Pair(NamedTuple):
    """Stages by their numbers in ``StageOrder.listed`` (-1: none), whether they are out of order,
    the dimensions whose loops between them are worth having, and those above that the lower stage
    does not depend on."""

    before: int
    above: int
    below: int
    late: bool
    reused: frozenset[str]
    left: frozenset[str]


class Canonical:
    """What mappings under one order of stages lack.

    Of each tiling of a dimension, the low bits say between which pairs it has no loop worth
    having, the high ones above which pairs it has a loop that the lower stage does not depend on.
    Of ``late_loads``, by number, each visit takes time if it is waited for.
    """

    def __init__(self, order: StageOrder, late_loads: frozenset[int]) -> None:
        pairs = itertools.islice(_pairs(order, late_loads), PAIRS)
        self._pairs = tuple(pairs)
        extents = order.run.operator.extents
        self._looped = frozenset(dim for dim, extent in extents.items() if extent > 1)
        #: Pairs between which there must be a loop, whatever is above.
        self.late = sum(1 << i for i, pair in enumerate(self._pairs) if pair.late)

    @property
    def leaves_nothing(self) -> bool:
        """Has every mapping of the order stages out of order with no loop between them?"""
        return any(pair.late and not pair.reused & self._looped for pair in self._pairs)

    def lacks(self, dim: str, tilings: Tilings) -> IntArray:
        """Of each tiling of a dimension, ``tilings`` being as in ``StageOrder.listed_tilings``."""
        table = np.array(
            [(p.before, p.above, p.below, dim in p.reused, dim in p.left) for p in self._pairs],
            dtype=np.int64,
        ).reshape(-1, 5)
        found: IntArray = _lacks(tilings.tiles, tilings.extent, table)
        return found


def combined(lacks: list[IntArray]) -> IntArray:
    """What combinations of tilings of several dimensions lack, row by row."""
    together = np.bitwise_and.reduce(lacks) & _BITS
    found: IntArray = together | (np.bitwise_or.reduce(lacks) & ~_BITS)
    return found


@compiled
def _lacks(tiles: IntArray, extent: int, pairs: IntArray) -> IntArray:
    found = np.zeros(len(tiles), dtype=np.int64)
    for p in range(len(pairs)):
        before, above, below = pairs[p, BEFORE], pairs[p, ABOVE], pairs[p, BELOW]
        for r in range(len(tiles)):
            tile = tiles[r, above]
            if pairs[p, REUSED] == 0 or tile == tiles[r, below]:
                found[r] |= 1 << p
            outside = tiles[r, before] if before >= 0 else extent
            if pairs[p, LEFT] != 0 and outside > tile:
                found[r] |= 1 << (PAIRS + p)
    return found


def _pairs(order: StageOrder, late_loads: frozenset[int]) -> Iterator[_Pair]:
    run, stages = order.run, order.stages
    number = {position: i for i, position in enumerate(order.listed)}
    for at in range(len(stages) - 1):
        (one, memory), (other, below) = stages[at], stages[at + 1]
        ours, theirs = run.counts.operands[one], run.counts.operands[other]
        if one == other or (memory.is_latch and below.is_latch):
            continue
        if order.is_by_level and not _are_on_one_level(memory, below):
            continue
        if at == order.last_shared and number[at + 1] in late_loads:
            continue
        yield _Pair(
            before=number[at - 1] if at else -1,
            above=number[at],
            below=number[at + 1],
            late=_rank(one, memory) > _rank(other, below),
            reused=theirs.dims - _movable(order, at, late_loads),
            left=ours.dims - theirs.dims,
        )


def _are_on_one_level(one: Memory, other: Memory) -> bool:
    """Are both in one shared memory, or both replicated?"""
    replicated = bool(one.replicated_over), bool(other.replicated_over)
    return all(replicated) or (not any(replicated) and one.name == other.name)


def _rank(operand: int, memory: Memory) -> tuple[bool, bool, int]:
    """Of two stages that might as well change places, the lower comes first."""
    return bool(memory.replicated_over), memory.is_latch, operand


def _movable(order: StageOrder, at: int, late_loads: frozenset[int]) -> frozenset[str]:
    """Dimensions whose loops may be moved above a stage, where its tiles are loaded as often."""
    operand, memory = order.stages[at]
    is_waited_for = at <= order.last_shared and order.listed.index(at) in late_loads
    if is_waited_for or _counts_visits(order.run, operand, memory):
        return frozenset()
    ours = order.run.counts.operands[operand]
    shared = {dim for axis in ours.coupled for dim in axis.dims}
    return ours.dims - shared - order.run.operator.whole_dims


def _counts_visits(run: Execution, operand: int, memory: Memory) -> bool:
    """May more visits of smaller tiles need more room, or fold the unit more often?"""
    is_folded = operand == run.stationary and memory == run.paths[operand][-1]
    return memory.double_buffered or is_folded

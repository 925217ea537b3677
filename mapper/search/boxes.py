"""Branch and bound over tables of factors, compiled.

Volumes are products of one row per group. A box (a set of rows for each group) is bounded from
below by multiplying the smallest factor of each column over its rows: latency, energy and the
room needed grow with every volume. A box whose bound does not fit or is no better than the best
mapping found is dropped, any other is split in two; so what remains is optimal.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import compiled, kernel
from mapper.search.canonical import PAIRS
from mapper.search.costs import ANSWERS, acceptable, better, cost, worthwhile
from mapper.search.flows import Flows
from mapper.search.pricing import FloatArray, IntArray


class Forest(NamedTuple):
    """The rows of all groups, each in a binary tree of boxes that grows as it is searched.

    ``table`` are the rows of all groups and ``lacks`` what they lack (see
    ``mapper.search.canonical``, as for ``late``); groups with the same rows share a tree.
    ``order`` are the numbers of the rows, those of a box behind one another.
    ``smallest[node]`` is the column-wise minimum of the node's rows and ``spread[node]`` how
    much they differ (0 for a single row); it is split at ``threshold[node]``. ``links[node]`` are
    its children (-1 until it is split), the places in ``order`` of its first row and of its last
    one, what all its rows lack, and the column that it is split at. ``weights`` says how much a
    column's differences matter. ``root`` is the first node of each group; its tree has
    ``made[root]`` nodes by now.
    """

    table: FloatArray
    lacks: IntArray
    order: IntArray
    smallest: FloatArray
    spread: FloatArray
    threshold: FloatArray
    links: IntArray
    made: IntArray
    weights: FloatArray
    root: IntArray
    late: int


# Columns of ``links``.
LEFT, RIGHT, FIRST, LAST, LACKS, SPLIT = range(6)


def plant(
    tables: list[FloatArray], lacks: list[IntArray], weights: FloatArray, late: int
) -> tuple[Forest, IntArray]:
    """Trees of these tables' rows, and where each table begins among all rows."""
    same = [
        next(
            h
            for h in range(g + 1)
            if h == g
            or (np.array_equal(tables[h], tables[g]) and np.array_equal(lacks[h], lacks[g]))
        )
        for g in range(len(tables))
    ]
    different = sorted(set(same))
    ends = np.cumsum([0, *(len(tables[g]) for g in different)], dtype=np.int64)
    first = ends[np.searchsorted(different, same)]
    nodes = 2 * int(ends[-1])
    forest = Forest(
        table=np.concatenate([tables[g] for g in different]),
        lacks=np.concatenate([lacks[g] for g in different]),
        order=np.arange(ends[-1]),
        smallest=np.empty((nodes, tables[0].shape[1])),
        spread=np.empty(nodes),
        threshold=np.empty(nodes),
        links=np.empty((nodes, 6), dtype=np.int64),
        made=np.zeros(nodes, dtype=np.int64),
        weights=weights,
        root=2 * first,
        late=late,
    )
    for begin, end in itertools.pairwise(ends):
        _make_node(forest, 2 * begin, begin, end)
        forest.made[2 * begin] = 1
    return forest, first


@kernel
def _make_node(forest: Forest, node: int, begin: int, end: int) -> None:
    """A box of some rows. Of rows that are equal in every column only the first is looked at.

    Values are integers: a zero counts as less than one.
    """
    table, links, order = forest.table, forest.links, forest.order
    smallest = forest.smallest[node]
    split, threshold, widest, spread = -1, 0.0, 0.0, 0.0
    for c in range(len(smallest)):
        low = high = table[order[begin], c]
        for i in range(begin + 1, end):
            value = table[order[i], c]
            low, high = min(low, value), max(high, value)
        smallest[c] = low
        if high > low:
            above_zero = max(low, 0.5)
            width = forest.weights[c] * np.log(high / above_zero)
            spread += width
            if width > widest:
                split, threshold, widest = c, np.sqrt(above_zero * high), width
    lacks = forest.lacks[order[begin]]
    for i in range(begin + 1, end):
        lacks &= forest.lacks[order[i]]
    forest.spread[node], forest.threshold[node] = spread, threshold
    links[node, LEFT], links[node, RIGHT], links[node, SPLIT] = -1, -1, split
    links[node, FIRST], links[node, LAST], links[node, LACKS] = begin, end - 1, lacks


@compiled
def _split(forest: Forest, root: int, node: int) -> None:
    """Split a box of rows at the column in which they differ most."""
    links, made = forest.links, forest.made
    begin, end = links[node, FIRST], links[node, LAST] + 1
    rows = forest.order[begin:end]
    middle = begin + _partition(forest.table, rows, links[node, SPLIT], forest.threshold[node])
    first = root + made[root]
    made[root] += 2
    links[node, LEFT], links[node, RIGHT] = first, first + 1
    _make_node(forest, first, begin, middle)
    _make_node(forest, first + 1, middle, end)


@compiled
def _partition(rows: FloatArray, some: IntArray, column: int, threshold: float) -> int:
    """Rows up to the threshold to the front, in order; returns how many."""
    tail = np.empty(len(some), dtype=np.int64)
    front = back = 0
    for i in range(len(some)):
        row = some[i]
        if rows[row, column] <= threshold:
            some[front] = row
            front += 1
        else:
            tail[back] = row
            back += 1
    for i in range(back):
        some[front + i] = tail[i]
    return front


class _Task(NamedTuple):
    """What stays the same during a search, and scratch space."""

    forest: Forest
    flows: Flows
    slack: float
    best: FloatArray
    others: FloatArray
    volumes: FloatArray
    scratch: FloatArray


@compiled
def search(
    forest: Forest,
    flows: Flows,
    limits: tuple[float, int],
    best: FloatArray,
    chosen: IntArray,
) -> tuple[int, bool]:
    """Branch and bound over boxes of mappings; improves ``best`` and ``chosen`` in place.

    A box is one node per group. Nothing that is left out is better than ``best`` by more than a
    share (the first of ``limits``), but for what another order of stages has at no higher cost. Of
    mappings that are equal but for the names of groups with the same tree one is looked at.
    Returns the number of evaluations, and whether that is all: after as many as the second of
    ``limits`` it is not.
    """
    root, groups, columns = forest.root, len(forest.root), forest.smallest.shape[1]
    slack, most = limits
    scratch = np.empty(flows.ports.shape[0])
    task = _Task(forest, flows, slack, best, np.empty(columns), np.empty(columns), scratch)
    stack = np.empty((64, groups), dtype=np.int64)
    bounds = np.empty((64, ANSWERS))
    box = root.copy()
    _multiply_others(forest, box, 0, task.others)
    top, calls = _push(task, box, (0, root[0]), (stack, bounds), 0), 1
    while top > 0 and calls < most:
        top -= 1
        if not worthwhile(flows.objective, bounds[top], best, slack):
            continue
        _copy(stack[top], box)
        group = _widest_group(forest, box)
        if group < 0:
            _copy(bounds[top], best)
            for h in range(groups):
                chosen[h] = forest.order[forest.links[box[h], FIRST]]
            continue
        if top + 2 > len(stack):
            stack, bounds = _doubled(stack), _doubled(bounds)
        if forest.links[box[group], LEFT] < 0:
            _split(forest, root[group], box[group])
        top = _branch(task, box, group, (stack, bounds), top)
        calls += 2
    return calls, top == 0


@kernel
def _branch(
    task: _Task, box: IntArray, group: int, frontier: tuple[IntArray, FloatArray], top: int
) -> int:
    """Push the halves of a box that may hold something better, the more promising one on top."""
    stack, bounds = frontier
    forest, node = task.forest, box[group]
    _multiply_others(forest, box, group, task.others)
    first = _push(task, box, (group, forest.links[node, LEFT]), frontier, top)
    second = _push(task, box, (group, forest.links[node, RIGHT]), frontier, first)
    both = second == top + 2
    if both and better(task.flows.objective, bounds[top], bounds[top + 1]):
        _swap(stack[top], stack[top + 1])
        _swap(bounds[top], bounds[top + 1])
    return second


@kernel
def _push(
    task: _Task,
    box: IntArray,
    half: tuple[int, int],
    frontier: tuple[IntArray, FloatArray],
    top: int,
) -> int:
    """Push ``box`` with a node for one of its groups, if worthwhile; returns the new top."""
    stack, bounds = frontier
    group, node = half
    box[group] = node
    if _is_left_out(task.forest, box, group):
        return top
    smallest = task.forest.smallest
    for c in range(len(task.volumes)):
        task.volumes[c] = task.others[c] * smallest[node, c]
    cost(task.volumes, task.flows, task.scratch, bounds[top])
    objective = task.flows.objective
    if not acceptable(objective, bounds[top]):
        return top
    if not worthwhile(objective, bounds[top], task.best, task.slack):
        return top
    _copy(box, stack[top])
    return top + 1


@kernel
def _is_left_out(forest: Forest, box: IntArray, group: int) -> bool:
    """Is there for each of the box's mappings another that costs no more, elsewhere?"""
    links, root = forest.links, forest.root
    nothing, something = (1 << PAIRS) - 1, forest.late
    for h in range(len(box)):
        lacks = links[box[h], LACKS]
        nothing &= lacks
        something |= lacks >> PAIRS
        if root[h] == root[group]:
            low, high = min(h, group), max(h, group)
            if links[box[low], FIRST] > links[box[high], LAST]:
                return True
    return bool(nothing & something != 0)


@kernel
def _multiply_others(forest: Forest, box: IntArray, group: int, others: FloatArray) -> None:
    first = 1 if group == 0 and len(box) > 1 else 0
    if len(box) == 1:
        for c in range(len(others)):
            others[c] = 1.0
        return
    for c in range(len(others)):
        others[c] = forest.smallest[box[first], c]
    for h in range(first + 1, len(box)):
        if h != group:
            for c in range(len(others)):
                others[c] *= forest.smallest[box[h], c]


@kernel
def _widest_group(forest: Forest, box: IntArray) -> int:
    """The group whose rows differ most, -1 if the box is a single mapping."""
    widest, group = 0.0, -1
    for h in range(len(box)):
        if forest.spread[box[h]] > widest:
            widest, group = forest.spread[box[h]], h
    return group


@compiled
def _doubled(table: NDArray[Any]) -> NDArray[Any]:
    """The table with room for twice as many rows."""
    grown = np.empty((2 * len(table), table.shape[1]), dtype=table.dtype)
    for i in range(len(table)):
        for j in range(table.shape[1]):
            grown[i, j] = table[i, j]
    return grown


@kernel
def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def _swap(one: NDArray[Any], other: NDArray[Any]) -> None:
    for i in range(len(one)):
        one[i], other[i] = other[i], one[i]

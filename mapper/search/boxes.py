"""Branch and bound over tables of factors, compiled.

Volumes are products of one row per group. A box (a set of rows for each group) is bounded from
below by multiplying the smallest factor of each column over its rows: latency, energy and the
room needed grow with every volume. A box whose bound does not fit or is no better than the best
mapping found is dropped, any other is split in two; so what remains is optimal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import compiled, kernel
from mapper.search.costs import ANSWERS, acceptable, better, cost, worthwhile
from mapper.search.flows import Flows
from mapper.search.pricing import FloatArray, IntArray


class Tree(NamedTuple):
    """A group's rows in a binary tree of boxes; node 0 is the root.

    ``smallest[node]`` is the column-wise minimum of the node's rows and ``spread[node]`` how
    much they differ (0 for a single row). ``links[node]`` are its two children, -1 for a leaf,
    and the row of a leaf.
    """

    smallest: FloatArray
    spread: FloatArray
    links: IntArray


# Columns of ``links``.
LEFT, RIGHT, ROW = 0, 1, 2


@compiled
def grow_tree(rows: FloatArray, weights: FloatArray) -> Tree:
    """Split boxes of rows at the column in which they differ most, down to single rows.

    ``weights`` says how much a column's differences matter. Of rows that are equal in every
    column only the first is kept.
    """
    count, columns = rows.shape
    nodes = 2 * count
    smallest = np.empty((nodes, columns))
    spread = np.empty(nodes)
    links = np.empty((nodes, 3), dtype=np.int64)
    begin, end = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    order = np.arange(count)
    begin[0], end[0] = 0, count
    made, node = 1, 0
    while node < made:
        a, b = begin[node], end[node]
        split, threshold, width = _widest_column(rows, order[a:b], weights, smallest[node])
        spread[node] = width
        if split < 0:
            links[node, LEFT], links[node, RIGHT], links[node, ROW] = -1, -1, order[a]
        else:
            middle = a + _partition(rows, order[a:b], split, threshold)
            links[node, LEFT], links[node, RIGHT], links[node, ROW] = made, made + 1, -1
            begin[made], end[made] = a, middle
            begin[made + 1], end[made + 1] = middle, b
            made += 2
        node += 1
    return Tree(smallest[:made], spread[:made], links[:made])


@compiled
def _widest_column(
    rows: FloatArray, some: IntArray, weights: FloatArray, smallest: FloatArray
) -> tuple[int, float, float]:
    """The column in which some rows differ most, where to split it, and all differences.

    Fills the ``smallest`` value of each column; the column is -1 if the rows are equal. Values
    are integers: a zero counts as less than one.
    """
    split, threshold, widest, spread = -1, 0.0, 0.0, 0.0
    for c in range(rows.shape[1]):
        low = high = rows[some[0], c]
        for i in range(1, len(some)):
            value = rows[some[i], c]
            low, high = min(low, value), max(high, value)
        smallest[c] = low
        if high > low:
            above_zero = max(low, 0.5)
            width = weights[c] * np.log(high / above_zero)
            spread += width
            if width > widest:
                split, threshold, widest = c, np.sqrt(above_zero * high), width
    return split, threshold, spread


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


def join_trees(trees: list[Tree]) -> tuple[Tree, IntArray]:
    """All trees as one (children renumbered) and the node number of each root."""
    root = np.cumsum([0, *(len(tree.spread) for tree in trees[:-1])], dtype=np.int64)
    links = [
        tree.links + np.where(tree.links[:, :1] < 0, 0, [[at, at, 0]])
        for tree, at in zip(trees, root, strict=True)
    ]
    return Tree(
        smallest=np.concatenate([tree.smallest for tree in trees]),
        spread=np.concatenate([tree.spread for tree in trees]),
        links=np.concatenate(links),
    ), root


class _Task(NamedTuple):
    """What stays the same during a search, and scratch space."""

    forest: Tree
    flows: Flows
    slack: float
    best: FloatArray
    others: FloatArray
    volumes: FloatArray
    scratch: FloatArray


@compiled
def search(
    forest: Tree, root: IntArray, flows: Flows, slack: float, best: FloatArray, chosen: IntArray
) -> int:
    """Branch and bound over boxes of mappings; improves ``best`` and ``chosen`` in place.

    ``forest`` holds the trees of all groups behind one another, ``root[g]`` is the root of
    group ``g``. A box is one node per group. Nothing that is left out is better than ``best``
    by more than the share ``slack``. Returns the number of evaluations.
    """
    groups, columns = len(root), forest.smallest.shape[1]
    scratch = np.empty(flows.ports.shape[0])
    task = _Task(forest, flows, slack, best, np.empty(columns), np.empty(columns), scratch)
    stack = np.empty((64, groups), dtype=np.int64)
    bounds = np.empty((64, ANSWERS))
    box = root.copy()
    top = group = calls = 0
    _multiply_others(forest, box, group, task.others)
    top = _push(task, box, (group, root[group]), (stack, bounds), top)
    calls += 1
    while top > 0:
        top -= 1
        if not worthwhile(flows.objective, bounds[top], best, slack):
            continue
        _copy(stack[top], box)
        group = _widest_group(forest, box)
        if group < 0:
            _copy(bounds[top], best)
            for h in range(groups):
                chosen[h] = forest.links[box[h], ROW]
            continue
        if top + 2 > len(stack):
            stack, bounds = _doubled(stack), _doubled(bounds)
        top = _branch(task, box, group, (stack, bounds), top)
        calls += 2
    return calls


@kernel
def _branch(
    task: _Task, box: IntArray, group: int, frontier: tuple[IntArray, FloatArray], top: int
) -> int:
    """Push the halves of a box that may hold something better, the more promising one on top."""
    stack, bounds = frontier
    node = box[group]
    _multiply_others(task.forest, box, group, task.others)
    first = _push(task, box, (group, task.forest.links[node, LEFT]), frontier, top)
    second = _push(task, box, (group, task.forest.links[node, RIGHT]), frontier, first)
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
    for c in range(len(task.volumes)):
        task.volumes[c] = task.others[c] * task.forest.smallest[node, c]
    cost(task.volumes, task.flows, task.scratch, bounds[top])
    objective = task.flows.objective
    if not acceptable(objective, bounds[top]):
        return top
    if not worthwhile(objective, bounds[top], task.best, task.slack):
        return top
    _copy(box, stack[top])
    return top + 1


@kernel
def _multiply_others(forest: Tree, box: IntArray, group: int, others: FloatArray) -> None:
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
def _widest_group(forest: Tree, box: IntArray) -> int:
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

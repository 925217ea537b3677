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

from mapper.compiled import compiled
from mapper.search.pricing import (
    ANSWERS,
    TRAFFIC_FIELDS,
    FloatArray,
    IntArray,
    Model,
    acceptable,
    better,
    cost,
)


class Tree(NamedTuple):
    """A group's rows in a binary tree of boxes; node 0 is the root.

    ``smallest[node]`` is the column-wise minimum of the node's rows and ``spread[node]`` how
    much they differ (0 for a single row). A leaf has ``row >= 0``, an inner node two children.
    """

    smallest: FloatArray
    spread: FloatArray
    left: IntArray
    right: IntArray
    row: IntArray


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
    left, right, row = _filled(nodes), _filled(nodes), _filled(nodes)
    begin, end = _filled(nodes), _filled(nodes)
    order = np.arange(count)
    begin[0], end[0] = 0, count
    made, node = 1, 0
    while node < made:
        a, b = begin[node], end[node]
        split, threshold, width = _widest_column(rows, order[a:b], weights, smallest[node])
        spread[node] = width
        if split < 0:
            row[node] = order[a]
        else:
            middle = a + _partition(rows, order[a:b], split, threshold)
            left[node], right[node] = made, made + 1
            begin[made], end[made] = a, middle
            begin[made + 1], end[made + 1] = middle, b
            made += 2
        node += 1
    return Tree(smallest[:made], spread[:made], left[:made], right[:made], row[:made])


@compiled
def _filled(count: int) -> IntArray:
    values = np.empty(count, dtype=np.int64)
    for i in range(count):
        values[i] = -1
    return values


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
    root = np.cumsum([0, *(len(tree.row) for tree in trees[:-1])], dtype=np.int64)
    return Tree(
        smallest=np.concatenate([tree.smallest for tree in trees]),
        spread=np.concatenate([tree.spread for tree in trees]),
        left=np.concatenate([tree.left + at for tree, at in zip(trees, root, strict=True)]),
        right=np.concatenate([tree.right + at for tree, at in zip(trees, root, strict=True)]),
        row=np.concatenate([tree.row for tree in trees]),
    ), root


class _Task(NamedTuple):
    """What stays the same during a search, and scratch space."""

    forest: Tree
    model: Model
    best: FloatArray
    others: FloatArray
    volumes: FloatArray
    traffic: FloatArray


@compiled
def search(forest: Tree, root: IntArray, model: Model, best: FloatArray, chosen: IntArray) -> int:
    """Branch and bound over boxes of mappings; improves ``best`` and ``chosen`` in place.

    ``forest`` holds the trees of all groups behind one another, ``root[g]`` is the root of
    group ``g``. A box is one node per group. Returns the number of evaluations.
    """
    groups, columns = len(root), forest.smallest.shape[1]
    traffic = np.empty((model.memories.shape[0], TRAFFIC_FIELDS))
    task = _Task(forest, model, best, np.empty(columns), np.empty(columns), traffic)
    stack = np.empty((64, groups), dtype=np.int64)
    bounds = np.empty((64, ANSWERS))
    box = root.copy()
    top = group = calls = 0
    _multiply_others(forest, box, group, task.others)
    top = _push(task, box, (group, root[group]), (stack, bounds), top)
    calls += 1
    while top > 0:
        top -= 1
        if not better(model.objective, bounds[top], best):
            continue
        _copy(stack[top], box)
        group = _widest_group(forest, box)
        if group < 0:
            _copy(bounds[top], best)
            for h in range(groups):
                chosen[h] = forest.row[box[h]]
            continue
        if top + 2 > len(stack):
            stack, bounds = _doubled(stack), _doubled(bounds)
        top = _branch(task, box, group, (stack, bounds), top)
        calls += 2
    return calls


@compiled
def _branch(
    task: _Task, box: IntArray, group: int, frontier: tuple[IntArray, FloatArray], top: int
) -> int:
    """Push the halves of a box that may hold something better, the more promising one on top."""
    stack, bounds = frontier
    node = box[group]
    _multiply_others(task.forest, box, group, task.others)
    first = _push(task, box, (group, task.forest.left[node]), frontier, top)
    second = _push(task, box, (group, task.forest.right[node]), frontier, first)
    both = second == top + 2
    if both and better(task.model.objective, bounds[top], bounds[top + 1]):
        _swap(stack[top], stack[top + 1])
        _swap(bounds[top], bounds[top + 1])
    return second


@compiled
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
    cost(task.volumes, task.model, task.traffic, bounds[top])
    objective = task.model.objective
    if not acceptable(objective, bounds[top]) or not better(objective, bounds[top], task.best):
        return top
    _copy(box, stack[top])
    return top + 1


@compiled
def _multiply_others(forest: Tree, box: IntArray, group: int, others: FloatArray) -> None:
    for c in range(len(others)):
        others[c] = 1.0
    for h in range(len(box)):
        if h != group:
            for c in range(len(others)):
                others[c] *= forest.smallest[box[h], c]


@compiled
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


@compiled
def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    for i in range(len(source)):
        target[i] = source[i]


@compiled
def _swap(one: NDArray[Any], other: NDArray[Any]) -> None:
    for i in range(len(one)):
        one[i], other[i] = other[i], one[i]

"""Rows of factors as a binary tree of boxes, from which branch and bound takes its bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


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


@njit(cache=True)
def grow_tree(rows, weights):  # type: ignore[no-untyped-def]
    """Split boxes of rows at the column in which they differ most, down to single rows.

    ``weights`` says how much a column's differences matter. Of rows that are equal in every
    column only the first is kept.
    """
    count, columns = rows.shape
    nodes = 2 * count
    smallest = np.empty((nodes, columns))
    spread = np.zeros(nodes)
    left, right = np.full(nodes, -1), np.full(nodes, -1)
    row = np.full(nodes, -1)
    begin, end = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    order = np.arange(count)
    scratch = np.empty(count, dtype=np.int64)
    end[0] = count
    made, node = 1, 0
    while node < made:
        a, b = begin[node], end[node]
        widest, split, threshold = 0.0, -1, 0.0
        for c in range(columns):
            low = high = rows[order[a], c]
            for i in range(a + 1, b):
                low, high = min(low, rows[order[i], c]), max(high, rows[order[i], c])
            smallest[node, c] = low
            width = weights[c] * np.log(high / low)
            spread[node] += width
            if width > widest:
                widest, split, threshold = width, c, np.sqrt(low * high)
        if split < 0:
            row[node] = order[a]
        else:
            middle, tail = a, 0
            for i in range(a, b):
                if rows[order[i], split] <= threshold:
                    order[middle] = order[i]
                    middle += 1
                else:
                    scratch[tail] = order[i]
                    tail += 1
            order[middle:b] = scratch[:tail]
            left[node], right[node] = made, made + 1
            begin[made], end[made] = a, middle
            begin[made + 1], end[made + 1] = middle, b
            made += 2
        node += 1
    return Tree(smallest[:made], spread[:made], left[:made], right[:made], row[:made])

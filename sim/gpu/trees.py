"""Sums of decision trees over the features of calls, all trees at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.gpu.demand import Array

#: Calls that are evaluated together, so that the nodes of all trees stay in a cache.
AT_ONCE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """Nodes of all trees in one row of arrays; a leaf is its own child.

    A call goes to the ``low`` child where its feature is at most the threshold. ``value`` is what a
    leaf adds to the sum.
    """

    names: tuple[str, ...]
    roots: NDArray[np.intp] = field(hash=False)
    depth: int
    feature: NDArray[np.intp] = field(hash=False)
    threshold: NDArray[np.float32] = field(hash=False)
    low: NDArray[np.intp] = field(hash=False)
    high: NDArray[np.intp] = field(hash=False)
    value: NDArray[np.float32] = field(hash=False)

    def total(self, features: Mapping[str, Array]) -> Array:
        """The sum of all trees for every call."""
        table = np.stack([features[name] for name in self.names], axis=1).astype(np.float32)
        parts = [self._some(table[i : i + AT_ONCE]) for i in range(0, len(table), AT_ONCE)]
        return np.concatenate(parts)

    def _some(self, table: NDArray[np.float32]) -> Array:
        width = table.shape[1]
        flat = table.ravel()
        starts = (np.arange(len(table)) * width)[:, None]
        node = np.repeat(self.roots[None, :], len(table), axis=0)
        for _ in range(self.depth):
            below = flat[starts + self.feature[node]] <= self.threshold[node]
            node = np.where(below, self.low[node], self.high[node])
        return np.asarray(self.value[node].sum(axis=1, dtype=np.float64))


def trees_of(document: Mapping[str, Any]) -> Trees:
    """From a data file, where a tree is a list of nodes: ``[feature, threshold, low, high]`` with
    the positions of its children in the list, or a leaf's ``[value]``."""
    names: Sequence[str] = document["features"]
    roots: list[int] = []
    rows: list[tuple[float, float, float, float, float]] = []
    for tree in document["trees"]:
        first = len(rows)
        roots.append(first)
        rows += [_node(node, first, first + number) for number, node in enumerate(tree)]
    feature, threshold, low, high, value = zip(*rows, strict=True)
    return Trees(
        names=tuple(names),
        roots=np.array(roots, dtype=np.intp),
        depth=max(_depth(tree) for tree in document["trees"]),
        feature=np.array(feature, dtype=np.intp),
        threshold=np.array(threshold, dtype=np.float32),
        low=np.array(low, dtype=np.intp),
        high=np.array(high, dtype=np.intp),
        value=np.array(value, dtype=np.float32),
    )


def _node(node: Sequence[float], first: int, own: int) -> tuple[float, float, float, float, float]:
    if len(node) == 1:
        return 0, 0.0, own, own, node[0]
    feature, threshold, low, high = node
    return feature, threshold, first + low, first + high, 0.0


def _depth(tree: Sequence[Sequence[float]]) -> int:
    """Children stand after their parents."""
    depth = [0] * len(tree)
    for number, node in enumerate(tree):
        for child in node[2:]:
            depth[int(child)] = depth[number] + 1
    return max(depth)

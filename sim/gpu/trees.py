"""Sums of decision trees over the features of calls, all trees at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

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


#: What the numbers of packed nodes and thresholds have room for.
MOST_NODES, MOST_THRESHOLDS = 255, 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Trees in few bytes: a row per inner node (feature, position of the threshold, children), with
    children after their parents, and the leaves' values; ``inner`` counts nodes of each tree."""

    inner: NDArray[np.uint8]
    feature: NDArray[np.uint8]
    place: NDArray[np.uint16]
    low: NDArray[np.uint8]
    high: NDArray[np.uint8]
    thresholds: NDArray[np.float32]
    value: NDArray[np.float16]


def packed(trees: Sequence[Sequence[Sequence[float]]]) -> Packed:
    """From lists of nodes. A child below ``inner`` is that inner node, else a leaf."""
    inner = [sum(len(node) > 1 for node in tree) for tree in trees]
    rows = [row for tree, count in zip(trees, inner, strict=True) for row in _numbered(tree, count)]
    feature, threshold, low, high = np.array(rows, dtype=np.float64).T
    thresholds, place = np.unique(_rounded_down(threshold), return_inverse=True)
    if max(low.max(), high.max()) > MOST_NODES or len(thresholds) > MOST_THRESHOLDS:
        allowed = f"allowed {MOST_NODES} nodes in a tree, {MOST_THRESHOLDS} thresholds in all"
        raise ValueError(f"trees are too large to be packed; {allowed}")
    return Packed(
        inner=np.array(inner, dtype=np.uint8),
        feature=feature.astype(np.uint8),
        place=place.astype(np.uint16),
        low=low.astype(np.uint8),
        high=high.astype(np.uint8),
        thresholds=thresholds,
        value=np.array(
            [node[0] for tree in trees for node in tree if len(node) == 1], dtype=np.float16
        ),
    )


def _rounded_down(threshold: Array) -> NDArray[np.float32]:
    """So that the same single-precision features are below."""
    near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)


def _numbered(tree: Sequence[Sequence[float]], inner: int) -> Iterator[tuple[float, ...]]:
    """Inner nodes with children numbered among the inner nodes, and behind them the leaves."""
    is_leaf = np.array([len(node) == 1 for node in tree])
    number = np.where(is_leaf, inner + np.cumsum(is_leaf) - 1, np.cumsum(~is_leaf) - 1)
    for node in tree:
        if len(node) > 1:
            yield node[0], node[1], number[int(node[2])], number[int(node[3])]


def unpacked(found: Packed, names: Sequence[str]) -> Trees:
    """In the row of all trees each has its inner nodes first, and then one leaf more."""
    inner = found.inner.astype(np.intp)
    sizes = 2 * inner + 1
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    within = np.arange(sizes.sum()) - np.repeat(roots, sizes)
    is_inner = within < np.repeat(inner, sizes)
    own = np.arange(sizes.sum())
    low, high, feature = own.copy(), own.copy(), np.zeros(len(own), dtype=np.intp)
    threshold, value = np.zeros((2, len(own)), dtype=np.float32)
    first = np.repeat(roots, inner)
    low[is_inner], high[is_inner] = first + found.low, first + found.high
    feature[is_inner] = found.feature
    threshold[is_inner] = found.thresholds[found.place]
    value[~is_inner] = found.value
    return Trees(
        names=tuple(names),
        roots=roots,
        depth=_levels(roots, low, high),
        feature=feature,
        threshold=threshold,
        low=low,
        high=high,
        value=value,
    )


def _levels(roots: NDArray[np.intp], low: NDArray[np.intp], high: NDArray[np.intp]) -> int:
    """How many steps lead from the roots to the last leaf."""
    nodes, count = roots, 0
    while (inner := nodes[low[nodes] != nodes]).size:
        nodes = np.concatenate([low[inner], high[inner]])
        count += 1
    return count


def saved_trees(path: Path, names: Sequence[str], groups: Mapping[str, Packed]) -> None:
    parts = {
        f"{group}.{field.name}": getattr(each, field.name)
        for group, each in groups.items()
        for field in fields(Packed)
    }
    np.savez_compressed(path, names=np.array(names), **parts)


def loaded_trees(file: IO[bytes]) -> dict[str, Trees]:
    """By group, what ``saved_trees`` wrote."""
    with np.load(file) as stored:
        names = [str(name) for name in stored["names"]]
        groups = sorted({key.rpartition(".")[0] for key in stored.files} - {""})
        return {
            group: unpacked(
                Packed(**{f.name: stored[f"{group}.{f.name}"] for f in fields(Packed)}), names
            )
            for group in groups
        }


def _depth(tree: Sequence[Sequence[float]]) -> int:
    """Children stand after their parents."""
    depth = [0] * len(tree)
    for number, node in enumerate(tree):
        for child in node[2:]:
            depth[int(child)] = depth[number] + 1
    return max(depth)

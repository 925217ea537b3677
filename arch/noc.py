"""Networks on a chip between a memory and a grid of nodes: who is behind which link.

Traffic enters at node (0, 0) and follows one tree: in a mesh along the first row and then down
the columns (XY routing), in a ring the shorter way round, in a crossbar directly. What returns
takes the same way back, on links of its own. Links that carry the same are one record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

Node = tuple[int, int]

#: (does a stream differ between rows of nodes, between columns): how it is spread.
Spread = tuple[bool, bool]
SPREADS: tuple[Spread, ...] = ((False, False), (False, True), (True, False), (True, True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """``count`` equal links, one of which leads to the nodes ``behind`` it."""

    name: str
    count: int
    behind: frozenset[Node]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """``hops`` is how many links there are to the farthest node, the entrance included."""

    branches: tuple[Branch, ...]
    hops: int


def _grid(rows: int, cols: int) -> frozenset[Node]:
    return frozenset((r, c) for r in range(rows) for c in range(cols))


def _crossbar(rows: int, cols: int) -> Network:
    entrance = Branch(name="in", count=1, behind=_grid(rows, cols))
    out = Branch(name="out", count=rows * cols, behind=frozenset({(0, 0)}))
    return Network(branches=(entrance, out), hops=2)


def _mesh(rows: int, cols: int) -> Network:
    nodes = _grid(rows, cols)
    branches = [Branch(name="in", count=1, behind=nodes)]
    for i in range(1, cols):
        behind = frozenset(node for node in nodes if node[1] >= i)
        branches.append(Branch(name=f"x{i}", count=1, behind=behind))
    for j in range(1, rows):
        behind = frozenset((r, 0) for r in range(j, rows))
        branches.append(Branch(name=f"y{j}", count=cols, behind=behind))
    return Network(branches=tuple(branches), hops=rows + cols - 1)


def _ring(rows: int, cols: int) -> Network:
    """Nodes row by row, odd rows backwards, so that neighbours in the ring are neighbours."""
    order = [(r, c if r % 2 == 0 else cols - 1 - c) for r in range(rows) for c in range(cols)]
    others = order[1:]
    half = (len(others) + 1) // 2
    sides = {"cw": others[:half], "ccw": others[half:][::-1]}
    branches = [Branch(name="in", count=1, behind=frozenset(order))]
    for side, nodes in sides.items():
        branches += [
            Branch(name=f"{side}{d + 1}", count=1, behind=frozenset(nodes[d:]))
            for d in range(len(nodes))
        ]
    return Network(branches=tuple(branches), hops=1 + half)


TOPOLOGIES: Mapping[str, Callable[[int, int], Network]] = {
    "crossbar": _crossbar,
    "mesh": _mesh,
    "ring": _ring,
}


def loads(branch: Branch, rows: int, cols: int, *, multicast: bool) -> dict[Spread, Fraction]:
    """Which share of a stream one link of the branch carries, by how the stream is spread.

    With multicast a link carries what several nodes behind it want once, without it once for
    each of them.
    """
    return {spread: _load(branch, (rows, cols), spread, multicast) for spread in SPREADS}


def _load(branch: Branch, size: Node, spread: Spread, multicast: bool) -> Fraction:
    parts = (size[0] if spread[0] else 1) * (size[1] if spread[1] else 1)
    wanted = list(_wanted(branch, spread))
    return Fraction(len(set(wanted)) if multicast else len(wanted), parts)


def _wanted(branch: Branch, spread: Spread) -> Iterator[tuple[int, ...]]:
    """The part of the stream that each node behind the links wants."""
    for node in branch.behind:
        yield tuple(place for place, differs in zip(node, spread, strict=True) if differs)

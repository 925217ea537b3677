"""A lowered mapping: tile operations with their work, loops kept as loops.

A program says what is moved and computed, never how long it takes: prices are added in
``sim``. Its size does not grow with trip counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from arch.datatypes import Bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one component does in one tile operation (or a sum over many).

    Traffic in bits (data types may be narrower than a byte); ``steps`` are issues of a compute
    unit's intrinsic, ``operations`` the scalar operations in them, ``folds`` how often the unit
    gets another tile of the operand that stays in it. Fractions are exact: scales
    and metadata are shared by elements, and a unit that skips zeros issues less than a step.
    """

    read_bits: Bits = 0
    write_bits: Bits = 0
    steps: Bits = 0
    operations: Bits = 0
    folds: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            read_bits=self.read_bits + other.read_bits,
            write_bits=self.write_bits + other.write_bits,
            steps=self.steps + other.steps,
            operations=self.operations + other.operations,
            folds=self.folds + other.folds,
        )

    def __mul__(self, count: int) -> Work:
        return Work(
            read_bits=self.read_bits * count,
            write_bits=self.write_bits * count,
            steps=self.steps * count,
            operations=self.operations * count,
            folds=self.folds * count,
        )


@dataclass(frozen=True, slots=True, eq=False)
class TileOp:
    """One indivisible transfer or computation: work on one or more components at once.

    It ends when each component has finished its part.
    """

    name: str
    work: tuple[tuple[str, Work], ...]

    def totals(self) -> dict[str, Work]:
        """Work per component, in the order in which they are first named."""
        totals: dict[str, Work] = {}
        for component, work in self.work:
            totals[component] = totals.get(component, Work()) + work
        return totals


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
    """All steps on the tiles now held."""

    op: TileOp


@dataclass(frozen=True, slots=True, eq=False)
class Hold:
    """A tile of one operand lives in a shared memory while ``body`` runs.

    ``load`` fills it before the body needs it (absent: nothing to read, as for an output
    accumulated from zero), ``store`` empties it afterwards (absent for inputs). ``slots`` is
    how many tiles there is room for (2: the next tile may be loaded while this one is in use).
    A hold inside another of the same operand is filled from it and emptied into it.
    """

    operand: int
    memory: str
    slots: int
    size_bits: Bits
    load: TileOp | None
    store: TileOp | None
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """``count`` equal iterations over ``dim``, chunks of ``tile`` from ``start``.

    ``start`` is counted from the beginning of the chunk around it, so that equal iterations
    share one body.
    """

    count: int
    dim: str
    start: int
    tile: int
    body: tuple[Node, ...]


Node = Compute | Hold | Repeat


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """One operator, lowered. ``peak_bits`` is what each memory must hold at most."""

    operator: str
    body: tuple[Node, ...]
    peak_bits: dict[str, Bits] = field(default_factory=dict)

    def tile_ops(self) -> Iterator[tuple[int, TileOp]]:
        """Each distinct tile operation with how often it runs."""
        yield from _tile_ops(self.body, 1)

    def loads(self) -> Iterator[tuple[int, Hold, TileOp]]:
        """Each hold that loads its tile, with how often it runs and the load."""
        yield from _loads(self.body, 1)

    def total_work(self) -> dict[str, Work]:
        """Work per component, summed over the whole run."""
        totals: dict[str, Work] = {}
        for count, op in self.tile_ops():
            for component, work in op.work:
                totals[component] = totals.get(component, Work()) + work * count
        return totals


def _tile_ops(body: tuple[Node, ...], times: int) -> Iterator[tuple[int, TileOp]]:
    for node in body:
        match node:
            case Compute(op):
                yield times, op
            case Repeat():
                yield from _tile_ops(node.body, times * node.count)
            case Hold():
                if node.load is not None:
                    yield times, node.load
                if node.store is not None:
                    yield times, node.store
                yield from _tile_ops(node.body, times)


def _loads(body: tuple[Node, ...], times: int) -> Iterator[tuple[int, Hold, TileOp]]:
    for node in body:
        match node:
            case Repeat():
                yield from _loads(node.body, times * node.count)
            case Hold():
                if node.load is not None:
                    yield times, node, node.load
                yield from _loads(node.body, times)
            case Compute():
                pass

"""Which piece of each operator a tile of a fused group needs.

From the tile of the last output backwards: a piece of an operator reads a box of each input;
the box that all readers need of a tensor (their bounding box) says which piece of its writer
must run. Boxes are exact for plain, strided and padded axes; an axis that several loops share
(heads and channels, groups) is widened to whole inner loops where it does not split evenly.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from mapper.fusion import Box, Group, check_tiles, whole_dims
from mapper.mapping import Loop
from mapper.workload.graph import Workload, index_range
from mapper.workload.operators import Access, AffineIndex, Operator

#: First and one past the last position on each axis of a tensor.
Region = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One tile: what each operator computes (``None``: nothing new is needed).

    ``needed`` is what must be in the group's memory of each internal or resident tensor while
    the tile is computed, ``fresh`` the part of it that was not there before (``None``: none).
    """

    pieces: tuple[Box | None, ...]
    needed: dict[str, Region]
    fresh: dict[str, Region | None]

    def only(self, tensors: Collection[str]) -> Step:
        """The same tile, of these tensors alone."""
        return Step(
            self.pieces,
            {tensor: region for tensor, region in self.needed.items() if tensor in tensors},
            {tensor: region for tensor, region in self.fresh.items() if tensor in tensors},
        )


def steps(
    workload: Workload,
    group: Group,
    tiles: tuple[Loop, ...],
    resident: tuple[str, ...],
    retained: bool,
) -> Iterator[Step]:
    """The tiles of a group, in the order of the tile loops."""
    last = group.operators[-1]
    check_tiles(last, tiles)
    walker = _Walker(workload, group, resident, retained)
    spans = [_spans(last.extents[loop.dim], loop.tile) for loop in tiles]
    everything = {dim: (0, extent) for dim, extent in last.extents.items()}
    for chosen in itertools.product(*spans):
        here = dict(zip((loop.dim for loop in tiles), chosen, strict=True))
        yield walker.step({**everything, **here})


def _spans(extent: int, tile: int) -> list[tuple[int, int]]:
    return [(at, min(at + tile, extent)) for at in range(0, extent, tile)]


class _Walker:
    """Goes from tile to tile and remembers what is still there."""

    def __init__(
        self, workload: Workload, group: Group, resident: tuple[str, ...], retained: bool
    ) -> None:
        self.group = group
        self.resident = resident
        self.retained = retained
        self.held: dict[str, Region] = {}
        self.whole = {operator.name: whole_dims(operator) for operator in group.operators}
        tensors = (*group.internal, *resident)
        self.shapes = {tensor: workload.tensor(tensor).shape for tensor in tensors}
        self.readers = {
            tensor: [(o.name, o.inputs[number]) for o, number in group.readers(tensor)]
            for tensor in tensors
        }

    def step(self, tile: Box) -> Step:
        pieces: dict[str, Box | None] = {self.group.operators[-1].name: tile}
        needed: dict[str, Region] = {}
        fresh: dict[str, Region | None] = {}
        for operator in reversed(self.group.operators[:-1]):
            tensor = operator.output.tensor
            region = self._fresh(tensor, pieces, needed)
            box = None if region is None else _covering(operator, region, self.whole[operator.name])
            fresh[tensor], pieces[operator.name] = region, box
            if box is not None:
                written = reading(operator.output, box, self.shapes[tensor])
                needed[tensor] = around([needed[tensor], written])
        for tensor in self.resident:
            fresh[tensor] = self._fresh(tensor, pieces, needed)
        self.held.update(needed)
        return Step(tuple(pieces[o.name] for o in self.group.operators), needed, fresh)

    def _fresh(
        self, tensor: str, pieces: dict[str, Box | None], needed: dict[str, Region]
    ) -> Region | None:
        """Fills in what is needed of a tensor; returns what of it is new."""
        shape = self.shapes[tensor]
        regions = [
            reading(access, box, shape)
            for name, access in self.readers[tensor]
            if (box := pieces[name]) is not None
        ]
        if not regions:
            # Nobody reads it for this tile; what is there stays.
            if tensor in self.held:
                needed[tensor] = self.held[tensor]
            return None
        needed[tensor] = around(regions)
        held = self.held.get(tensor) if self.retained else None
        fresh = _difference(needed[tensor], held)
        if held is not None and fresh is None:
            needed[tensor] = held  # it has room: a tile that needs less does not drop the rest
        return fresh


def reading(access: Access, box: Box, shape: tuple[int, ...]) -> Region:
    """The part of a tensor that a piece reads: the span of each axis, without padding."""
    region = []
    for index, size in zip(access.index, shape, strict=True):
        low = high = index.offset
        for dim, step in index.terms:
            start, stop = box[dim]
            first, last = step * start, step * (stop - 1)
            low += min(first, last)
            high += max(first, last)
        # A piece that lies in the padding altogether reads the nearest element.
        region.append((max(0, min(low, size - 1)), max(0, min(high, size - 1)) + 1))
    return tuple(region)


def shifted(index: AffineIndex, box: Box) -> AffineIndex:
    """The same positions with loops that count from the start of the box."""
    offset = index.offset + sum(step * box[dim][0] for dim, step in index.terms)
    return AffineIndex(index.terms, offset)


def producing(operator: Operator, region: Region) -> Box:
    """The smallest piece whose output covers a region."""
    return _covering(operator, region, whole_dims(operator))


def _covering(operator: Operator, region: Region, whole: frozenset[str]) -> Box:
    """As ``producing``, given the loops that a piece must contain whole."""
    box = {dim: (0, extent) for dim, extent in operator.extents.items()}
    for index, (low, high) in zip(operator.output.index, region, strict=True):
        _narrow(box, index, low - index.offset, high - index.offset)
    return {dim: (0, operator.extents[dim]) if dim in whole else box[dim] for dim in box}


def _narrow(box: dict[str, tuple[int, int]], index: AffineIndex, low: int, high: int) -> None:
    """Cut loops to what reaches ``low`` to ``high``; from the largest step on, as digits."""
    terms = index.terms
    if len(terms) > 1:
        terms = tuple(sorted(terms, key=lambda term: -abs(term[1])))
    for dim, step in terms:
        start, stop = box[dim]
        if step <= 0:
            return
        rest = sum(s * (box[d][1] - 1) for d, s in index.terms if d != dim and 0 < s <= step)
        first, end = max(start, -(-(low - rest) // step)), min(stop, (high - 1) // step + 1)
        box[dim] = (first, end)
        if end - first > 1:
            return
        low, high = low - step * first, high - step * first


def around(regions: list[Region]) -> Region:
    if len(regions) == 1:
        return regions[0]
    return tuple(
        (min(start for start, _ in spans), max(stop for _, stop in spans))
        for spans in zip(*regions, strict=True)
    )


def _difference(needed: Region, held: Region | None) -> Region | None:
    """What of ``needed`` is not held, as one box; all of it unless the rest is one."""
    if held is None:
        return needed
    outside = [
        axis
        for axis, ((low, high), (start, stop)) in enumerate(zip(needed, held, strict=True))
        if low < start or high > stop
    ]
    if not outside:
        return None
    if len(outside) > 1:
        return needed
    (axis,) = outside
    (low, high), (start, stop) = needed[axis], held[axis]
    if low < start or low >= stop:
        return needed
    return tuple((stop, high) if at == axis else span for at, span in enumerate(needed))


def piece(operator: Operator, box: Box, shapes: dict[str, tuple[int, ...]]) -> Operator:
    """The operator restricted to a box, with loops that count from zero.

    An access that stays inside its tensor is moved to the tensor's beginning, so that equal
    pieces are equal operators wherever they lie.
    """
    return replace(
        operator,
        extents={dim: stop - start for dim, (start, stop) in box.items()},
        inputs=tuple(_at_start(a, box, shapes[a.tensor]) for a in operator.inputs),
        output=_at_start(operator.output, box, shapes[operator.output.tensor]),
    )


def _at_start(access: Access, box: Box, shape: tuple[int, ...]) -> Access:
    extents = {dim: stop - start for dim, (start, stop) in box.items()}
    moved = []
    for index, size in zip(access.index, shape, strict=True):
        here = shifted(index, box)
        low, high = index_range(here, extents)
        inside = low >= 0 and high < size
        moved.append(replace(here, offset=here.offset - low) if inside else here)
    return Access(access.tensor, tuple(moved))


def elements(region: Region) -> int:
    count = 1
    for start, stop in region:
        count *= stop - start
    return count

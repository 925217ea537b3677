"""Are footprints what enumerating index sets gives?

Operators are random: strides, dilations, padding on either side, groups, gaps, mirrored loops,
several axes that share loops. Boxes and tiles are random and ragged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arch.errors import InputError
from mapper.footprint import Footprints, footprints
from mapper.workload.operators import Access, AffineIndex, Operator
from tests.mapper.index_sets import Range, chunks, shares, touched, whole

DIMS = ("n", "c", "p", "r", "q", "s")


@dataclass(frozen=True)
class Case:
    """An operator of one input, and its tensors' shapes."""

    operator: Operator
    shapes: dict[str, tuple[int, ...]]

    @property
    def counts(self) -> Footprints:
        return footprints(self.operator, self.shapes)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shapes["x"]

    @property
    def access(self) -> Access:
        return self.operator.inputs[0]


def case(extents: dict[str, int], index: tuple[AffineIndex, ...], shape: tuple[int, ...]) -> Case:
    operator = Operator(
        name="op",
        kind="op",
        operation="add",
        extents=extents,
        inputs=(Access("x", index),),
        output=Access("y", (AffineIndex((("n", 1),)),)),
        accumulator_dtype="int32",
    )
    return Case(operator, {"x": shape, "y": (extents["n"],)})


@st.composite
def window_axes(draw: st.DrawFn, outer: str, inner: str) -> tuple[dict[str, int], AffineIndex, int]:
    """A sliding window with any stride and dilation, padding (or slack) on both sides."""
    extents = {outer: draw(st.integers(1, 7)), inner: draw(st.integers(1, 4))}
    stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    before, after = (draw(st.sampled_from((0, 0, 0, -1, 1, 2, 3))) for _ in range(2))
    reach = stride * (extents[outer] - 1) + dilation * (extents[inner] - 1) + 1
    offset, size = -before, reach - before - after
    if draw(st.booleans()):  # mirrored: the outer loop runs from the far end
        offset, stride = offset + stride * (extents[outer] - 1), -stride
    if draw(st.booleans()):
        extents = dict(reversed(extents.items()))
    return extents, AffineIndex(((outer, stride), (inner, dilation)), offset), max(1, size)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows, row_index, height = draw(window_axes("p", "r"))
    columns, column_index, width = draw(window_axes("q", "s"))
    n, c = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    channel = AffineIndex((("n", c), ("c", 1)))  # a group and its channel
    extents = {"n": n, "c": c, **rows}
    if draw(st.booleans()):
        return case(extents, (channel, row_index), (n * c, height))
    return case(extents | columns, (channel, row_index, column_index), (n * c, height, width))


@st.composite
def visits(
    draw: st.DrawFn, operator: Operator
) -> tuple[dict[str, int], dict[str, Range], dict[str, int]]:
    """Tiles, a region made of some of them, and instances per dimension."""
    tiles: dict[str, int] = {}
    region: dict[str, Range] = {}
    parallel: dict[str, int] = {}
    for dim, extent in operator.extents.items():
        tiles[dim] = draw(st.integers(1, extent))
        count = -(-extent // tiles[dim])
        first = draw(st.integers(0, count - 1))
        last = draw(st.integers(first + 1, count))
        region[dim] = (first * tiles[dim], min(last * tiles[dim], extent))
        parallel[dim] = draw(st.integers(1, 3))
    return tiles, region, parallel


def serial(operator: Operator) -> dict[str, int]:
    return dict.fromkeys(operator.extents, 1)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_moved_is_what_enumerating_the_tiles_gives(data: st.DataObject) -> None:
    c = data.draw(cases())
    tiles, region, _ = data.draw(visits(c.operator))
    expected = sum(len(touched(c.access, chunk, c.shape)) for chunk in chunks(region, tiles))
    assert c.counts.moved(0, region, tiles, serial(c.operator)) == expected


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_elements_are_the_distinct_ones(data: st.DataObject) -> None:
    c = data.draw(cases())
    assert c.counts.operands[0].elements == len(touched(c.access, whole(c.operator), c.shape))
    assert c.counts.operands[1].elements == c.operator.extents["n"]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_moved_is_additive_over_regions_cut_along_tiles(data: st.DataObject) -> None:
    c = data.draw(cases())
    tiles, region, parallel = data.draw(visits(c.operator))
    dim = data.draw(st.sampled_from(sorted(region)))
    start, stop = region[dim]
    cut = min(start + tiles[dim] * data.draw(st.integers(1, 3)), stop)
    halves = [{**region, dim: span} for span in ((start, cut), (cut, stop)) if span[0] < span[1]]
    for operand in (0, 1):
        for instances in (serial(c.operator), parallel):
            whole_region = c.counts.moved(operand, region, tiles, instances)
            parts = [c.counts.moved(operand, half, tiles, instances) for half in halves]
            assert whole_region == sum(parts)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_each_instance_receives_its_share(data: st.DataObject) -> None:
    """Exact where nothing is padded; padding counts as moved, up to the size of the tensor."""
    c = data.draw(cases())
    tiles, region, parallel = data.draw(visits(c.operator))
    real, padded = 0, 0
    for chunk in chunks(region, tiles):
        for share in shares(chunk, parallel):
            real += len(touched(c.access, share, c.shape))
            padded += len(touched(c.access, share))
    moved = c.counts.moved(0, region, tiles, parallel)
    assert real <= moved <= padded
    if touched(c.access, whole(c.operator), c.shape) == touched(c.access, whole(c.operator)):
        assert moved == real


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_instances_that_share_nothing_receive_what_one_would(data: st.DataObject) -> None:
    """Unrolling a loop that has its own axis moves every element once, wherever it goes."""
    c = data.draw(cases())
    tiles, region, _ = data.draw(visits(c.operator))
    alone = serial(c.operator)
    spread = {**alone, "n": data.draw(st.integers(1, 4)), "c": data.draw(st.integers(1, 4))}
    assert c.counts.moved(0, region, tiles, spread) == c.counts.moved(0, region, tiles, alone)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_held_is_enough_for_every_instance_and_tight_without_padding(data: st.DataObject) -> None:
    c = data.draw(cases())
    tiles, _, parallel = data.draw(visits(c.operator))
    held = c.counts.held(0, tiles, parallel)
    needed = [
        len(touched(c.access, share, c.shape))
        for chunk in chunks(whole(c.operator), tiles)
        for share in shares(chunk, parallel)
    ]
    assert max(needed) <= held <= math.prod(c.shape)
    if touched(c.access, whole(c.operator), c.shape) == touched(c.access, whole(c.operator)):
        assert max(needed) == held


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_groups_multiply_to_the_whole(data: st.DataObject) -> None:
    c = data.draw(cases())
    tiles, region, parallel = data.draw(visits(c.operator))
    assert sorted(dim for group in c.counts.groups for dim in group) == sorted(c.operator.extents)
    factors = [c.counts.group_moved(g, 0, region, tiles, parallel) for g in c.counts.groups]
    assert math.prod(factors) == c.counts.moved(0, region, tiles, parallel)


def test_a_window_moves_its_halo_once_per_tile() -> None:
    """Closed form: 3-wide windows over 12 outputs in tiles of 4 read 4 + 2 each."""
    index = (AffineIndex((("p", 1), ("r", 1))),)
    c = case({"n": 1, "p": 12, "r": 3}, index, (14,))
    region, alone = whole(c.operator), serial(c.operator)
    assert c.counts.moved(0, region, {"n": 1, "p": 4, "r": 3}, alone) == 3 * 6
    assert c.counts.moved(0, region, {"n": 1, "p": 4, "r": 1}, alone) == 3 * 3 * 4
    assert c.counts.held(0, {"n": 1, "p": 4, "r": 3}, alone) == 6


def test_no_more_is_held_than_there_is() -> None:
    """Closed form: 4 windows of 3 with a zero on either side reach 6 positions, 4 of them real."""
    c = case({"n": 1, "p": 4, "r": 3}, (AffineIndex((("p", 1), ("r", 1)), -1),), (4,))
    assert c.counts.held(0, dict(c.operator.extents), serial(c.operator)) == 4
    assert c.counts.held(0, {"n": 1, "p": 1, "r": 3}, serial(c.operator)) == 3


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_windows_overlap_meet_or_leave_gaps(stride: int) -> None:
    """Closed form: 6 windows of 3 share 2 elements, share 1, just meet, leave 1 out."""
    index = (AffineIndex((("p", stride), ("r", 1))),)
    c = case({"n": 1, "p": 6, "r": 3}, index, (5 * stride + 3,))
    assert c.counts.operands[0].elements == min(5 * stride + 3, 6 * 3)
    assert c.counts.groups == ((("n",), ("p", "r")) if stride < 3 else (("n",), ("p",), ("r",)))


def test_multicast_counts_a_copy_per_instance() -> None:
    """Closed form: what does not depend on an unrolled loop is copied to its instances."""
    c = case({"n": 1, "p": 6, "r": 5}, (AffineIndex((("p", 1),)),), (6,))
    region, tiles = whole(c.operator), {"n": 1, "p": 2, "r": 4}
    for copies in (1, 2, 3, 4):
        parallel = {**serial(c.operator), "r": copies}
        assert c.counts.moved(0, region, tiles, parallel) == 6 * (copies + 1)  # 4 and 1 of r


AXES = {
    "diagonal": ((AffineIndex((("p", 1),)), AffineIndex((("p", 1),))), (9, 9)),
    "band": ((AffineIndex((("p", 1), ("r", 1))), AffineIndex((("p", 1),))), (12, 9)),
    "two windows on one loop": (
        (AffineIndex((("p", 1), ("r", 1))), AffineIndex((("p", 2), ("c", 1)))),
        (12, 20),
    ),
    "one loop twice on an axis": ((AffineIndex((("p", 1), ("p", 1), ("r", 2))),), (24,)),
    "no effect": ((AffineIndex((("p", 1), ("r", 0))),), (9,)),
}


@pytest.mark.parametrize("name", AXES)
def test_axes_that_share_loops_are_counted_together(name: str) -> None:
    index, shape = AXES[name]
    c = case({"n": 2, "p": 9, "r": 3, "c": 2}, index, shape)
    region, alone = whole(c.operator), serial(c.operator)
    assert c.counts.operands[0].elements == len(touched(c.access, region, shape))
    tiles = {"n": 1, "p": 4, "r": 2, "c": 1}
    expected = sum(len(touched(c.access, chunk, shape)) for chunk in chunks(region, tiles))
    assert c.counts.moved(0, region, tiles, alone) == expected


def test_axes_that_share_loops_and_reach_into_padding_are_refused() -> None:
    index = (AffineIndex((("p", 1), ("r", 1)), -1), AffineIndex((("p", 1),)))
    with pytest.raises(InputError, match="operator op: access to x: axes that share a loop"):
        _ = case({"n": 1, "p": 4, "r": 3}, index, (4, 4)).counts


def test_windows_joined_by_another_operand_are_both_counted() -> None:
    """A second operand may tie two windows of the first into one group of loops."""
    extents = {"n": 1, "p": 4, "r": 3, "q": 3, "s": 2}
    windows = (AffineIndex((("p", 1), ("r", 1))), AffineIndex((("q", 2), ("s", 1)), -1))
    tie = Access("z", (AffineIndex((("p", 1), ("q", 1))),))
    base = case(extents, windows, (6, 5)).operator
    operator = Operator(
        name="op",
        kind="op",
        operation="mul",
        extents=extents,
        inputs=(base.inputs[0], tie),
        output=base.output,
        accumulator_dtype="int32",
    )
    counts = footprints(operator, {"x": (6, 5), "z": (6,), "y": (1,)})
    assert counts.groups == (("n",), ("p", "r", "q", "s"))
    region, tiles = whole(operator), {"n": 1, "p": 2, "r": 2, "q": 2, "s": 1}
    expected = sum(len(touched(operator.inputs[0], b, (6, 5))) for b in chunks(region, tiles))
    assert counts.moved(0, region, tiles, serial(operator)) == expected

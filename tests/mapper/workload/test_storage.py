"""Does a view address exactly the elements that torch's view of the same tensor shows?"""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mapper.workload.operators import AffineIndex
from mapper.workload.torch_import import storage as stored
from mapper.workload.torch_import.storage import Axis, Storage, View, ViewAxis, fresh

SHAPES = st.lists(st.sampled_from((1, 2, 3, 4, 6)), min_size=1, max_size=4)


def new(*shape: int) -> Storage:
    return Storage(name="t", dtype="int8", kind="input", axes=[Axis(size=size) for size in shape])


def elements(view: View, original: list[Axis]) -> np.ndarray:
    """The row-major number, by the axes as first stored, of each element of the view."""
    numbers = np.empty(view.shape, dtype=np.int64)
    for point in itertools.product(*map(range, view.shape)):
        index = tuple(AffineIndex((), position) for position in point)
        place = dict(zip(view.storage.axes, view.address(index), strict=True))
        number = 0
        for axis in original:
            root, step = axis.stored()
            number = number * axis.size + place[root].offset // step % axis.size
        numbers[point] = number
    return numbers


def factorizations(size: int) -> st.SearchStrategy[list[int]]:
    """Shapes of ``size`` elements."""

    @st.composite
    def shape(draw: st.DrawFn) -> list[int]:
        left, factors = size, []
        while left > 1 and len(factors) < 4:
            factor = draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
            factors.append(factor)
            left //= factor
        return [*factors, left]

    return shape()


@settings(max_examples=200, deadline=None)
@given(st.data(), SHAPES)
def test_any_sequence_of_views(data: st.DataObject, shape: list[int]) -> None:
    storage = new(*shape)
    original = list(storage.axes)
    view, expected = fresh(storage), torch.arange(math.prod(shape)).reshape(shape)
    for _ in range(data.draw(st.integers(1, 5))):
        step = data.draw(st.sampled_from(STEPS))
        view, expected = step(data, view, expected)
    np.testing.assert_array_equal(elements(view, original), expected.numpy())


def permuted(data: st.DataObject, view: View, x: torch.Tensor) -> tuple[View, torch.Tensor]:
    order = data.draw(st.permutations(range(x.ndim)))
    return stored.permute(view, order), x.permute(order)


def narrowed(data: st.DataObject, view: View, x: torch.Tensor) -> tuple[View, torch.Tensor]:
    if x.ndim == 0:
        return view, x
    dim = data.draw(st.integers(0, x.ndim - 1))
    start = data.draw(st.integers(0, x.shape[dim] - 1))
    step = data.draw(st.integers(1, 2))
    taken = x[(slice(None),) * dim + (slice(start, None, step),)]
    return stored.narrow(view, dim, start, taken.shape[dim], step), taken


def selected(data: st.DataObject, view: View, x: torch.Tensor) -> tuple[View, torch.Tensor]:
    if x.ndim == 0:
        return view, x
    dim = data.draw(st.integers(0, x.ndim - 1))
    position = data.draw(st.integers(0, x.shape[dim] - 1))
    return stored.select(view, dim, position), x.select(dim, position)


def inserted(data: st.DataObject, view: View, x: torch.Tensor) -> tuple[View, torch.Tensor]:
    if x.ndim > 4:
        return view, x
    dim, size = data.draw(st.integers(0, x.ndim)), data.draw(st.integers(1, 2))
    repeated = x.unsqueeze(dim)
    return stored.insert(view, dim, size), repeated.repeat_interleave(size, dim)


def reshaped(data: st.DataObject, view: View, x: torch.Tensor) -> tuple[View, torch.Tensor]:
    """Where a reshape cannot be a view, the original stays as it was."""
    shape = data.draw(factorizations(x.numel()))
    result = stored.reshape(view, shape)
    return (view, x) if result is None else (result, x.reshape(shape))


def joined(data: st.DataObject, view: View, x: torch.Tensor) -> tuple[View, torch.Tensor]:
    result = stored.join_leading(view, data.draw(st.integers(0, x.ndim)))
    return result, x.reshape(result.shape)


STEPS = (permuted, narrowed, selected, inserted, reshaped, joined)


def test_heads_are_split_and_joined_without_a_copy() -> None:
    """[batch, rows, heads * size] to heads and back: one stored matrix, two stored axes."""
    storage = new(2, 5, 12)
    rows = stored.join_leading(fresh(storage), 1)
    heads = stored.reshape(rows, (2, 5, 4, 3))
    assert heads is not None
    back = stored.reshape(heads, (2, 5, 12))
    assert back is not None
    assert storage.shape == (10, 12)
    assert back.address([AffineIndex((("B", 1),)), AffineIndex(()), AffineIndex((("D", 1),))]) == (
        AffineIndex((("B", 5),)),
        AffineIndex((("D", 1),)),
    )


def test_a_padded_axis_is_never_joined() -> None:
    storage = new(3, 4)
    storage.axes[1].padded = True
    assert stored.reshape(fresh(storage), (12,)) is None
    assert storage.shape == (3, 4)


def test_repeated_values_join_only_with_each_other() -> None:
    view = stored.insert(stored.insert(fresh(new(3)), 1, 2), 1, 4)
    assert stored.reshape(view, (3, 8)) is not None
    assert stored.reshape(view, (12, 2)) is None


def test_broadcasting_follows_torch() -> None:
    view = stored.broadcast(fresh(new(3, 1)), (2, 3, 4))
    assert view.axes[0] == ViewAxis(2)
    assert view.axes[2] == ViewAxis(4)
    assert view.shape == (2, 3, 4)

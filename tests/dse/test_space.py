"""Is the space what it says: counted, enumerated, and encoded without loss?"""

from __future__ import annotations

import math

import numpy as np
import pytest
import toy_problem
from hypothesis import given
from hypothesis import strategies as st

from dse.space import Parameter, Space


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    return Space(
        parameters=tuple(
            Parameter(
                path=f"p{i}.x",
                values=tuple(f"{v} KiB" for v in range(size)),
                ordered=draw(st.booleans()),
                ties=draw(st.sampled_from(((), (f"p{i}.y",)))),
            )
            for i, size in enumerate(sizes)
        )
    )


@given(spaces())
def test_enumeration_lists_each_point_once_and_as_many_as_counted(space: Space) -> None:
    points = list(space.points())
    assert len(points) == len(set(points)) == space.size
    assert space.size == math.prod(len(p.values) for p in space.parameters)


@given(spaces())
def test_overrides_and_points_are_each_others_inverse(space: Space) -> None:
    for point in space.points():
        overrides = space.overrides(point)
        assert space.contains(overrides)
        assert space.point(overrides) == point


@given(spaces(), st.integers(0, 100))
def test_samples_are_points(space: Space, seed: int) -> None:
    assert space.sample(np.random.default_rng(seed)) in set(space.points())


def test_tied_parameters_take_the_value_of_the_one_they_follow() -> None:
    rows = Parameter(path="array.rows", values=(8, 16), ordered=True, ties=("array.cols",))
    assert Space(parameters=(rows,)).overrides((1,)) == {"array.rows": 16, "array.cols": 16}


def test_a_foreign_point_is_not_in_the_space() -> None:
    assert not toy_problem.SPACE.contains({})
    inside = toy_problem.SPACE.overrides((0, 0, 0, 0))
    assert not toy_problem.SPACE.contains({**inside, "array.rows": 5})
    with pytest.raises(ValueError, match="not in tuple"):
        toy_problem.SPACE.point({**inside, "array.rows": 5})

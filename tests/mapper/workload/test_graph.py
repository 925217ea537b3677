"""Is an ill-formed workload refused, with each thing that is wrong named?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arch.errors import InputError
from mapper.workload.graph import Workload, index_range
from mapper.workload.nests import at
from mapper.workload.operators import Access, AffineIndex, Operator, Tensor


def tensor(name: str, kind: str, *shape: int) -> Tensor:
    return Tensor(name=name, shape=shape or (4,), dtype="int8", kind=kind)


def copy(name: str, source: str, target: str, *, offset: int = 0, extent: int = 4) -> Operator:
    """Copies ``extent`` elements to position ``offset``."""
    return Operator(
        name=name,
        kind="copy",
        operation="copy",
        extents={"I": extent},
        inputs=(Access(source, at("I")),),
        output=Access(target, (AffineIndex((("I", 1),), offset),)),
        accumulator_dtype="int8",
    )


X, Y, Z = tensor("x", "input"), tensor("y", "activation"), tensor("z", "output")
FIRST, SECOND = copy("first", "x", "y"), copy("second", "y", "z")


def problems(tensors: tuple[Tensor, ...], operators: tuple[Operator, ...]) -> list[str]:
    with pytest.raises(InputError) as caught:
        Workload(name="w", tensors=tensors, operators=operators)
    return [str(problem) for problem in caught.value.problems]


def assert_refused(
    tensors: tuple[Tensor, ...], operators: tuple[Operator, ...], *messages: str
) -> None:
    found = problems(tensors, operators)
    assert len(found) == len(messages), found
    for problem, message in zip(found, messages, strict=True):
        assert message in problem


def test_a_chain_is_accepted() -> None:
    workload = Workload(name="w", tensors=(X, Y, Z), operators=(FIRST, SECOND))
    assert workload.tensor("y") is Y
    assert workload.operator("second") is SECOND
    assert workload.macs == workload.parameters == 0


def test_unknown_names_are_key_errors() -> None:
    workload = Workload(name="w", tensors=(X, Y, Z), operators=(FIRST, SECOND))
    with pytest.raises(KeyError, match="nothing"):
        workload.tensor("nothing")
    with pytest.raises(KeyError, match="nothing"):
        workload.operator("nothing")


def test_order_and_cycles() -> None:
    back = copy("back", "z", "y")
    assert_refused((X, Y, Z), (SECOND, FIRST), "reads y before", "writes y after second has read")
    assert_refused((Y, Z), (copy("first", "z", "y"), SECOND), "reads z before", "writes z after")
    assert_refused((X, Y, Z), (FIRST, SECOND, back), "writes y after second", "first has already")


def test_nothing_to_compute() -> None:
    assert_refused((X,), (), "nothing to compute")


def test_names_are_unique() -> None:
    assert_refused((X, X, Y), (FIRST,), "two tensors are named 'x'")
    assert_refused((X, Y, Z), (FIRST, FIRST), "two operators are named 'first'")


def test_everything_wrong_is_listed_at_once() -> None:
    bad = replace(X, shape=(0,), dtype="fp7", kind="constant")
    found = problems((bad, Y), (replace(FIRST, operation="dance"),))
    assert len(found) == 4 + 1  # size, data type, kind, operation; x has no element to read


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (copy("c", "nowhere", "y"), "no tensor of this name"),
        (copy("c", "x", "y", extent=5), "axis 0 has size 4, the loops reach 0 to 4"),
        (copy("c", "x", "y", offset=-1), "the loops reach -1 to 2"),
        (copy("c", "x", "y", extent=0), "extent of loop I is 0"),
        (replace(FIRST, inputs=(Access("x", at("J")),)), "loops J are not in I"),
        (replace(FIRST, inputs=(Access("x", at("I", "I")),)), "2 index expressions for a tensor"),
        (replace(FIRST, operation="mac"), "a mac has 2 inputs, this one 1"),
        (replace(FIRST, ops_per_point=0), "ops_per_point is 0"),
        (replace(FIRST, accumulator_dtype="fp7"), "unknown data type 'fp7'"),
        (
            replace(FIRST, inputs=(Access("x", (AffineIndex((("I", 1),), -4),)),)),
            "the loops reach -4 to -1",
        ),
    ],
)
def test_operator_rules(operator: Operator, message: str) -> None:
    assert any(message in problem for problem in problems((X, Y), (operator,)))


def test_padding_is_read_but_not_written() -> None:
    """Both sides of the gate: one element inside is enough to read, all must be to write."""
    padded = replace(FIRST, inputs=(Access("x", (AffineIndex((("I", 1),), -3),)),))
    Workload(name="w", tensors=(X, Y), operators=(padded,))
    assert problems((X, Y), (replace(FIRST, output=padded.inputs[0]),))


def test_parts_of_a_concatenation_are_disjoint() -> None:
    joined = tensor("y", "output", 8)
    parts = tuple(copy(f"part{at}", "x", "y", offset=at) for at in (0, 4))
    Workload(name="w", tensors=(X, joined), operators=parts)
    overlapping = (parts[0], copy("late", "x", "y", offset=3))
    assert_refused((X, joined), overlapping, "part0 has already written part of y")


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(0, 4))
def test_interleaved_parts(batches: int, one: int, other: int, start: int) -> None:
    """Rows of two parts alternate on one axis: accepted exactly if they do not meet."""
    period = 8
    source, joined = tensor("x", "input", batches * 8), tensor("y", "output", batches * period)
    parts = tuple(
        Operator(
            name=name,
            kind="copy",
            operation="copy",
            extents={"B": batches, "I": size},
            inputs=(Access("x", (AffineIndex((("B", 8), ("I", 1))),)),),
            output=Access("y", (AffineIndex((("B", period), ("I", 1)), offset),)),
            accumulator_dtype="int8",
        )
        for name, size, offset in (("one", one, 0), ("other", other, start))
    )
    if start >= one:
        Workload(name="w", tensors=(source, joined), operators=parts)
    else:
        assert_refused((source, joined), parts, "one has already written part of y")


def test_only_copies_update_an_input_and_nothing_a_weight() -> None:
    cache, update = tensor("cache", "input"), copy("update", "x", "cache", offset=3, extent=1)
    Workload(name="w", tensors=(X, cache, Y), operators=(update, copy("read", "cache", "y")))
    added = replace(update, operation="add")
    assert_refused((X, cache), (added,), "writes cache, which is of kind input")
    weight = replace(cache, kind="weight")
    assert_refused((X, weight), (update,), "writes cache, which is of kind weight")


def test_an_output_is_produced() -> None:
    assert_refused((X, Y, Z), (FIRST,), "tensor z: is an output that no operator produces")


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), max_size=3), st.integers(-5, 5))
def test_index_range_is_that_of_all_points(loops: list[tuple[int, int]], offset: int) -> None:
    extents = {f"D{at}": extent for at, (_, extent) in enumerate(loops)}
    index = AffineIndex(tuple((f"D{at}", step) for at, (step, _) in enumerate(loops)), offset)
    values = {offset}
    for step, extent in loops:
        values = {value + step * at for value in values for at in range(extent)}
    assert index_range(index, extents) == (min(values), max(values))

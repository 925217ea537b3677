"""Do the short forms of a parameter mean the values that a person would write out?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arch import units
from arch.errors import InputError
from dse import domains


@pytest.mark.parametrize(
    ("form", "values"),
    [
        ({"pow2": [4, 64]}, (4, 8, 16, 32, 64)),
        ({"pow2": ["512 KiB", "2 MiB"]}, ("512 KiB", "1 MiB", "2 MiB")),
        ({"pow2": ["0.5 GB/s", "2 GB/s"]}, ("0.5 GB/s", "1 GB/s", "2 GB/s")),
        ({"pow2": ["32KiB", "64KiB"]}, ("32 KiB", "64 KiB")),
        ({"range": [1, 4]}, (1, 2, 3, 4)),
        ({"range": [8, 32], "step": 12}, (8, 20, 32)),
        ({"range": ["200 MHz", "1 GHz"], "step": "400 MHz"}, ("200 MHz", "600 MHz", "1000 MHz")),
        ({"range": ["0 ns", "10 ns"], "step": "5 ns"}, ("0 ns", "5 ns", "10 ns")),
        ({"range": [0, 1], "step": 0.5}, (0, 0.5, 1)),
        ({"choices": ["1 MiB", "64 KiB"]}, ("64 KiB", "1 MiB")),
        ({"choices": [32, 8, 12]}, (8, 12, 32)),
    ],
)
def test_ordered_forms(form: dict[str, Any], values: tuple[Any, ...]) -> None:
    assert domains.expand(form) == (values, True)


@pytest.mark.parametrize(
    "values",
    [
        ["weight_stationary", "free"],
        [True, False],
        ["auto", "1 pJ"],
        ["16 B/cycle", "8 GB/s"],
        [["int8"], ["int8", "int16"]],
    ],
)
def test_values_that_cannot_be_compared_are_labels_in_their_order(values: list[Any]) -> None:
    assert domains.expand({"choices": values}) == (tuple(values), False)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"pow2": ["32 KiB", "96 KiB"]}, "not '32 KiB' doubled"),
        ({"pow2": ["2 MiB", "1 KiB"]}, "is empty"),
        ({"pow2": [0, 8]}, "above zero"),
        ({"pow2": [8]}, "two quantities of one kind"),
        ({"pow2": ["1 B", "1 GHz"]}, "two quantities of one kind"),
        ({"range": [1, 8], "step": 3}, "do not reach 8"),
        ({"range": [1, 8], "step": 0}, "above zero"),
        ({"range": [1, 8], "step": "1 B"}, "is not a quantity like 1"),
        ({"range": ["1 B", "8 GiB"], "step": "1 B"}, "is the unit right?"),
        ({"range": [True, 4]}, "two quantities of one kind"),
        ({"choices": []}, "at least one"),
        ({"choices": [4, 8, 4]}, "4 more than once"),
        ({"choices": ["1 KiB", "1024 B"]}, "same quantity twice"),
    ],
)
def test_forms_that_make_no_sense_say_why(form: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        domains.expand(form)


@given(st.integers(1, 2**20), st.integers(1, 20))
def test_each_doubling_is_twice_the_last(low: int, doublings: int) -> None:
    values, _ = domains.expand({"pow2": [f"{low} B", f"{low * 2**doublings} B"]})
    sizes = [units.parse_size(v) for v in values]
    assert sizes == [low * 2**i for i in range(doublings + 1)]

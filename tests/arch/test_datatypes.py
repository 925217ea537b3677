"""Number formats: widths with scales, what fits into what, sparsity's bits."""

from __future__ import annotations

from fractions import Fraction

import pytest

from arch.datatypes import BITS, accumulator_of, bits_of, datatype, is_dtype, sparsity
from arch.errors import InputError

#: Bits per element with scales, from the formats' definitions (OCP MX v1.0; NVIDIA's NVFP4;
#: GPTQ's groups of 128 with an fp16 scale; five trits in eight bits).
WIDTHS = {
    "int8": 8,
    "int3": 3,
    "uint4": 4,
    "e5m2": 8,
    "e4m3": 8,
    "mxfp8": 8 + Fraction(8, 32),
    "mxfp6": 6 + Fraction(8, 32),
    "mxfp4": 4 + Fraction(8, 32),
    "mxint8": 8 + Fraction(8, 32),
    "nvfp4": 4 + Fraction(8, 16),
    "int4_g128": 4 + Fraction(16, 128),
    "ternary": Fraction(8, 5),
}


@pytest.mark.parametrize("name", WIDTHS)
def test_scales_are_part_of_the_width(name: str) -> None:
    assert bits_of(name) == WIDTHS[name]


def test_plain_formats_have_whole_widths() -> None:
    for name, bits in BITS.items():
        assert bits_of(name) == bits
        assert isinstance(bits_of(name), int)


@pytest.mark.parametrize(
    ("narrow", "wide", "fits"),
    [
        ("int4", "int8", True),
        ("int8", "int4", False),
        ("uint8", "int8", False),
        ("uint8", "int9", True),
        ("ternary", "int2", True),
        ("int8", "fp16", True),
        ("int16", "fp16", False),
        ("bf16", "fp16", False),
        ("fp16", "fp32", True),
        ("e4m3", "fp8", True),
        ("fp8", "bf16", True),
        ("fp8", "e4m3", False),
        ("mxfp4", "bf16", True),
        ("mxfp4", "fp8", False),
        ("int4_g128", "fp16", True),
        ("int4_g128", "int8", False),
        ("fp16", "int32", False),
    ],
)
def test_what_a_wider_unit_can_compute(narrow: str, wide: str, fits: bool) -> None:
    assert datatype(narrow).fits_in(datatype(wide)) is fits


@pytest.mark.parametrize(
    ("dtypes", "sum_in"),
    [
        (("int8",), "int32"),
        (("ternary", "int8"), "int32"),
        (("int4_g128", "fp16"), "fp32"),
        (("int4", "bf16"), "fp32"),
        (("int64", "int8"), "int64"),
        (("fp64", "int64"), "fp64"),
    ],
)
def test_sums(dtypes: tuple[str, ...], sum_in: str) -> None:
    assert accumulator_of(*dtypes) == sum_in


@pytest.mark.parametrize("name", ["int0", "int65", "int", "fp7", "mxfp5", "int4_g0", "nvfp4_g16"])
def test_no_such_format(name: str) -> None:
    assert not is_dtype(name)
    with pytest.raises(InputError, match="unknown data type"):
        datatype(name)


@pytest.mark.parametrize(
    ("text", "element", "stored"),
    [
        # 2 of 4, each with a 2-bit index: the layout of NVIDIA's sparse tensor cores.
        ("2:4", 16, Fraction(2, 4) * (16 + 2)),
        ("1:8", 8, Fraction(1, 8) * (8 + 3)),
        ("0.1", 8, Fraction(1, 10) * 8 + 1),
        ("0.25@16x16", 8, Fraction(1, 4) * 8 + Fraction(1, 256)),
        # Storing it densely takes less.
        ("0.9", 4, 4),
    ],
)
def test_stored_bits_of_sparse_tensors(text: str, element: int, stored: Fraction) -> None:
    found = sparsity(text)
    assert found is not None
    assert found.stored_bits(element) == stored


def test_dense_is_no_sparsity() -> None:
    assert sparsity("1") is None


@pytest.mark.parametrize("text", ["4:2", "0", "1.5", "2:", "0.5@16", "half", "0:4", ""])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no sparsity; allowed 2:4"):
        sparsity(text)

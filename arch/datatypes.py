"""Number formats: how wide a value is and what its sums are kept in."""

from __future__ import annotations

from arch.errors import InputError, Problem, unknown

#: Width in bits. ``fp8`` stands for both OCP 8-bit formats, e4m3 and e5m2.
BITS = {
    "int4": 4,
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "fp8": 8,
    "bf16": 16,
    "fp16": 16,
    "fp32": 32,
    "fp64": 64,
}

#: Formats as wide as their own accumulator, beyond int32 and fp32.
_WIDE = ("int64", "fp64")


def check_dtype(name: str, where: str = "dtype") -> str:
    """``name`` if it is a known number format, else ``InputError`` with a suggestion."""
    if name not in BITS:
        raise InputError(Problem(unknown("data type", name, list(BITS)), where=where))
    return name


def accumulator_of(dtype: str) -> str:
    """The format in which sums of ``dtype`` are kept: int32 or fp32, or as wide as it is."""
    if dtype in _WIDE:
        return dtype
    return "int32" if dtype.startswith("int") else "fp32"

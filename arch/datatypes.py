"""Number formats and sparsity: how many bits an element takes and what its sums are kept in.

Besides the plain formats of ``BITS`` there are families, recognized by their names:

- ``int5``, ``uint4``: integers of any width up to 64 bits; ``e5m2``, ``e8m10``: floating point
  with a sign, so many exponent and so many mantissa bits.
- ``int4_g128``: integers with one fp16 scale per group of 128 (weight-only quantization as in
  GPTQ, Frantar et al., 2022, and AWQ, Lin et al., 2023).
- ``mxfp8``, ``mxfp6``, ``mxfp4``, ``mxint8``: blocks of 32 with an 8-bit power of two (OCP
  Microscaling Formats specification v1.0, 2023).
- ``nvfp4``: blocks of 16 e2m1 elements with an e4m3 scale (NVIDIA Blackwell; the tensor's own
  fp32 scale is not counted).
- ``ternary``: -1, 0, 1, five in a byte, since 3**5 = 243.

Scales are part of an element's width, which is therefore an exact fraction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

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

#: A number of bits: whole wherever it can be, so that ordinary formats stay fast.
Bits = int | Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class DataType:
    """A format. ``exponent`` is 0 for integers; ``significant`` counts the sign of integers.

    ``scale_bits`` are shared by ``block`` elements.
    """

    name: str
    element_bits: Bits
    significant: int
    exponent: int = 0
    scale_bits: int = 0
    block: int = 1

    @property
    def is_float(self) -> bool:
        return self.exponent > 0

    @property
    def is_scaled(self) -> bool:
        return self.scale_bits > 0

    @property
    def bits(self) -> Bits:
        """Bits of an element, with its share of the scale."""
        return whole(self.element_bits + Fraction(self.scale_bits, self.block))

    def fits_in(self, other: DataType) -> bool:
        """Whether a unit that computes in ``other`` can take these values, widened on the way.

        Scaled blocks become floating point of 16 bits or more (scales may round there, as in
        every kernel that dequantizes); everything else must be represented exactly.
        """
        if self.name == other.name:
            return True
        if other.is_scaled:
            return False
        if self.is_scaled:
            return other.is_float and other.bits >= 16
        enough = self.significant <= other.significant + (other.is_float and not self.is_float)
        return enough and self.exponent <= other.exponent


def whole(bits: Bits) -> Bits:
    """The same number, as an integer if it is one."""
    return int(bits) if bits.denominator == 1 else bits


def _float(name: str, exponent: int, mantissa: int, bits: int | None = None) -> DataType:
    width = 1 + exponent + mantissa if bits is None else bits
    return DataType(name=name, element_bits=width, significant=mantissa + 1, exponent=exponent)


def _integer(name: str, bits: int) -> DataType:
    return DataType(name=name, element_bits=bits, significant=bits)


def _scaled(name: str, element_bits: int, scale_bits: int, block: int) -> DataType:
    return DataType(
        name=name,
        element_bits=element_bits,
        significant=element_bits,
        scale_bits=scale_bits,
        block=block,
    )


_NAMED = {
    dtype.name: dtype
    for dtype in (
        *(_integer(name, bits) for name, bits in BITS.items() if name.startswith("int")),
        # Both formats of fp8 fit into what holds 5 exponent and 3 mantissa bits.
        _float("fp8", 5, 3, bits=8),
        _float("bf16", 8, 7),
        _float("fp16", 5, 10),
        _float("fp32", 8, 23),
        _float("fp64", 11, 52),
        _scaled("mxfp8", 8, 8, 32),
        _scaled("mxfp6", 6, 8, 32),
        _scaled("mxfp4", 4, 8, 32),
        _scaled("mxint8", 8, 8, 32),
        _scaled("nvfp4", 4, 8, 16),
        DataType(name="ternary", element_bits=Fraction(8, 5), significant=2),
    )
}

#: For messages: what may be written where a data type is expected.
ALLOWED = f"{', '.join(_NAMED)}, int1 to int64, uint1 to uint64, e4m3, int4_g128"

_INTEGER = re.compile(r"(u?)int([1-9]\d?)(?:_g([1-9]\d{0,5}))?")
_FLOAT = re.compile(r"e([1-9]\d?)m(\d\d?)")
_MAX_INTEGER_BITS = 64
_GROUP_SCALE_BITS = 16


@lru_cache(maxsize=256)
def datatype(name: str, where: str = "dtype") -> DataType:
    """The format of that name; ``InputError`` with a suggestion if there is none."""
    if name in _NAMED:
        return _NAMED[name]
    found = _integer_named(name) or _float_named(name)
    if found is None:
        message = f"{unknown('data type', name, list(_NAMED))}; also int5, uint4, e5m2, int4_g128"
        raise InputError(Problem(message, where=where))
    return found


def _integer_named(name: str) -> DataType | None:
    match = _INTEGER.fullmatch(name)
    if match is None or int(match[2]) > _MAX_INTEGER_BITS:
        return None
    bits = int(match[2])
    if match[3] is not None:
        return _scaled(name, bits, _GROUP_SCALE_BITS, int(match[3]))
    return DataType(name=name, element_bits=bits, significant=bits + (match[1] == "u"))


def _float_named(name: str) -> DataType | None:
    match = _FLOAT.fullmatch(name)
    return _float(name, int(match[1]), int(match[2])) if match else None


def bits_of(name: str) -> Bits:
    """Bits of an element of the named format, with its share of scales."""
    return datatype(name).bits


def is_dtype(name: str) -> bool:
    return name in _NAMED or (_integer_named(name) or _float_named(name)) is not None


#: Formats as wide as their own accumulator, beyond int32 and fp32.
_WIDE = ("int64", "fp64")


def check_dtype(name: str, where: str = "dtype") -> str:
    """``name`` if hardware may compute in it, else ``InputError`` with a suggestion."""
    if name not in BITS:
        raise InputError(Problem(unknown("data type", name, list(BITS)), where=where))
    return name


def accumulator_of(*dtypes: str) -> str:
    """The format in which sums of products of these are kept.

    int32 or fp32, or as wide as the widest of them.
    """
    for wide in reversed(_WIDE):
        if wide in dtypes:
            return wide
    kinds = [datatype(dtype) for dtype in dtypes]
    return "fp32" if any(kind.is_float or kind.is_scaled for kind in kinds) else "int32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparsity:
    """Zeros of a tensor that are not stored: spread evenly, as far as counts are concerned.

    ``density`` is the share of elements that are kept; ``structure`` is ``unstructured`` (any),
    ``block`` (whole blocks) or ``2:4`` (so many of every so many neighbours).
    ``metadata_bits``, per element of the dense tensor, say where the kept ones are.
    """

    density: Fraction
    structure: str
    metadata_bits: Fraction

    def stored_bits(self, element_bits: Bits) -> Bits:
        """Bits per element of the dense tensor; never more than storing it densely."""
        return whole(min(Fraction(element_bits), self.density * element_bits + self.metadata_bits))


_OF = re.compile(r"([1-9]\d*):([1-9]\d*)")
_SHARE = re.compile(r"(0?\.\d{1,6}|1|1\.0)(?:@([1-9]\d*)x([1-9]\d*))?")
SPARSITY_ALLOWED = (
    "2:4 (2 of every 4 kept), 0.1 (any tenth kept, a bit per element says which), "
    "0.25@16x16 (a quarter of the 16x16 blocks kept)"
)


def sparsity(text: str, where: str = "sparsity") -> Sparsity | None:
    """The sparsity that ``text`` describes, ``None`` if it is ``1`` (dense).

    ``InputError`` if it describes none.
    """
    if match := _OF.fullmatch(text):
        kept, of = int(match[1]), int(match[2])
        if kept < of:
            index_bits = (of - 1).bit_length()
            return Sparsity(
                density=Fraction(kept, of),
                structure=text,
                metadata_bits=Fraction(kept * index_bits, of),
            )
    elif match := _SHARE.fullmatch(text):
        return _share(match)
    raise InputError(Problem(f"{text!r} is no sparsity; allowed {SPARSITY_ALLOWED}", where=where))


def _share(match: re.Match[str]) -> Sparsity | None:
    density = Fraction(match[1])
    if density == 1:
        return None
    if match[2] is None:
        return Sparsity(density=density, structure="unstructured", metadata_bits=Fraction(1))
    block = int(match[2]) * int(match[3])
    return Sparsity(density=density, structure="block", metadata_bits=Fraction(1, block))

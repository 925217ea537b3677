"""Bit-accurate multiply-accumulate of tensor cores: one output element is a fused sum of products.

Products are exact. Every term (the products and the accumulator) is aligned to the largest exponent
and cut, towards zero, to so many fractional bits; the sum of what remains is exact and is cut to
the result's format. How many bits depends on the generation and the path (MMA-Sim,
github.com/microsoft/MMA-Sim, which found these rules on real hardware); ours are checked on an H200
by ``python -m kernels_ref.measure.numerics``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bits = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A floating-point format. ``finite`` ones have no infinities and one NaN (e4m3)."""

    exponent_bits: int
    mantissa_bits: int
    finite: bool = False

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1


FORMATS = {
    "fp16": Format(exponent_bits=5, mantissa_bits=10),
    "bf16": Format(exponent_bits=8, mantissa_bits=7),
    "tf32": Format(exponent_bits=8, mantissa_bits=10),
    "e4m3": Format(exponent_bits=4, mantissa_bits=3, finite=True),
    "e5m2": Format(exponent_bits=5, mantissa_bits=2),
    "fp32": Format(exponent_bits=8, mantissa_bits=23),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Fractional bits that terms keep, and mantissa bits of the (fp32) result.

    ``pairs``: the instruction runs as two of half the depth in fp16, the first with every other
    pair of products, the second with the rest and the result of the first.
    """

    fraction_bits: int
    result_bits: int
    pairs: bool = False


#: (generation, path) -> rules: ``half`` is fp16, bf16 and tf32, ``eight`` the 8-bit formats.
#: ``eight.mma`` are 8-bit formats in instructions of one warp, which a Hopper GPU converts to fp16:
#: seen on an H200 (kernels_ref/data/h200_mma.json), not described elsewhere that we know of.
RULES = {
    ("volta", "half"): Rules(fraction_bits=23, result_bits=23),
    ("turing", "half"): Rules(fraction_bits=24, result_bits=23),
    ("ampere", "half"): Rules(fraction_bits=24, result_bits=23),
    ("ada", "half"): Rules(fraction_bits=24, result_bits=23),
    ("ada", "eight"): Rules(fraction_bits=13, result_bits=13),
    ("hopper", "half"): Rules(fraction_bits=25, result_bits=23),
    ("hopper", "eight"): Rules(fraction_bits=13, result_bits=13),
    ("hopper", "eight.mma"): Rules(fraction_bits=25, result_bits=23, pairs=True),
    ("blackwell", "half"): Rules(fraction_bits=25, result_bits=23),
    ("blackwell", "eight"): Rules(fraction_bits=25, result_bits=23),
}

#: Exponent of what is zero: below that of every product.
NOTHING = -100_000
CANONICAL_NAN = 0x7FFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Sign (0 or 1), exponent and significand: ``significand * 2**(exponent - mantissa bits)``."""

    sign: Ints
    exponent: Ints
    significand: Ints
    infinite: NDArray[np.bool_]
    nan: NDArray[np.bool_]


def decode(bits: Bits, form: Format) -> Parts:
    """What the bit patterns stand for."""
    pattern = bits.astype(np.int64)
    mantissa_mask, exponent_mask = (1 << form.mantissa_bits) - 1, (1 << form.exponent_bits) - 1
    mantissa = pattern & mantissa_mask
    raw = (pattern >> form.mantissa_bits) & exponent_mask
    sign = (pattern >> (form.mantissa_bits + form.exponent_bits)) & 1
    normal = raw > 0
    top = raw == exponent_mask
    if form.finite:
        infinite = np.zeros_like(top)
        nan = top & (mantissa == mantissa_mask)
    else:
        infinite, nan = top & (mantissa == 0), top & (mantissa != 0)
    return Parts(
        sign=sign,
        exponent=np.where(normal, raw, 1) - form.bias,
        significand=mantissa + (normal.astype(np.int64) << form.mantissa_bits),
        infinite=infinite,
        nan=nan,
    )


def _shifted(value: Ints, left: Ints) -> Ints:
    """``value * 2**left`` cut towards zero (values are not negative)."""
    return np.where(
        left >= 0, value << np.clip(left, 0, 62), value >> np.clip(-left, 0, 62)
    ).astype(np.int64)


def _as_fp16(bits: Bits, form: Format) -> Bits:
    """Patterns of the same values; what is subnormal in e4m3 is normal in fp16."""
    parts = decode(bits, form)
    size = parts.significand * np.exp2((parts.exponent - form.mantissa_bits).astype(np.float64))
    size = np.where(parts.infinite, np.inf, np.where(parts.nan, np.nan, size))
    return np.asarray(np.where(parts.sign == 1, -size, size).astype(np.float16).view(np.uint16))


def fused_sum(a: Bits, b: Bits, c: Bits, form: Format, rules: Rules) -> NDArray[np.uint32]:
    """fp32 patterns of ``sum over the last axis of a * b, plus c``, as the hardware computes it.

    ``a`` and ``b`` are patterns of ``form``, ``c`` of fp32.
    """
    if rules.pairs:
        once = Rules(fraction_bits=rules.fraction_bits, result_bits=rules.result_bits)
        a, b, form = _as_fp16(a, form), _as_fp16(b, form), FORMATS["fp16"]
        first = np.arange(a.shape[-1]) // 2 % 2 == 0
        for part in (first, ~first):
            c = fused_sum(a[..., part], b[..., part], c, form, once)
        return c.astype(np.uint32)
    left, right, start = decode(a, form), decode(b, form), decode(c, FORMATS["fp32"])
    sign = left.sign ^ right.sign
    significand = left.significand * right.significand
    exponent = np.where(significand > 0, left.exponent + right.exponent, NOTHING)
    c_exponent = np.where(start.significand > 0, start.exponent, NOTHING)
    largest = np.maximum(exponent.max(axis=-1), c_exponent)
    places = rules.fraction_bits - 2 * form.mantissa_bits
    terms = _shifted(significand, exponent - largest[..., None] + places)
    total = np.where(sign == 1, -terms, terms).sum(axis=-1)
    c_term = _shifted(start.significand, c_exponent - largest + rules.fraction_bits - 23)
    total = total + np.where(start.sign == 1, -c_term, c_term)
    result = _encode(total, largest - rules.fraction_bits, rules.result_bits)
    return _special(result, (left, right, start), sign)


def integer_sum(a: Bits, b: Bits, c: Bits, *, saturate: bool) -> NDArray[np.uint32]:
    """Of 8-bit integers into 32 bits: exact; then modulo 2**32, or saturated (``.satfinite``)."""
    products = a.view(np.int8).astype(np.int64) * b.view(np.int8).astype(np.int64)
    total = products.sum(axis=-1) + c.view(np.int32).astype(np.int64)
    if saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return np.asarray((total & 0xFFFFFFFF).astype(np.uint32))


def _encode(total: Ints, scale: Ints, result_bits: int) -> NDArray[np.uint32]:
    """``total * 2**scale`` as fp32, cut towards zero to ``result_bits`` of mantissa."""
    size = np.abs(total)
    # Exact below 2**53: sums of some dozen terms of at most 40 bits.
    length = np.frexp(size.astype(np.float64))[1].astype(np.int64)
    exponent = length - 1 + scale
    kept_exponent = np.maximum(exponent, -126)
    mantissa = _shifted(size, scale - (kept_exponent - 23))
    mantissa = (mantissa >> (23 - result_bits)) << (23 - result_bits)
    raw = np.where(mantissa >= 1 << 23, kept_exponent + 127, 0)
    pattern = (raw << 23) + (mantissa & ((1 << 23) - 1))
    pattern = np.where(raw >= 255, 0x7F800000, pattern)
    pattern = np.where(size == 0, 0, pattern) | (np.where(total < 0, 1, 0) << 31)
    return np.asarray(pattern.astype(np.uint32), dtype=np.uint32)


def _special(
    result: NDArray[np.uint32], parts: tuple[Parts, Parts, Parts], sign: Ints
) -> NDArray[np.uint32]:
    """Infinities, and one pattern for every NaN."""
    left, right, start = parts
    zero_times_infinite = (left.infinite & (right.significand == 0)) | (
        right.infinite & (left.significand == 0)
    )
    nan = (left.nan | right.nan | zero_times_infinite).any(axis=-1) | start.nan
    infinite = left.infinite | right.infinite
    plus = (infinite & (sign == 0)).any(axis=-1) | (start.infinite & (start.sign == 0))
    minus = (infinite & (sign == 1)).any(axis=-1) | (start.infinite & (start.sign == 1))
    result = np.where(plus, np.uint32(0x7F800000), result)
    result = np.where(minus, np.uint32(0xFF800000), result)
    return np.where(nan | (plus & minus), np.uint32(CANONICAL_NAN), result).astype(np.uint32)

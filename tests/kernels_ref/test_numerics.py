"""Is the emulated tensor core the real one, bit for bit, and does it obey arithmetic?"""

from __future__ import annotations

import csv
import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from kernels_ref.measure.numerics import SIZE, rules_of
from kernels_ref.numerics import FORMATS, RULES, Rules, fused_sum, integer_sum

DATA = files("kernels_ref") / "data" / "h200_mma.json"
HOPPER = RULES["hopper", "half"]


@cache
def measured() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(DATA.read_text())
    return cases


def emulate(case: dict[str, Any], rules: Rules) -> Any:
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32}[SIZE[case["form"]]]
    a, b = (np.array(case[name], dtype=kind) for name in ("a", "b"))
    c = np.array(case["c"], dtype=np.uint32)
    if case["form"] == "int8":
        return integer_sum(a, b, c, saturate=case["path"] == "mma")
    if case["form"] != "tf32":
        return fused_sum(a, b, c, FORMATS[case["form"]], rules)
    # Two instructions of depth 8 each.
    for part in (slice(8), slice(8, 16)):
        c = fused_sum(a[:, part] >> 13, b[:, part] >> 13, c, FORMATS["tf32"], rules)
    return c


def different(case: dict[str, Any], rules: Rules) -> int:
    """Results that differ, NaNs included: every one has the same pattern."""
    with np.errstate(all="ignore"):
        expected = emulate(case, rules)
    return int((np.array(case["out"], dtype=np.uint32) != expected).sum())


def test_results_of_an_h200_are_reproduced_bit_for_bit() -> None:
    for case in measured():
        assert len(case["out"]) >= 20
        found = different(case, rules_of(case["form"], case["path"]))
        assert found == 0, (case["form"], case["path"], case["values"])


def test_a_million_results_of_every_case_were_compared() -> None:
    with (files("kernels_ref") / "data" / "h200_mma_counts.csv").open() as file:
        rows = list(csv.DictReader(file))
    cases = {(r["form"], r["path"], r["values"]) for r in rows}
    assert cases == {(c["form"], c["path"], c["values"]) for c in measured()}
    assert len(cases) == 6 * 2 * 5
    assert all(int(r["outputs"]) >= 10**6 and int(r["different"]) == 0 for r in rows)


def test_what_is_subnormal_in_e4m3_is_normal_in_fp16() -> None:
    # 2^-9 times 256 aligns like 2^-1, not like the subnormal's exponent: -6 + 8 = 2.
    a, b = (np.zeros((1, 32), dtype=np.uint8) for _ in range(2))
    a[0, 0], b[0, 0] = 0x01, 0x78
    c = np.array([2.0**-24], dtype=np.float32).view(np.uint32)
    converted = fused_sum(a, b, c, FORMATS["e4m3"], RULES["hopper", "eight.mma"])
    as_it_is = fused_sum(a, b, c, FORMATS["e4m3"], HOPPER)
    assert converted.view(np.float32)[0] == 0.5 + 2.0**-24
    assert as_it_is.view(np.float32)[0] == 0.5


@pytest.mark.parametrize("bits", [24, 26])
def test_one_bit_more_or_less_would_be_noticed(bits: int) -> None:
    wide = [c for c in measured() if c["form"] == "fp16" and c["values"] == "wide"]
    assert all(different(c, Rules(fraction_bits=bits, result_bits=23)) > 0 for c in wide)


def fp16(*values: float) -> Any:
    return np.array([values], dtype=np.float16).view(np.uint16)


def fp32(value: float) -> Any:
    return np.array([value], dtype=np.float32).view(np.uint32)


def dot(a: Any, b: Any, c: float = 0.0) -> float:
    with np.errstate(all="ignore"):
        found = fused_sum(a, b, fp32(c), FORMATS["fp16"], HOPPER)
    return float(found.view(np.float32)[0])


def test_sums_that_fit_are_exact() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-31, 32, (100, 16)).astype(np.float16) for _ in range(2))
    c = rng.integers(-1000, 1000, 100).astype(np.float32)
    found = fused_sum(
        a.view(np.uint16), b.view(np.uint16), c.view(np.uint32), FORMATS["fp16"], HOPPER
    )
    exact = (a.astype(np.int64) * b.astype(np.int64)).sum(axis=1) + c
    assert (found.view(np.float32) == exact).all()


def test_terms_far_below_the_largest_are_lost() -> None:
    assert dot(fp16(1.0, 2.0**-12), fp16(1.0, 2.0**-13)) == 1.0  # 2**-25 is the last bit kept
    assert dot(fp16(2.0**-12, 2.0**-12), fp16(2.0**-13, 2.0**-13), c=1.0) == 1.0
    # Two of 2**-24 make one unit in the last place of 1.0 (2**-23).
    twice = fp16(2.0**-12, 2.0**-12)
    assert dot(twice, twice, c=1.0) == 1.0 + 2.0**-23


def test_results_are_cut_towards_zero() -> None:
    small = 2.0**-24 * 1.5
    a, b = fp16(1.0, 2.0**-12), fp16(1.0, 1.5 * 2.0**-12)
    assert dot(a, b) == 1.0
    assert small > 2.0**-24  # rounding to nearest would have given 1 + 2**-23


def test_subnormals_infinities_and_nans() -> None:
    least = np.array([[1]], dtype=np.uint16)
    assert dot(least, fp16(1.0)) == 2.0**-24
    assert dot(fp16(np.inf), fp16(-1.0)) == -np.inf
    assert np.isnan(dot(fp16(np.inf), fp16(0.0)))
    assert np.isnan(dot(fp16(np.inf, np.inf), fp16(1.0, -1.0)))
    assert np.isnan(dot(fp16(1.0), fp16(1.0), c=float("nan")))
    assert dot(fp16(1.0), fp16(1.0), c=float("inf")) == np.inf

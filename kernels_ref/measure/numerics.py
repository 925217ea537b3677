"""Compare tensor cores with their emulation: ``python -m kernels_ref.measure.numerics --out DIR``.

Random dot products of each format and path (``wgmma`` from 64 rows on, ``mma`` below), whose
operands are ``normal`` numbers, ``wide`` ones spread over many exponents, random bit ``patterns``,
``tiny`` ones (subnormals and their neighbours, results near the smallest fp32) or ``special`` ones
(each element with some chance a zero, an infinity or a NaN). Writes how many results differ, a
NaN's pattern included, and some products as a file for tests.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels_ref.numerics import (
    CANONICAL_NAN,
    FORMATS,
    RULES,
    Rules,
    fused_sum,
    integer_sum,
)
from kernels_ref.triton_kernels import probe as probe_kernels

#: Depth of one instruction, in bytes of the format.
DEPTH_BYTES = 32
#: Triton takes no product of less; one of tf32 is then two instructions, the second of which adds
#: to the result of the first.
LEAST_DEPTH = 16
TORCH = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "int8": "int8",
}
SIZE = {"fp16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "int8": 1}
VALUES = ("normal", "wide", "patterns", "tiny", "special")
INTEGERS = {1: "uint8", 2: "uint16", 4: "uint32"}
#: Rules to try where the expected ones do not hold.
VARIANTS = [
    Rules(fraction_bits=f, result_bits=r)
    for f, r in ((23, 23), (24, 23), (25, 23), (26, 23), (13, 13), (14, 13), (13, 23), (12, 13))
]
KEPT = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    form: str
    rows: int
    values: str

    @property
    def depth(self) -> int:
        return max(LEAST_DEPTH, DEPTH_BYTES // SIZE[self.form])

    @property
    def path(self) -> str:
        return "wgmma" if self.rows >= 64 else "mma"


def cases(forms: Sequence[str]) -> Iterator[Case]:
    for form in forms:
        for rows in (64, 16):
            for values in VALUES:
                yield Case(form=form, rows=rows, values=values)


def rules_of(form: str, path: str) -> Rules:
    """What a Hopper GPU is expected to do; integers are exact whatever the rules."""
    if SIZE[form] > 1 or form == "int8":
        return RULES["hopper", "half"]
    return RULES["hopper", "eight" if path == "wgmma" else "eight.mma"]


def _patterns(case: Case, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Bit patterns of operands; those of tf32 are whole fp32 patterns with the low bits zero."""
    bits = 8 * SIZE[case.form]
    kind = np.dtype(INTEGERS[SIZE[case.form]])
    drawn = rng.integers(0, 1 << bits, shape, dtype=np.uint64).astype(kind)
    if case.form == "int8":
        return drawn if case.values == "patterns" else _narrow(drawn, case.values)
    if case.values in ("normal", "wide", "special"):
        drawn = _numbers(case, shape, rng)
    if case.values == "tiny":
        drawn = drawn & kind.type(_tiny_mask(case.form))
    if case.values == "special":
        drawn = np.where(rng.random(shape) < 0.03, rng.choice(_specials(case.form), shape), drawn)
    return drawn & kind.type(0xFFFFE000) if case.form == "tf32" else drawn


def _narrow(drawn: Any, values: str) -> Any:
    """Integers have no special values; smaller ones, and only the two ends of the range."""
    if values == "special":
        return np.where(drawn & 1, np.uint8(0x7F), np.uint8(0x80))
    return (drawn.view(np.int8) >> {"normal": 2, "wide": 1, "tiny": 5}[values]).view(np.uint8)


def _numbers(case: Case, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    import torch

    spread = np.exp2(rng.uniform(-6, 6, shape)) if case.values == "wide" else 1.0
    numbers = torch.from_numpy((rng.standard_normal(shape) * spread).astype(np.float32))
    found = numbers.to(getattr(torch, TORCH[case.form]))
    return found.view(getattr(torch, INTEGERS[SIZE[case.form]])).numpy()


def _tiny_mask(form: str) -> int:
    """Keeps sign, mantissa and the lowest bit of the exponent; of wide exponents also the bits
    that make products fall among the subnormals of fp32."""
    f = FORMATS[form]
    mantissa = 23 if form == "tf32" else f.mantissa_bits
    exponent = 0x3F if f.exponent_bits == 8 else 1
    return 1 << (f.exponent_bits + mantissa) | exponent << mantissa | (1 << mantissa) - 1


def _specials(form: str) -> Any:
    """Zeros, infinities and NaNs with either sign."""
    f = FORMATS[form]
    mantissa = 23 if form == "tf32" else f.mantissa_bits
    top = ((1 << f.exponent_bits) - 1) << mantissa
    found = [0, top, top | 1 << (mantissa - 1), top | (1 << mantissa) - 1]
    sign = 1 << (f.exponent_bits + mantissa)
    return np.array([*found, *(v | sign for v in found)], dtype=INTEGERS[SIZE[form]])


def _accumulators(case: Case, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    patterns = rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)
    if case.values == "patterns" or (case.form == "int8" and case.values == "special"):
        return patterns
    if case.form == "int8":
        return (patterns.view(np.int32) >> 8).view(np.uint32)
    if case.values == "tiny":
        return patterns & np.uint32(0x80FFFFFF)
    numbers = rng.standard_normal(shape).astype(np.float32).view(np.uint32)
    if case.values == "special":
        chosen = rng.choice(_specials("tf32"), shape).astype(np.uint32)
        return np.where(rng.random(shape) < 0.05, chosen, numbers)
    return numbers


def _on_device(case: Case, patterns: Any) -> Any:
    import torch

    same_size = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[SIZE[case.form]]
    signed = {1: np.uint8, 2: np.int16, 4: np.int32}[SIZE[case.form]]
    tensor = torch.from_numpy(patterns.view(signed)).view(same_size).cuda()
    return tensor.view(getattr(torch, TORCH[case.form]))


def _emulated(case: Case, a: Any, b: Any, c: Any, rules: Rules) -> Any:
    if case.form == "int8":
        # The compiler asks mma for saturation, wgmma not.
        return integer_sum(a[:, :, None], b[:, None], c, saturate=case.path == "mma")
    form = FORMATS[case.form]
    if case.form == "tf32":
        a, b = a >> 13, b >> 13
    step = DEPTH_BYTES // SIZE[case.form]
    for start in range(0, case.depth, step):
        part = slice(start, start + step)
        c = fused_sum(a[:, :, None, part], b[:, None, :, part], c, form, rules)
    return c


def _differ(found: Any, expected: Any) -> int:
    return int((found != expected).sum())


def run_case(case: Case, outputs: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, case.rows, sum(map(ord, case.form + case.values))])
    cols = 64
    programs = -(-outputs // (case.rows * cols))
    a = _patterns(case, (programs, case.rows, case.depth), rng)
    b = _patterns(case, (programs, cols, case.depth), rng)
    c = _accumulators(case, (programs, case.rows, cols), rng)
    import torch

    kind = torch.int32 if case.form == "int8" else torch.float32
    c_device = torch.from_numpy(c.view(np.int32)).cuda().view(kind)
    out = probe_kernels.probe(_on_device(case, a), _on_device(case, b), c_device)
    found = out.view(torch.int32).cpu().numpy().view(np.uint32)
    expected_rules = rules_of(case.form, case.path)
    few = max(1, 65536 // (case.rows * cols))
    tried = {
        f"F{r.fraction_bits}R{r.result_bits}": _differ(
            found[:few], _emulated(case, a[:few], b[:few], c[:few], r)
        )
        for r in (() if case.form == "int8" else VARIANTS)
    }
    expected = np.concatenate(
        [
            _emulated(case, a[i : i + few], b[i : i + few], c[i : i + few], expected_rules)
            for i in range(0, programs, few)
        ]
    )
    wrong = _differ(found, expected)
    both_nan = np.isnan(found.view(np.float32)) & (expected == CANONICAL_NAN)
    return {
        "form": case.form,
        "path": case.path,
        "values": case.values,
        "depth": case.depth,
        "outputs": int(found.size),
        "different": wrong,
        "nan_results": int(both_nan.sum()) if case.form != "int8" else 0,
        "different_but_nan": int(((found != expected) & ~both_nan).sum()),
        "examples": _examples(a, b, c, found, expected),
        "different_of_65536": tried,
        "nan_patterns": sorted({hex(v) for v in found[np.isnan(found.view(np.float32))][:2000]})[
            :4
        ],
        "sample": _sample(case, a, b, c, found),
    }


def _examples(a: Any, b: Any, c: Any, found: Any, expected: Any) -> list[Any]:
    """Some products that differ, to learn from."""
    places = np.argwhere(found != expected)[:12]
    return [
        [a[p, r].tolist(), b[p, n].tolist(), *(int(x[p, r, n]) for x in (c, found, expected))]
        for p, r, n in places
    ]


def _sample(case: Case, a: Any, b: Any, c: Any, found: Any) -> dict[str, Any]:
    """Some products in full: row i with column i of successive programs."""
    count = min(KEPT // 10, a.shape[0] * 8)
    index = [(k % a.shape[0], (k // a.shape[0]) % case.rows, k % 64) for k in range(count)]
    return {
        "a": [a[p, r].tolist() for p, r, _ in index],
        "b": [b[p, n].tolist() for p, _, n in index],
        "c": [int(c[p, r, n]) for p, r, n in index],
        "out": [int(found[p, r, n]) for p, r, n in index],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.numerics")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--outputs", type=int, default=1 << 20, help="dot products of each case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--form", nargs="+", choices=list(TORCH), default=list(TORCH))
    parser.add_argument("--rows", type=int, nargs="+", default=[64, 16], help="64 wgmma, 16 mma")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    results = []
    for case in cases(given.form):
        if case.rows not in given.rows:
            continue
        results.append(run_case(case, given.outputs, given.seed))
        line = {k: v for k, v in results[-1].items() if k not in ("sample", "examples")}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        name = f"numerics_{given.form[0]}_{given.rows[0]}.json"
        (given.out / name).write_text(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())

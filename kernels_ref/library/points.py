"""Which library calls are measured: log-uniform sizes, odd ones among them, of every kind.

The order is shuffled, so that a run that is cut short still covers all kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels_ref.library.blocks import BLOCK, MODELS
from kernels_ref.library.kinds import KINDS, Kind

Sizes = dict[str, Any]

#: No call moves more bytes or, in its format, computes for more than some milliseconds.
MOST_BYTES = 2 * 2**30
MOST_FLOPS = {"bf16": 2e12, "fp16": 2e12, "fp32": 1.5e11, "fp8": 3e12, "int8": 3e12}

#: How many points of each kind and format.
COUNTS = {
    "gemm": {"bf16": 300, "fp16": 90, "fp32": 80, "fp8": 150, "int8": 80},
    "bmm": {"bf16": 100, "fp16": 40, "fp32": 40},
    "sdpa": {"bf16": 230, "fp16": 60, "fp32": 20},
    "conv2d": {"bf16": 130, "fp16": 50, "fp32": 30},
    "ew_add": {"bf16": 36, "fp16": 20, "fp32": 24},
    "ew_gelu": {"bf16": 36, "fp16": 20, "fp32": 24},
    "ew_scale": {"bf16": 36, "fp16": 20, "fp32": 24},
    "row_softmax": {"bf16": 45, "fp16": 20, "fp32": 25},
    "row_layernorm": {"bf16": 45, "fp16": 20, "fp32": 25},
    "row_sum": {"bf16": 45, "fp16": 20, "fp32": 25},
    "block": {"bf16": 90},
}

#: This many points are measured a second time, for the noise between runs.
REPEATS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPoint:
    """One call to measure; ``repeat`` says that it was measured before."""

    kind: str
    params: Sizes
    dtype: str
    repeat: bool = False


def kind_named(name: str) -> Kind:
    return BLOCK if name == "block" else KINDS[name]


def log_uniform(rng: np.random.Generator, low: float, high: float) -> int:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def usual(rng: np.random.Generator, low: int, high: int, least: int = 1) -> int:
    """A size like those of networks: a power of two, a multiple of 64 or 8, or any."""
    drawn = log_uniform(rng, low, high)
    share = rng.random()
    unit = max(least, 64 if share < 0.4 else 8 if share < 0.65 else 1)
    if share > 0.85:
        return max(least, 1 << round(math.log2(drawn)))
    return max(unit, round(drawn / unit) * unit)


def _gemm(rng: np.random.Generator, dtype: str) -> Sizes:
    least = {"fp8": 16, "int8": 16}.get(dtype, 1)
    rows = (17, 16384) if dtype == "int8" else (1, 16384)
    m = max(rows[0], usual(rng, *rows))
    return {"M": m, "N": usual(rng, 32, 20000, least), "K": usual(rng, 32, 20000, least)}


def _bmm(rng: np.random.Generator, dtype: str) -> Sizes:
    sizes = {name: usual(rng, 16, 4096) for name in ("M", "N", "K")}
    return {"B": log_uniform(rng, 2, 512), **sizes}


def _sdpa(rng: np.random.Generator, dtype: str) -> Sizes:
    group = int(rng.choice([1, 1, 2, 4, 8]))
    kv_heads = int(rng.choice([1, 2, 4, 8, 12, 16, 32]))
    sizes = {
        "B": log_uniform(rng, 1, 64),
        "H": group * kv_heads,
        "Hkv": kv_heads,
        "D": int(rng.choice([64, 64, 128, 128, 128, 32, 80, 96, 256])),
    }
    share = rng.random()
    if share < 0.6:
        length = usual(rng, 64, 8192)
        return {**sizes, "Sq": length, "Skv": length, "causal": int(rng.random() < 0.5)}
    if share < 0.9:
        return {**sizes, "Sq": 1, "Skv": usual(rng, 64, 32768), "causal": 0}
    return {**sizes, "Sq": usual(rng, 2, 2048), "Skv": usual(rng, 64, 8192), "causal": 0}


def _conv(rng: np.random.Generator, dtype: str) -> Sizes:
    side = int(rng.choice([7, 14, 28, 56, 112, 224, log_uniform(rng, 7, 256)]))
    c, k = usual(rng, 8, 1024, 8), usual(rng, 8, 1024, 8)
    share, kernel = rng.random(), int(rng.choice([1, 3, 3, 3, 5, 7]))
    groups = 1
    if share < 0.22:
        k = groups = c
        kernel = max(3, kernel)
    elif share < 0.3:
        groups = int(rng.choice([2, 4, 8]))
        c, k = (-(-size // (8 * groups)) * 8 * groups for size in (c, k))
    elif share < 0.35:
        c = 3
    sizes = {"N": log_uniform(rng, 1, 128), "C": c, "H": side, "K": k, "R": kernel}
    return {**sizes, "stride": int(rng.choice([1, 1, 2])), "groups": groups}


def _elementwise(rng: np.random.Generator, dtype: str) -> Sizes:
    return {"n": usual(rng, 2**9, 2**28)}


def _rows(rng: np.random.Generator, dtype: str) -> Sizes:
    cols = usual(rng, 32, 65536)
    return {"R": max(1, log_uniform(rng, 2**12, 2**28) // cols), "C": cols}


def _block(rng: np.random.Generator, dtype: str) -> Sizes:
    model = str(rng.choice(list(MODELS)))
    if rng.random() < 0.5:
        batch, new, ctx = log_uniform(rng, 1, 16), usual(rng, 64, 4096), 0
    else:
        batch, new, ctx = log_uniform(rng, 1, 128), 1, log_uniform(rng, 64, 16384)
    return {"model": model, "B": batch, "S": new, "ctx": ctx, "tp": 1}


Sampler = Callable[[np.random.Generator, str], Sizes]
SAMPLERS: dict[str, Sampler] = {
    "gemm": _gemm,
    "bmm": _bmm,
    "sdpa": _sdpa,
    "conv2d": _conv,
    "ew_add": _elementwise,
    "ew_gelu": _elementwise,
    "ew_scale": _elementwise,
    "row_softmax": _rows,
    "row_layernorm": _rows,
    "row_sum": _rows,
    "block": _block,
}


def _product(*names: str) -> Callable[[Sizes], float]:
    return lambda p: 2.0 * float(math.prod(int(p[name]) for name in names))


def _block_flops(p: Sizes) -> float:
    model, tokens = MODELS[p["model"]], float(p["B"] * p["S"])
    weights = 4 * model.hidden**2 + 3 * model.hidden * model.feed_forward
    length = float(p["ctx"] + p["S"])
    return tokens * (2.0 * weights + 4.0 * length * model.hidden)


#: Upper estimates, to leave out points that would take long.
FLOPS: dict[str, Callable[[Sizes], float]] = {
    "gemm": _product("M", "N", "K"),
    "bmm": _product("B", "M", "N", "K"),
    "sdpa": lambda p: 2 * _product("B", "H", "Sq", "Skv", "D")(p),
    "conv2d": lambda p: (
        _product("N", "H", "H", "C", "K", "R", "R")(p) / p["groups"] / p["stride"] ** 2
    ),
    "block": _block_flops,
}


#: Peaks of an H200 in a microsecond: bytes of its memory, operations by format.
PEAK_BYTES = 4.8e6
PEAK_FLOPS = {"bf16": 9.9e8, "fp16": 9.9e8, "fp32": 6.7e7, "fp8": 1.98e9, "int8": 1.98e9}


def least_us(kind: str, params: Sizes, dtype: str) -> float:
    """What a call takes at the peaks of memory or arithmetic (NVIDIA H200 data sheet)."""
    flops = FLOPS[kind](params) if kind in FLOPS else 0.0
    moved = kind_named(kind).size_bytes(params, dtype)
    return max(flops / PEAK_FLOPS[dtype], moved / PEAK_BYTES)


def _small_enough(kind: str, params: Sizes, dtype: str) -> bool:
    flops = FLOPS[kind](params) if kind in FLOPS else 0.0
    if kind == "conv2d" and params["groups"] > 1:
        flops *= 8  # grouped convolutions reach a fraction of the peak
    return flops <= MOST_FLOPS[dtype] and kind_named(kind).size_bytes(params, dtype) <= MOST_BYTES


def sample(kind: str, dtype: str, rng: np.random.Generator) -> LibraryPoint:
    """One random point of the kind that is small enough to measure."""
    return sample_with(SAMPLERS[kind], kind, dtype, rng)


def sample_with(sampler: Sampler, kind: str, dtype: str, rng: np.random.Generator) -> LibraryPoint:
    while True:
        params = sampler(rng, dtype)
        if _small_enough(kind, params, dtype):
            return LibraryPoint(kind=kind, params=params, dtype=dtype)


def _all(rng: np.random.Generator) -> Iterator[LibraryPoint]:
    for kind, dtypes in COUNTS.items():
        for dtype, count in dtypes.items():
            for _ in range(count):
                yield sample(kind, dtype, rng)


def library_points(seed: int) -> list[LibraryPoint]:
    """All points in a shuffled order, the repeated ones spread over the second half."""
    rng = np.random.default_rng(seed)
    drawn = list(_all(rng))
    points = [drawn[i] for i in rng.permutation(len(drawn))]
    half = len(points) // 2
    for index in range(REPEATS):
        first = points[index]
        again = LibraryPoint(kind=first.kind, params=first.params, dtype=first.dtype, repeat=True)
        points.insert(half + index * (half // REPEATS), again)
    return points

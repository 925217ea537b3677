"""Further points to measure, besides those of ``points``: more of what is hard to predict
(``hard``, for calibration), and sizes that no calibration has seen (``unseen``, for judging it).

Channels of convolutions and sides of products are as often odd as not, in both plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from kernels_ref.library.points import (
    SAMPLERS,
    LibraryPoint,
    Sampler,
    Sizes,
    least_us,
    library_points,
    log_uniform,
    sample_with,
    usual,
)

Counts = Mapping[str, Mapping[str, int]]

ELEMENTWISE = ("ew_add", "ew_gelu", "ew_scale")
ALONG_ROWS = ("row_softmax", "row_layernorm", "row_sum")

HARD: Counts = {
    "gemm": {"bf16": 150, "fp16": 80, "fp32": 70, "fp8": 20, "int8": 60},
    "bmm": {"bf16": 70, "fp16": 40, "fp32": 50},
    "sdpa": {"bf16": 30, "fp16": 12, "fp32": 30},
    "conv2d": {"bf16": 140, "fp16": 80, "fp32": 70},
    **{kind: {"bf16": 6, "fp32": 4} for kind in ELEMENTWISE},
    **{kind: {"bf16": 15, "fp16": 6, "fp32": 10} for kind in ALONG_ROWS},
}
UNSEEN: Counts = {
    "gemm": {"bf16": 42, "fp16": 12, "fp32": 10, "fp8": 18, "int8": 10},
    "bmm": {"bf16": 14, "fp16": 6, "fp32": 6},
    "sdpa": {"bf16": 20, "fp16": 6, "fp32": 3},
    "conv2d": {"bf16": 18, "fp16": 8, "fp32": 6},
    **{kind: {"bf16": 3, "fp16": 2, "fp32": 2} for kind in ELEMENTWISE},
    **{kind: {"bf16": 4, "fp16": 2, "fp32": 3} for kind in ALONG_ROWS},
    "block": {"bf16": 10},
}


def _side(rng: np.random.Generator, low: int, high: int, least: int) -> int:
    """Multiples of small powers of two, half of them odd."""
    unit = max(least, int(rng.choice([1, 1, 1, 2, 4, 8])))
    return max(unit, round(log_uniform(rng, low, high) / unit) * unit)


def _uneven_gemm(rng: np.random.Generator, dtype: str) -> Sizes:
    if dtype in ("fp8", "int8"):
        return SAMPLERS["gemm"](rng, dtype)
    m = log_uniform(rng, 1, 16384)
    return {"M": m, "N": _side(rng, 32, 20000, 1), "K": _side(rng, 32, 20000, 1)}


def _uneven_bmm(rng: np.random.Generator, dtype: str) -> Sizes:
    sizes = {name: _side(rng, 16, 4096, 1) for name in ("M", "N", "K")}
    return {"B": log_uniform(rng, 2, 512), **sizes}


def _channels(rng: np.random.Generator) -> int:
    """As in networks, or any number."""
    return usual(rng, 8, 1024, 8) if rng.random() < 0.65 else log_uniform(rng, 3, 600)


def _any_conv(rng: np.random.Generator, dtype: str) -> Sizes:
    side = int(rng.choice([7, 14, 28, 56, 112, 224, log_uniform(rng, 7, 256)]))
    c, k, kernel = _channels(rng), _channels(rng), int(rng.choice([1, 1, 3, 3, 3, 5, 7]))
    share, groups = rng.random(), 1
    if share < 0.15:
        k = groups = c
    elif share < 0.3:
        groups = int(rng.choice([2, 3, 4, 8, 16, 32]))
        c, k = (-(-size // groups) * groups for size in (c, k))
    elif share < 0.36:
        c = int(rng.choice([1, 3, 3, 4]))
    sizes = {"N": log_uniform(rng, 1, 128), "C": c, "H": side, "K": k, "R": kernel}
    return {**sizes, "stride": int(rng.choice([1, 1, 2])), "groups": groups}


HARD_SAMPLERS: Mapping[str, Sampler] = {
    **SAMPLERS,
    "gemm": _uneven_gemm,
    "bmm": _uneven_bmm,
    "conv2d": _any_conv,
}


def _grouped_conv(rng: np.random.Generator, dtype: str) -> Sizes:
    """Groups as networks have them: as many channels in as out; and some of any widths."""
    groups = int(rng.choice([2, 4, 8, 16, 32, 64]))
    depth = int(rng.choice([4, 8, 16, 32, 64]))
    width = depth if rng.random() < 0.65 else log_uniform(rng, 1, 128)
    if rng.random() < 0.2:
        depth = log_uniform(rng, 1, 64)
    sizes = _any_conv(rng, dtype)
    return {**sizes, "C": groups * depth, "K": groups * width, "groups": groups}


def _wild_conv(rng: np.random.Generator, dtype: str) -> Sizes:
    """Any number of channels, any image, any kernel, any groups that divide."""
    kernel = int(rng.choice([1, 2, 3, 3, 4, 5, 6, 7]))
    c, k = log_uniform(rng, 1, 2048), log_uniform(rng, 1, 2048)
    share, groups = rng.random(), 1
    if share < 0.2:
        groups = log_uniform(rng, 2, 64)
        c, k = (-(-size // groups) * groups for size in (c, k))
    elif share < 0.3:
        groups, k = c, c * int(rng.choice([1, 1, 2]))
    sizes = {"N": log_uniform(rng, 1, 128), "C": c, "H": log_uniform(rng, 4, 320), "K": k}
    return {**sizes, "R": kernel, "stride": int(rng.choice([1, 1, 2])), "groups": groups}


#: Sides of images within networks.
NETWORK_SIDES = (7, 8, 10, 12, 14, 15, 16, 19, 20, 24, 28, 32, 38, 40, 48, 56, 64, 75, 80, 96, 112)
LARGE_SIDES = (128, 150, 160, 192, 224, 256)


def _network_conv(rng: np.random.Generator, dtype: str) -> Sizes:
    """Multiples of 8 to 64 channels, or any, over usual or any images, in groups or not."""
    sides = (*NETWORK_SIDES, *LARGE_SIDES)
    side = int(rng.choice(sides)) if rng.random() < 0.6 else log_uniform(rng, 7, 256)
    unit = int(rng.choice([1, 8, 16, 32, 64, 64]))
    c, k = (max(1, round(log_uniform(rng, 8, 2048) / unit)) * unit for _ in range(2))
    kernel, share, groups = int(rng.choice([1, 1, 3, 3, 3, 5, 7])), rng.random(), 1
    if share < 0.15:
        k = groups = c
    elif share < 0.3:
        groups = int(rng.choice([2, 3, 4, 8, 16, 32, 64]))
        c, k = (-(-size // groups) * groups for size in (c, k))
    elif share < 0.34:
        c = int(rng.choice([1, 3, 3, 4]))
    n = log_uniform(rng, 1, 256)
    n = 1 << round(np.log2(n)) if rng.random() < 0.4 else n
    sizes = {"N": int(n), "C": c, "H": side, "K": k, "R": kernel}
    return {**sizes, "stride": int(rng.choice([1, 1, 1, 2])), "groups": groups}


def _mixed(rng: np.random.Generator, kind: str) -> Sampler:
    """Of three points two as in networks and one of any sizes."""
    return (HARD_SAMPLERS if rng.random() < 1 / 3 else SAMPLERS)[kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    counts: Counts
    #: Which sampler draws the next point of a kind.
    sampler: Callable[[np.random.Generator, str], Sampler]


#: Of the convolutions of a varied plan.
GROUPED_SHARE = 0.2
#: And of a broad plan.
WILD_SHARE = 0.3

#: Grouped convolutions, which the other plans have few of.
GROUPS: Counts = {"conv2d": {"bf16": 70, "fp16": 40, "fp32": 40}}

#: What one calibration wanted more of: convolutions of all kinds above all.
MORE: Counts = {
    "conv2d": {"bf16": 1100, "fp16": 750, "fp32": 650},
    "gemm": {"bf16": 60, "fp16": 40, "fp32": 60, "fp8": 40, "int8": 40},
    "bmm": {"bf16": 40, "fp16": 25, "fp32": 25},
    "sdpa": {"bf16": 70, "fp16": 60, "fp32": 30},
    **{kind: {"bf16": 4, "fp16": 4, "fp32": 4} for kind in ELEMENTWISE},
    "row_softmax": {"bf16": 16, "fp16": 12, "fp32": 16},
    "row_layernorm": {"bf16": 12, "fp16": 8, "fp32": 12},
    "row_sum": {"bf16": 20, "fp16": 15, "fp32": 20},
    "block": {"bf16": 20},
}


#: What is profiled, which is quick: which kernels a library takes, and roughly how long they take.
PROFILED: Counts = {
    "conv2d": {"bf16": 6000, "fp16": 4500, "fp32": 3500},
    "gemm": {"bf16": 800, "fp16": 500, "fp32": 700, "fp8": 300, "int8": 400},
    "bmm": {"bf16": 500, "fp16": 300, "fp32": 300},
    "sdpa": {"bf16": 500, "fp16": 300, "fp32": 150},
    "row_softmax": {"bf16": 100, "fp16": 50, "fp32": 100},
    "row_layernorm": {"bf16": 50, "fp32": 50},
    "row_sum": {"bf16": 150, "fp16": 100, "fp32": 150},
}

#: Profiled too: convolutions of which two in three are as in networks.
TYPICAL: Counts = {"conv2d": {"bf16": 6000, "fp16": 3500, "fp32": 2500}}

#: Everything but convolutions once more, long calls above all.
OTHERS: Counts = {
    "gemm": {"bf16": 400, "fp16": 130, "fp32": 200, "fp8": 300, "int8": 110},
    "bmm": {"bf16": 260, "fp16": 110, "fp32": 90},
    "sdpa": {"bf16": 90, "fp16": 40, "fp32": 30},
    **{kind: {"bf16": 22, "fp16": 14, "fp32": 14} for kind in ELEMENTWISE},
    **{kind: {"bf16": 36, "fp16": 20, "fp32": 26} for kind in ALONG_ROWS},
}

#: As unseen, with more convolutions.
FRESH: Counts = {**UNSEEN, "conv2d": {"bf16": 34, "fp16": 18, "fp32": 14}}


def _broad(rng: np.random.Generator, kind: str) -> Sampler:
    return _wild_conv if kind == "conv2d" and rng.random() < WILD_SHARE else _varied(rng, kind)


def _varied(rng: np.random.Generator, kind: str) -> Sampler:
    """Points as in networks, points of any sizes, and convolutions in groups."""
    share = rng.random()
    if kind == "conv2d" and share < GROUPED_SHARE:
        return _grouped_conv
    return (HARD_SAMPLERS if share < (1 + GROUPED_SHARE) / 2 else SAMPLERS)[kind]


#: Convolutions of all kinds, as many as there is time for.
DENSE: Counts = {"conv2d": {"bf16": 9000, "fp16": 6000, "fp32": 5000}}

#: By sampler, the share of a dense plan's convolutions.
DENSE_SHARES: tuple[tuple[Sampler, float], ...] = (
    (SAMPLERS["conv2d"], 0.3),
    (_any_conv, 0.2),
    (_network_conv, 0.25),
    (_grouped_conv, 0.1),
    (_wild_conv, 0.15),
)


def _dense(rng: np.random.Generator, kind: str) -> Sampler:
    shares = [share for _, share in DENSE_SHARES]
    return DENSE_SHARES[int(rng.choice(len(shares), p=shares))][0]


#: Of the other calls so many are long, which is at least this, if peaks are reached.
LONG_SHARE = 0.4
LONG_US = 30.0


def _others(rng: np.random.Generator, kind: str) -> Sampler:
    """As often sizes of networks as any; some of the calls are long."""
    sampler = (HARD_SAMPLERS if rng.random() < 1 / 2 else SAMPLERS)[kind]
    return partial(_long, sampler, kind) if rng.random() < LONG_SHARE else sampler


def _long(sampler: Sampler, kind: str, rng: np.random.Generator, dtype: str) -> Sizes:
    while True:
        params = sampler(rng, dtype)
        if least_us(kind, params, dtype) >= LONG_US:
            return params


PLANS = {
    "dense": Plan(counts=DENSE, sampler=_dense),
    "others": Plan(counts=OTHERS, sampler=_others),
    "typical": Plan(counts=TYPICAL, sampler=_mixed),
    "fresh": Plan(counts=FRESH, sampler=_mixed),
    "profiled": Plan(counts=PROFILED, sampler=_broad),
    "more": Plan(counts=MORE, sampler=_varied),
    "groups": Plan(counts=GROUPS, sampler=lambda rng, kind: _grouped_conv),
    "hard": Plan(counts=HARD, sampler=lambda rng, kind: HARD_SAMPLERS[kind]),
    "unseen": Plan(counts=UNSEEN, sampler=_mixed),
}
NAMES = ("library", *PLANS)


def planned_points(name: str, seed: int) -> list[LibraryPoint]:
    """The points of a plan in a shuffled order."""
    if name == "library":
        return library_points(seed)
    plan, rng = PLANS[name], np.random.default_rng(seed)
    drawn = [
        sample_with(plan.sampler(rng, kind), kind, dtype, rng)
        for kind, dtypes in plan.counts.items()
        for dtype, count in dtypes.items()
        for _ in range(count)
    ]
    return [drawn[i] for i in rng.permutation(len(drawn))]

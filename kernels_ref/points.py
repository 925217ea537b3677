"""Which sizes are measured: a few usual ones, and random ones that no library was tuned for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernels_ref.kernel import Params

IMPLEMENTATIONS = ("torch", "triton")

#: Random sizes are multiples of these in turn; those of 1 are made odd, which rules out the wide
#: loads that libraries are tuned for.
ALIGNMENTS = (64, 8, 1)

#: Square products, one whose rows fill one tile only, and decoding steps of a language model with
#: hidden size 4096 and feed-forward size 14336 (Llama 3 8B, arXiv:2407.21783, table 3).
USUAL_GEMMS = (
    (1024, 1024, 1024),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (1, 4096, 4096),
    (16, 14336, 4096),
    (128, 4096, 14336),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measurement to make."""

    kernel: str
    params: Params
    dtype: str
    implementation: str


def log_uniform(generator: np.random.Generator, low: int, high: int, alignment: int = 1) -> int:
    """A random multiple of ``alignment`` near [low, high], odd if ``alignment`` is 1."""
    drawn = math.exp(generator.uniform(math.log(low), math.log(high)))
    multiple = max(1, round(drawn / alignment)) * alignment
    return multiple | 1 if alignment == 1 else multiple


def gemm_points(generator: np.random.Generator, count: int) -> Iterator[Point]:
    """Every size in bf16, every other one in fp16 too."""
    shapes = list(USUAL_GEMMS)
    for _, alignment in zip(range(count), itertools.cycle(ALIGNMENTS), strict=False):
        m = log_uniform(generator, 16, 8192, alignment)
        n, k = (log_uniform(generator, 256, 8192, alignment) for _ in range(2))
        shapes.append((m, n, k))
    for index, (m, n, k) in enumerate(shapes):
        for dtype in ("bf16", "fp16")[: 2 - index % 2]:
            yield from _both("gemm", {"M": m, "N": n, "K": k}, dtype)


def softmax_points(generator: np.random.Generator, count: int) -> Iterator[Point]:
    for index in range(count):
        cols = log_uniform(generator, 64, 32768, ALIGNMENTS[index % 3])
        rows = max(1, log_uniform(generator, 2**16, 2**27) // cols)
        # The format changes when every alignment has had its turn.
        yield from _both("row_softmax", {"rows": rows, "cols": cols}, _dtype(index // 3))


def add_points(generator: np.random.Generator, count: int) -> Iterator[Point]:
    for index in range(count):
        elements = log_uniform(generator, 2**16, 2**28, ALIGNMENTS[index % 3])
        yield from _both("ew_add", {"elements": elements}, _dtype(index // 3))


def points(seed: int) -> tuple[Point, ...]:
    """All sizes to measure; the same seed gives the same ones."""
    generator = np.random.default_rng(seed)
    return (
        *gemm_points(generator, 16),
        *softmax_points(generator, 16),
        *add_points(generator, 16),
    )


def _dtype(index: int) -> str:
    return ("bf16", "fp16", "fp32")[index % 3]


def _both(kernel: str, params: Params, dtype: str) -> Iterator[Point]:
    for implementation in IMPLEMENTATIONS:
        yield Point(kernel=kernel, params=params, dtype=dtype, implementation=implementation)

"""Is the closed form of the least offset what an exhaustive search of rings finds?"""

from __future__ import annotations

import numpy as np
import pytest

from mapper.memory_plan.layers import FeatureMap, Layer, Window
from mapper.memory_plan.offsets import overlap, segments_of, steps
from tests.mapper.memory_plan.networks import layer, random_layer


def runs_in_ring(one: Layer, unit: int, size: int, offset: int) -> bool:
    """Whether the kernel works with its input ``offset`` segments behind its output's start."""
    kernel = list(steps(one, unit))
    last = {i: number for number, (_, reads) in enumerate(kernel) for i in reads}
    inputs = segments_of(one.inputs[0], unit)
    ring: list[bool] = [False] * size
    for i in last:
        ring[(i + offset) % size] = True
    for number, (written, reads) in enumerate(kernel):
        for i in reads:
            if last[i] == number:
                ring[(i + offset) % size] = False
        if ring[written % size]:
            return False
        ring[written % size] = True
    return inputs <= size


@pytest.mark.parametrize("seed", range(20))
def test_no_smaller_ring_works(seed: int) -> None:
    """500 layers in all: the stated ring works, and one segment less never does."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        one = random_layer(rng)
        pair = overlap(one)
        assert runs_in_ring(one, 1, pair.span, pair.offset), one
        smaller = pair.span - 1
        assert not any(runs_in_ring(one, 1, smaller, d) for d in range(smaller)), one


def test_the_paper_s_example_needs_seven_segments() -> None:
    """In[2, 3] x W[3, 2]: 7 segments where 10 hold both tensors."""
    source = FeatureMap(name="in", height=2, width=1, channels=3)
    assert overlap(layer("gemm", "conv2d", (source,), 2)).span == 7


@pytest.mark.parametrize(("rows", "inner", "outer"), [(4, 3, 2), (4, 2, 3), (7, 5, 5), (1, 8, 3)])
def test_matrix_products_follow_the_paper_s_formula(rows: int, inner: int, outer: int) -> None:
    source = FeatureMap(name="in", height=rows, width=1, channels=inner)
    pair = overlap(layer("gemm", "conv2d", (source,), outer))
    assert pair.span == max(rows * inner, rows * outer) + min(inner, outer) - 1


@pytest.mark.parametrize(("side", "kernel", "offset"), [(6, 3, 7), (8, 5, 18)])
def test_same_convolutions_lag_by_their_padding(side: int, kernel: int, offset: int) -> None:
    """Equal channels, a segment per pixel: padding x (width + 1)."""
    window = Window(size=kernel, pad=kernel // 2)
    source = FeatureMap(name="in", height=side, width=side, channels=4)
    one = layer("conv", "conv2d", (source,), 4, (window, window))
    assert overlap(one, segment_bytes=4).offset == offset

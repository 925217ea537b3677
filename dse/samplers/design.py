"""Initial designs: points that cover the space evenly before any model is fitted."""

from __future__ import annotations

import numpy as np

from dse.samplers.base import Suggestion
from dse.space import Space


def halton(space: Space, start: int, count: int, seed: int) -> list[Suggestion]:
    """Points ``start`` .. ``start + count`` of the scrambled Halton sequence of that seed."""
    from scipy.stats import qmc

    sequence = qmc.Halton(d=len(space.parameters), scramble=True, rng=np.random.default_rng(seed))
    sequence.fast_forward(start)
    sizes = [len(p.values) for p in space.parameters]
    return [
        Suggestion(point=tuple(min(int(u * n), n - 1) for u, n in zip(row, sizes, strict=True)))
        for row in sequence.random(count)
    ]

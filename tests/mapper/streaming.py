"""Streaming attention on numpy arrays: running maxima and sums, keys in any tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mapper.workload.operators import AffineIndex, Operator

Array = NDArray[np.float64]
Range = tuple[int, int]
Places = tuple[NDArray[np.int64], ...]

#: Position of the loop over keys in ``b g r m l d p``.
KEYS = 4


class Stream:
    """Maximum and sum so far, for every element of the result (equal along a head)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.largest = np.full(shape, -np.inf)
        self.total = np.zeros(shape)

    def add(
        self, inner: Array, places: Places, values: list[Array], hidden: NDArray[np.bool_]
    ) -> None:
        """One more tile of keys; ``inner`` is rescaled to the new maximum."""
        query, stored = values
        key, value = stored[..., 0], stored[..., -1]
        scores = (query[..., 0] * key).sum(axis=-1, keepdims=True)
        scores = np.where(hidden, -np.inf, scores)
        old = self.largest[places]
        new = np.maximum(old, scores.max(axis=KEYS))
        finite = np.where(np.isfinite(new), new, 0.0)
        shrink = np.exp(old - finite)
        weights = np.exp(scores - np.expand_dims(finite, KEYS))
        inner[places] = inner[places] * shrink + (weights * value).sum(axis=KEYS)
        self.total[places] = self.total[places] * shrink + weights.sum(axis=KEYS)
        self.largest[places] = new

    def finish(self, inner: Array, places: Places) -> None:
        inner[places] /= self.total[places]


def hidden_keys(
    operator: Operator, shapes: Sequence[tuple[int, ...]], ranges: Mapping[str, Range]
) -> NDArray[np.bool_]:
    """Which keys of the box do not exist or, if causal, come after the query."""
    rows = [_positions(index, ranges)[..., 0] for index in operator.accesses[1].index]
    hidden = np.zeros((1,) * (len(ranges) - 1), dtype=np.bool_)
    if len(rows) == 4:  # sequence and position: a window
        hidden = hidden | (rows[1] < 0) | (rows[1] >= shapes[1][1])
    if operator.kind == "causal_attention":
        batch = operator.extents["B"]
        queries, keys = shapes[0][0] // batch, shapes[1][0] // batch
        query = _positions(operator.accesses[0].index[0], ranges)[..., 0] % queries
        hidden = hidden | (rows[0] % keys > query + keys - queries)
    return hidden


def _positions(index: AffineIndex, ranges: Mapping[str, Range]) -> NDArray[np.int64]:
    grids = dict(
        zip(ranges, np.ogrid[tuple(slice(*span) for span in ranges.values())], strict=True)
    )
    zero = np.zeros((1,) * len(ranges), dtype=np.int64)
    return sum((step * grids[dim] for dim, step in index.terms), zero + index.offset)

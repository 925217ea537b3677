"""Non-dominated sets."""

from __future__ import annotations

from collections.abc import Sequence

from dse.trial import Trial


def non_dominated(trials: Sequence[Trial], keys: Sequence[str]) -> tuple[Trial, ...]:
    """Trials that no other one beats (all ``keys`` minimised), in their order.

    Of several with equal objectives the first stays.
    """
    rows = [tuple(t.objectives[k] for k in keys) for t in trials]
    return tuple(
        t for i, t in enumerate(trials) if not any(_beats(rows, j, i) for j in range(len(rows)))
    )


def _beats(rows: list[tuple[float, ...]], a: int, b: int) -> bool:
    if rows[a] == rows[b]:
        return a < b
    return all(x <= y for x, y in zip(rows[a], rows[b], strict=True))

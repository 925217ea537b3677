"""Limits of a search: how far a design is beyond each, and how that is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.config import Constraint


def violations(constraints: Sequence[Constraint], totals: Mapping[str, float]) -> dict[str, float]:
    """By quantity name: value / limit - 1, so that 0.2 is 20 % too much; unknown ones left out."""
    return {
        c.quantity.name: totals[c.quantity.key] / c.limit - 1
        for c in constraints
        if c.quantity.key in totals
    }


def broken(constraints: Sequence[Constraint], totals: Mapping[str, float]) -> str:
    """Each limit that is not met, with value and limit; empty when all are."""
    return "; ".join(
        f"{c.quantity.name}: needs {c.quantity.show(totals[c.quantity.key])}, "
        f"allowed {c.quantity.show(c.limit)}"
        for c in constraints
        if c.quantity.key in totals and totals[c.quantity.key] > c.limit
    )

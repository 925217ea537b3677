"""What a fidelity says about one operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """``busy_ps`` is per port, and never more than the latency."""

    latency_ps: int
    busy_ps: Mapping[str, int]

"""What a fidelity says about one operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """``busy_ps`` is per port, and never more than the latency. ``gap_ps`` says, by cause, why
    the latency is more than the analytical one (only at event fidelity)."""

    latency_ps: int
    busy_ps: Mapping[str, int]
    gap_ps: Mapping[str, int] = field(default_factory=dict)

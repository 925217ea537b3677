"""A stream of requests to a memory, as asked for."""

from __future__ import annotations

from dataclasses import dataclass

PATTERNS = ("sequential", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """``size_bytes`` in bursts, read in order (``stride_bytes`` apart) or each burst once at a
    random place in the whole memory. Of the requests, a share ``read`` are reads, the others
    writes spread evenly among them. ``outstanding``: at most so many without an answer.
    ``one_channel``: simulate one for all, which must see the same requests."""

    size_bytes: int
    pattern: str
    read: float = 1.0
    outstanding: int | None = None
    stride_bytes: int | None = None
    inject_per_cycle: int | None = None
    seed: int = 0
    one_channel: bool = False

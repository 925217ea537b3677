"""Placing buffers in a linear arena: largest first, at the lowest free address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mapper.memory_plan.plan import Buffer, Placement

#: TensorFlow Lite Micro aligns every buffer to this (its ``MicroArenaBufferAlignment``).
TFLM_ALIGNMENT = 16


def aligned(size_bytes: int, alignment: int) -> int:
    return -(-size_bytes // alignment) * alignment


def first_fit(
    buffers: Iterable[Buffer], fixed: Sequence[Placement] = (), alignment: int = 1
) -> list[Placement]:
    """Each buffer in the given order at the lowest address where it meets no other."""
    placed = list(fixed)
    for buffer in buffers:
        offset = 0
        neighbours = (p for p in placed if p.buffer.meets(buffer))
        for other in sorted(neighbours, key=lambda p: p.offset_bytes):
            if other.offset_bytes - offset >= aligned(buffer.size_bytes, alignment):
                break
            end = other.offset_bytes + aligned(other.buffer.size_bytes, alignment)
            offset = max(offset, end)
        placed.append(Placement(buffer=buffer, offset_bytes=offset))
    return placed


def extent_bytes(placements: Iterable[Placement], alignment: int = 1) -> int:
    """Where the last buffer ends."""
    ends = (p.offset_bytes + aligned(p.buffer.size_bytes, alignment) for p in placements)
    return max(ends, default=0)


def tflm_order(buffers: Sequence[Buffer], alignment: int = TFLM_ALIGNMENT) -> list[Buffer]:
    """Largest first; of equal sizes the one with the higher tensor number first.

    TensorFlow Lite Micro fills the list that it sorts from the back, and sorts stably.
    """
    last_first = list(reversed(buffers))
    return sorted(last_first, key=lambda b: -aligned(b.size_bytes, alignment))

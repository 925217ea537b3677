"""What every planner answers: where each buffer lies, for how long, and what it adds up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Bytes that are needed from the step ``first`` to the step ``last``, both included."""

    name: str
    size_bytes: int
    first: int
    last: int

    def meets(self, other: Buffer) -> bool:
        """Whether both are needed at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A buffer at an address of the pool; in a ring the address may be negative or wrap."""

    buffer: Buffer
    offset_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Layers that run as one kernel. ``layer_macs`` include what is computed more than once.

    ``layers`` are names in execution order; several are fused, ``patches`` says in how many
    spatial parts. ``segment_bytes`` is the unit of the kernel's ring addressing (0: none).
    ``is_call``: a call of a file's runtime, which may cover any number of layers unfused.
    ``in_place``: a depthwise layer over its own input, a channel at a time through a buffer.
    """

    name: str
    layers: tuple[str, ...]
    layer_macs: tuple[int, ...]
    patches: int = 1
    segment_bytes: int = 0
    is_call: bool = False
    in_place: bool = False

    @property
    def macs(self) -> int:
        return sum(self.layer_macs)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """A network in RAM. ``pool_bytes`` holds the placements; ``extra_bytes`` come on top.

    ``lower_bound_bytes`` is what no plan of the same kind (order, fusion and overlap that the
    planner may choose from) can do without; equal to ``pool_bytes`` if the plan is optimal.
    """

    planner: str
    pool_bytes: int
    is_ring: bool
    placements: tuple[Placement, ...]
    steps: tuple[Step, ...]
    extra_bytes: Mapping[str, int] = field(default_factory=dict)
    lower_bound_bytes: int

    @property
    def peak_bytes(self) -> int:
        return self.pool_bytes + sum(self.extra_bytes.values())

    @property
    def macs(self) -> int:
        return sum(step.macs for step in self.steps)


def live_bytes(buffers: list[Buffer]) -> int:
    """The most bytes needed at any step: a bound for every planner that does not overlap them."""
    steps = {buffer.first for buffer in buffers}
    return max(sum(b.size_bytes for b in buffers if b.first <= t <= b.last) for t in steps)

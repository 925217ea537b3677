"""What the hardware is: frozen records that every other package reads.

Sizes are integer bytes, times integer picoseconds, rates bytes per second; energies are
picojoules, areas square millimetres, powers watts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from arch.registry import family_named

PS_PER_S = 10**12

#: Operand roles of a contraction ``output += input * weight``. An operator with no weight
#: (an elementwise sum, a pooling) uses ``input`` for each of its inputs.
ROLES = ("input", "weight", "output")

#: Classes of a loop dimension, by the operands that it indexes: ``m`` input and output only,
#: ``n`` weight and output only, ``k`` summed away (not in the output), ``b`` all three.
DIM_CLASSES = ("m", "n", "k", "b")

#: Vector operations that a vector unit may list in its ``operations``.
VECTOR_OPERATIONS = ("add", "mul", "max", "mean", "copy", "activation", "softmax", "norm")


#: Who asks a port for something: the unit that computes, and those that move tiles for it.
REQUESTERS = ("compute", "load", "store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arbiter:
    """Who is served next at a port of a component, and how many may wait there.

    ``policy``: in the order of the requests (``fifo``), by kind of requester as in ``order``
    (``priority``), or each in turn (``round_robin``). ``queue``: None for any number.
    """

    policy: str = "fifo"
    order: tuple[str, ...] = REQUESTERS
    queue: int | None = None

    @property
    def is_plain(self) -> bool:
        """First come, first served, and nobody is held back."""
        return self.policy == "fifo" and self.queue is None


PLAIN = Arbiter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Banks:
    """``count`` banks of a memory, with consecutive chunks of bytes in consecutive banks."""

    count: int
    interleave_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Anything that has a name, an area and a leakage power; ``count`` equal instances.

    ``arbiter`` is that of each of its ports."""

    name: str
    count: int = 1
    area_mm2: float = 0.0
    leakage_w: float = 0.0
    arbiter: Arbiter = PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Component):
    """A level that keeps tiles.

    ``replicated_over`` names the axes of the compute unit that each have their own instance:
    ``()`` is one memory for the chip, ``("cols",)`` one per column, ``("rows", "cols")`` one
    per processing element. ``serves`` names the compute unit of a replicated memory.
    ``size_bytes`` is per instance; bandwidths (``None``: never the bottleneck) are of all
    instances together. A ``shared_port`` memory reads and writes through one port.
    ``double_buffered``: a tile that is replaced needs room for its successor too.
    ``wide_outputs``: final outputs are kept as wide as partial sums. ``may_bypass`` lists the
    roles that a mapping may also lead past it. ``is_latch``: it holds what one step needs.
    """

    size_bytes: int
    roles: tuple[str, ...]
    read_bytes_per_s: int | None
    write_bytes_per_s: int | None
    shared_port: bool
    read_pj_per_byte: float
    write_pj_per_byte: float
    latency_ps: int = 0
    replicated_over: tuple[str, ...] = ()
    serves: str | None = None
    double_buffered: bool = True
    wide_outputs: bool = False
    may_bypass: tuple[str, ...] = ()
    is_latch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension of a compute unit's parallelism: its size and the loops it may unroll."""

    name: str
    size: int
    dim_classes: tuple[str, ...] = DIM_CLASSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Intrinsic:
    """One hardware tile instruction: ``operation`` over the axes' extents in one interval.

    ``energy_pj`` is per scalar operation (one multiply-accumulate, one addition), so that a
    partly filled tile costs what it computes. ``latency_ps`` is from the last issue of a tile
    to its last result (pipeline fill and drain). ``skips`` lists the zeros that cost neither
    time nor energy: those of ``block`` or ``2:4`` sparse operands, or ``unstructured``: any.
    """

    name: str
    operations: tuple[str, ...]
    axes: tuple[Axis, ...]
    dtypes: tuple[str, ...]
    interval_ps: int
    latency_ps: int
    energy_pj: float
    skips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """What a new tile of the operand that stays in a unit (``role``) costs beyond its steps.

    ``time_ps`` is for loading it and for the skew of operands and results, until the last
    result is there; the next tile may enter ``turnaround_ps`` later.
    """

    role: str
    time_ps: int
    turnaround_ps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute(Component):
    """A unit that executes intrinsics, one at a time.

    ``fold`` is absent where changing the stationary tile hides behind the steps.
    """

    intrinsics: tuple[Intrinsic, ...]
    fold: Fold | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Component):
    """A connection between components (or whole devices)."""

    ends: tuple[str, str]
    bytes_per_s: int
    latency_ps: int
    pj_per_byte: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NocLink(Component):
    """``count`` equal links of a network between the memory ``source`` and a compute unit.

    ``loads`` is the share of a stream that one of them carries, by how the stream is spread over
    the nodes (see ``arch.noc``); ``bytes_per_s`` is of one link in one direction. Whatever
    crosses the link that all traffic passes is ``transit_ps`` later at its destination, and has the
    area of the whole ``network``, unless that is not known.
    """

    network: str
    source: str
    loads: Mapping[tuple[bool, bool], Fraction]
    bytes_per_s: int
    pj_per_byte: float
    transit_ps: int = 0
    area_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A whole device. Memories are listed from the outermost (DRAM) inwards.

    With several ``cores`` the components describe one core, except that area and leakage are of
    all; the outermost memory is shared by all of them.
    ``document`` is the checked configuration it was built from: overrides are applied to it,
    and a Pareto design is written back from it.
    """

    name: str
    family: str
    description: str
    clock_hz: int
    technology_nm: int
    components: tuple[Component, ...]
    document: Mapping[str, Any] = field(repr=False, compare=False)
    cores: int = 1

    @property
    def memories(self) -> tuple[Memory, ...]:
        return tuple(c for c in self.components if isinstance(c, Memory))

    @property
    def computes(self) -> tuple[Compute, ...]:
        return tuple(c for c in self.components if isinstance(c, Compute))

    @property
    def area_mm2(self) -> float:
        """Silicon area of the device; off-chip memory counts as zero."""
        return sum(c.area_mm2 * c.count for c in self.components)

    @property
    def without_area(self) -> tuple[str, ...]:
        """What is on the chip and not part of ``area_mm2``, since nobody said how large it is."""
        links = (c for c in self.components if isinstance(c, NocLink) and not c.area_known)
        return tuple(dict.fromkeys(link.network for link in links))

    @property
    def leakage_w(self) -> float:
        return sum(c.leakage_w * c.count for c in self.components)

    def component(self, name: str) -> Component:
        """The component of that name; ``KeyError`` if there is none."""
        return next(c for c in self.components if c.name == name)

    def with_overrides(self, overrides: Mapping[str, Any]) -> Architecture:
        """A new architecture with ``{"gbuf.size": "256 KiB"}`` applied and checked again.

        Raises ``arch.errors.InputError`` for a path that does not exist or a value that is
        not allowed, with a suggestion.
        """
        rebuilt: Architecture = family_named(self.family).rebuild(self.document, overrides)
        return rebuilt

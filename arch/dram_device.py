"""A DRAM with its controller: geometry, timing, policies. What simulators and prices read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from arch.spec import Memory
from arch.timing import Gate, gates

#: Fields of an address, each a power of two in size.
ADDRESS_FIELDS: Mapping[str, str] = {
    "ro": "row",
    "ra": "rank",
    "bg": "bank group",
    "ba": "bank within its group",
    "ch": "channel",
    "co": "column, counted in bursts",
}


@dataclass(frozen=True, kw_only=True)
class Currents:
    """Supply currents of one device in mA, as data sheets and JESD79 name them.

    ``i_beta`` flows while a bank is precharged; ``rho`` is the part of the active standby
    current that all banks share (DRAMPower's model). ``IPP`` currents flow from ``vpp``.
    """

    vdd: float
    idd0: float
    idd2n: float
    idd3n: float
    idd4r: float
    idd4w: float
    idd5b: float
    i_beta: float
    rho: float


@dataclass(frozen=True, kw_only=True)
class Controller:
    """How requests wait and in which order they are served.

    ``address_map`` lists ``ADDRESS_FIELDS`` from the most to the least significant.
    ``page``: ``open`` rows stay open until another row of the bank is wanted; ``closed``: every
    access precharges its bank. ``scheduler``: ``fr_fcfs`` lets accesses to open rows and ready
    banks pass, ``fcfs`` serves in order of arrival. ``queue``: commands wait in one queue
    ``per_bank`` of ``queue_depth`` each, or in one ``shared`` queue. Before that, requests of a
    channel wait for room in ``transaction_depth`` places each for reads and writes.
    ``row_hit_limit``: after so many accesses a row may be closed although more accesses to it
    are waiting. ``inject_per_cycle``: requests that the memory system can be given in a cycle.
    """

    address_map: tuple[str, ...]
    page: str
    scheduler: str
    queue: str
    queue_depth: int
    transaction_depth: int
    row_hit_limit: int
    refresh: str
    inject_per_cycle: int


@dataclass(frozen=True, kw_only=True)
class DramDevice:
    """Equal channels, each with ranks of bank groups of banks. Sizes of a channel's whole rank:
    ``row_bytes`` are what one ACT opens, ``burst_bytes`` what one RD moves. Ranks that are
    ``pseudo_channels`` share the command bus but have each a data bus of their own."""

    name: str
    cycle_ps: int
    channels: int
    ranks: int
    bank_groups: int
    banks_per_group: int
    rows: int
    row_bytes: int
    burst_bytes: int
    row_and_column_bus: bool
    pseudo_channels: bool
    parameters: Mapping[str, int]
    controller: Controller
    currents: Currents | None
    devices_per_rank: int

    @property
    def banks(self) -> int:
        """Banks of one rank."""
        return self.bank_groups * self.banks_per_group

    @property
    def columns(self) -> int:
        """Bursts of one row."""
        return self.row_bytes // self.burst_bytes

    @property
    def channel_bytes(self) -> int:
        return self.ranks * self.banks * self.rows * self.row_bytes

    @property
    def size_bytes(self) -> int:
        return self.channels * self.channel_bytes

    @property
    def burst_cycles(self) -> int:
        """Cycles between two bursts on a data bus at best."""
        return max(self.parameters["BURST"], self.parameters["CCD_S"])

    @property
    def data_buses(self) -> int:
        return self.channels * (self.ranks if self.pseudo_channels else 1)

    @property
    def peak_bytes_per_s(self) -> int:
        """Rounded up: nothing is ever faster than this."""
        per_bus = self.burst_bytes * 10**12
        return math.ceil(self.data_buses * per_bus / (self.burst_cycles * self.cycle_ps))

    @property
    def least_latency_ps(self) -> int:
        """From a request to its data, if its row is open and nothing is in the way."""
        return self.idle_latency_cycles("hit") * self.cycle_ps

    @cached_property
    def gates(self) -> tuple[Gate, ...]:
        without = ["group"] if self.bank_groups == 1 else []
        without += ["other_ranks"] if self.pseudo_channels else []
        return gates(self.parameters, tuple(without))

    def idle_latency_cycles(self, case: str) -> int:
        """Of a read with nothing else to do: its row is open (``hit``), no row is open
        (``closed``), or another one is (``conflict``). One cycle to enter a queue and one to
        leave the controller are included."""
        p = self.parameters
        extra = {"hit": 0, "closed": p["RCDRD"], "conflict": p["RCDRD"] + p["RP"]}
        return extra[case] + p["CL"] + p["BURST"] + 2

    def field_bits(self) -> dict[str, int]:
        """Width of each field of an address."""
        sizes = {
            "ro": self.rows,
            "ra": self.ranks,
            "bg": self.bank_groups,
            "ba": self.banks_per_group,
            "ch": self.channels,
            "co": self.columns,
        }
        return {name: size.bit_length() - 1 for name, size in sizes.items()}

    def field_shifts(self) -> dict[str, int]:
        """Position of each field of an address, counted in bursts."""
        bits = self.field_bits()
        shifts, position = {}, 0
        for name in reversed(self.controller.address_map):
            shifts[name] = position
            position += bits[name]
        return shifts


@dataclass(frozen=True, slots=True, kw_only=True)
class DramChannels(Memory):
    """All channels of a memory as one component."""

    device: DramDevice

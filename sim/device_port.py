"""Ports whose service depends on the state of a memory: which rows are open and what came last,
or which banks are free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sim.devices.banked_sram import (
    COUNT,
    DENOMINATOR,
    NUMERATOR,
    QUIET,
    new_banks,
    port_constants,
    touch,
)
from sim.devices.dram_burst import COLUMN_FREE, FRONT, serve
from sim.devices.dram_state import new_state, operand_regions, timing_vector
from sim.schedule import BankedPort, DeviceAccess, Region, Schedule

Vector = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class DevicePort:
    """A memory's data bus. ``regions`` has a row (base, size, cursor) for each operand."""

    is_banked: ClassVar[bool] = False

    name: str
    timing: Vector
    state: Vector
    regions: NDArray[np.int64]
    rows: dict[Region, int]

    def region(self, access: DeviceAccess) -> int:
        return self.rows[access.region]

    def shown(self, span_ps: tuple[int, int]) -> tuple[int, int]:
        """What to draw of the last transfer, which took that long: on a track nothing overlaps, and
        nothing takes longer than at the whole rate."""
        return span_ps

    def move(self, access: DeviceAccess, ready_ps: int) -> tuple[int, int, int]:
        """When the bus is there for a transfer, when it has done it, and when the data is."""
        region = self.regions[self.rows[access.region]]
        base, size, cursor = (int(value) for value in region)
        region[2] = (cursor + access.size_bytes) % size
        start = max(int(self.state[COLUMN_FREE]), ready_ps + int(self.timing[FRONT]))
        end = serve(
            self.state,
            self.timing,
            base + cursor,
            access.size_bytes,
            int(access.is_write),
            ready_ps,
        )
        return start, int(self.state[COLUMN_FREE]), end


@dataclass(slots=True, eq=False)
class BankPort(DevicePort):
    """A port of a memory with several banks. Operands follow each other, each with its slots. What
    has none there (computations, tensors at home there) goes on where the last one ended."""

    is_banked: ClassVar[bool] = True
    shown_ps: tuple[int, int] = (0, 0)

    def region(self, access: DeviceAccess) -> int:
        return self.rows.get(access.region, 0)

    def move(self, access: DeviceAccess, ready_ps: int) -> tuple[int, int, int]:
        region = self.regions[self.region(access)]
        base, size, cursor = (int(value) for value in region)
        region[2] = (cursor + access.size_bytes) % size
        quiet = int(self.state[QUIET])
        end = touch(self.state, self.timing, base + cursor, access.size_bytes, ready_ps)
        whole = int(self.timing[NUMERATOR]) * access.size_bytes
        at_full_rate = whole // int(self.timing[DENOMINATOR] * self.timing[COUNT])
        until = int(self.state[QUIET])
        self.shown_ps = max(quiet, min(until, max(ready_ps, until - at_full_rate))), until
        return ready_ps, end, end

    def shown(self, span_ps: tuple[int, int]) -> tuple[int, int]:
        return self.shown_ps


def _bank_port(name: str, port: BankedPort) -> BankPort:
    timing = port_constants(port.banks, port.ps_per_bit)
    stripe = port.banks.count * port.banks.interleave_bytes
    base, regions = 0, [(0, stripe, 0)]
    rows: dict[Region, int] = {}
    for operand, room in port.rooms.items():
        for outside in (False, True):
            rows[operand, outside] = len(regions)
            regions.append((base, max(room, 1), 0))
        base += room
    return BankPort(
        name=name,
        timing=timing,
        state=new_banks(timing),
        regions=np.array(regions, np.int64),
        rows=rows,
    )


def device_ports(schedule: Schedule) -> dict[str, DevicePort]:
    """The ports of the devices of a schedule, at time zero, by name."""
    ports: dict[str, DevicePort] = {
        name: _bank_port(name, port) for name, port in schedule.banked.items()
    }
    for name, device in schedule.devices.items():
        timing = timing_vector(device)
        sizes = schedule.operand_bytes
        ports[name] = DevicePort(
            name=name,
            timing=timing,
            state=new_state(timing),
            regions=operand_regions(tuple(sizes.values()), device),
            rows={(operand, False): row for row, operand in enumerate(sizes)},
        )
    return ports

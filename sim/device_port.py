"""A port of a memory whose service depends on its state: which rows are open, what came last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.devices.dram_burst import COLUMN_FREE, FRONT, serve
from sim.devices.dram_state import new_state, operand_regions, timing_vector
from sim.schedule import DeviceAccess, Schedule

Vector = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class DevicePort:
    """A memory's data bus. ``regions`` has a row (base, size, cursor) for each operand."""

    name: str
    timing: Vector
    state: Vector
    regions: NDArray[np.int64]
    rows: dict[int, int]

    def region(self, access: DeviceAccess) -> int:
        return self.rows[access.operand]

    def move(self, access: DeviceAccess, ready_ps: int) -> tuple[int, int, int]:
        """When the bus is there for a transfer, when it has done it, and when the data is."""
        region = self.regions[self.rows[access.operand]]
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


def device_ports(schedule: Schedule) -> dict[str, DevicePort]:
    """The ports of the devices of a schedule, at time zero, by name."""
    ports = {}
    for name, device in schedule.devices.items():
        timing = timing_vector(device)
        sizes = schedule.operand_bytes
        ports[name] = DevicePort(
            name=name,
            timing=timing,
            state=new_state(timing),
            regions=operand_regions(tuple(sizes.values()), device),
            rows={operand: row for row, operand in enumerate(sizes)},
        )
    return ports

"""Runs a schedule as compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import simpy

from sim.deadlock import deadlock
from sim.device_port import DevicePort
from sim.devices import banked_sram, dram_burst
from sim.devices.dram_state import data_ps
from sim.engines import Simulated
from sim.process import World
from sim.replay.image import CAUSES, FINISH, LOST, TIME, Image
from sim.replay.kernel import FULL, run
from sim.schedule import Schedule
from sim.scripts import Cast, write_scripts


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """``events`` is how many operations were issued, those skipped not counted."""

    latency_ps: int
    events: int
    lost_ps: tuple[int, ...]
    devices: Mapping[str, DevicePort]


def replay(
    schedule: Schedule, *, skip_ahead: bool = True, watched_port: str | None = None
) -> Replayed:
    """What ``sim.engine.simulate`` answers, and why ``watched_port`` was idle."""
    cast = write_scripts(schedule, World(simpy.Environment()))
    capacity, events = max((s.slots for s in schedule.stages), default=0) + 1, FULL
    while events == FULL:
        image = Image(cast, capacity=capacity, skip_ahead=skip_ahead, watched_port=watched_port)
        events = run(image.array)
        capacity *= 2
    _check_finished(cast, image)
    ends = [image.array[row + column] for row in image.rows for column in (TIME, FINISH)]
    lost = image.array[LOST : LOST + CAUSES]
    image.copy_back()
    return Replayed(
        latency_ps=int(max(ends)),
        events=events,
        lost_ps=tuple(map(int, lost)),
        devices=cast.devices,
    )


#: In the order of the causes in an image.
CAUSE_NAMES = ("fill", "latency", "dependence", "contention", "back_pressure")
#: Why a device's bus waits although something is there to move.
BUS_CAUSES = {
    "bus_turnaround": dram_burst.TURNAROUND_PS,
    "row_miss": dram_burst.ROW_MISS_PS,
    "refresh": dram_burst.REFRESH_PS,
    "bank_group": dram_burst.BANK_GROUP_PS,
}


def run_schedule(schedule: Schedule, watched_port: str | None) -> Simulated:
    """As an engine of ``sim.engines``."""
    done = replay(schedule, watched_port=watched_port)
    lost = dict(zip(CAUSE_NAMES, done.lost_ps, strict=True))
    device = done.devices.get(watched_port or "")
    if device is None:
        return Simulated(latency_ps=done.latency_ps, lost_ps=lost)
    if device.is_banked:
        working = int(device.state[banked_sram.WORKING])
        return Simulated(
            latency_ps=done.latency_ps,
            lost_ps=lost,
            working_ps=working,
            slower_by="bank_conflict",
        )
    lost |= {cause: int(device.state[at]) for cause, at in BUS_CAUSES.items()}
    working, shares = data_ps(device.state, device.timing)
    return Simulated(latency_ps=done.latency_ps, lost_ps=lost | shares, working_ps=working)


def _check_finished(cast: Cast, image: Image) -> None:
    for process, position in image.positions().items():
        process.position = position
    if not all(process.finished for process in cast.processes):
        raise deadlock(cast.processes, image.jams())

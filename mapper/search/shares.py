"""Where the room, the time and the energy of a mapping go: the parts that its cost is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapper.search.costs import ANSWERS, TOTAL_PJ, TOTAL_PS, cost
from mapper.search.flows import Flows
from mapper.search.pricing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """``memories[memory]``: how full it is, its part of the energy, its time over the latency;
    ``steps`` is the time of the compute unit's steps over the latency."""

    memories: FloatArray
    steps: float


def shares(volumes: FloatArray, flows: Flows) -> Shares:
    """Of a mapping that fits, with these volumes."""
    answer, busy = np.empty(ANSWERS), np.empty(len(flows.ports))
    cost(volumes, flows, busy, answer)
    ticks = volumes[flows.steps_columns[0]] * flows.step_ticks + flows.aside_ticks
    latency = answer[TOTAL_PS]
    time = (busy / flows.ports[:, 1]).reshape(-1, 2).max(axis=1) / latency
    parts = [_held(volumes, flows), _energy(volumes, flows) / answer[TOTAL_PJ], time]
    return Shares(
        memories=np.stack(parts, axis=1), steps=float(ticks / flows.step_ticks_per_ps / latency)
    )


def _held(volumes: FloatArray, flows: Flows) -> FloatArray:
    places, numbers = (
        flows.places[flows.sums : flows.tiles],
        flows.numbers[flows.sums : flows.tiles],
    )
    bits = np.where(volumes[places[:, 2]] > 1.0, numbers[:, 1], numbers[:, 0])
    slots = np.where(volumes[places[:, 3]] > 1.0, numbers[:, 2], 1.0)
    held = np.zeros(len(flows.capacity_bits))
    np.add.at(held, places[:, 1], volumes[places[:, 0]] * bits * slots)
    return held / flows.capacity_bits


def _energy(volumes: FloatArray, flows: Flows) -> FloatArray:
    """Of what is moved; the part that is the same for all mappings is left out."""
    energy = np.zeros(len(flows.ports))
    places, numbers = flows.places[: flows.linear], flows.numbers[: flows.linear]
    np.add.at(energy, places[:, 1], volumes[places[:, 0]] * numbers[:, 1])
    places = flows.places[flows.linear : flows.sums]
    numbers = flows.numbers[flows.linear : flows.sums]
    moved = volumes[places[:, 0]] - numbers[:, 4]
    each = np.where(volumes[places[:, 3]] > 1.0, numbers[:, 3], numbers[:, 1])
    np.add.at(energy, places[:, 2], moved * each)
    both: FloatArray = energy.reshape(-1, 2).sum(axis=1)
    return both

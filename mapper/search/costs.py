"""The cost of volumes, compiled: the analytical model, summed over one operator.

``cost`` grows with every volume, so that smallest volumes give a lower bound. Volumes are
integers kept in floats, exact below 2**53.
"""

from __future__ import annotations

import numpy as np

from mapper.compiled import kernel
from mapper.search.flows import Flows
from mapper.search.pricing import EDP, ENERGY, LATENCY, ROOM, FloatArray

# What ``cost`` answers.
EXCESS, TOTAL_PS, TOTAL_PJ, EXPOSED = 0, 1, 2, 3
ANSWERS = 4

#: Multiplying by this and subtracting again leaves 40 of a float's 53 bits.
_ROUND_TO_40_BITS = 2.0**13 + 1.0


@kernel
def acceptable(objective: int, answer: FloatArray) -> bool:
    """Does it fit? Looking for room, it may be too large, but not too wide."""
    if objective == ROOM:
        return bool(answer[EXCESS] < np.inf)
    return bool(answer[EXCESS] == 0.0)


@kernel
def better(objective: int, answer: FloatArray, best: FloatArray) -> bool:
    """Is ``answer`` better than ``best``, both as filled in by ``cost``?

    Latency decides between equal energies (or products), energy between equal latencies, and
    then how long the unit waits for tiles that arrive while nothing else is to be done.
    """
    if objective == ROOM:
        return bool(answer[EXCESS] < best[EXCESS])
    first, second = _keys(objective, answer)
    best_first, best_second = _keys(objective, best)
    if first != best_first:
        return first < best_first
    if second != best_second:
        return second < best_second
    return bool(answer[EXPOSED] < best[EXPOSED])


@kernel
def worthwhile(objective: int, bound: FloatArray, best: FloatArray, slack: float) -> bool:
    """May something that costs at least ``bound`` be better than ``best``?

    With ``slack``, by more than this share. Exposed time does not count: the search does not
    look for the least among mappings that cost the same.
    """
    if objective == ROOM:
        return bool(bound[EXCESS] * (1.0 + slack) < best[EXCESS])
    first, second = _keys(objective, bound)
    best_first, best_second = _keys(objective, best)
    first *= 1.0 + slack
    if first != best_first:
        return first < best_first
    return second < best_second


@kernel
def _keys(objective: int, answer: FloatArray) -> tuple[float, float]:
    latency, energy = answer[TOTAL_PS], answer[TOTAL_PJ]
    if objective == LATENCY:
        return latency, energy
    if objective == ENERGY:
        return energy, latency
    return latency * energy, latency


def value(objective: int, answer: FloatArray) -> float:
    """What the objective minimizes."""
    latency, energy = float(answer[TOTAL_PS]), float(answer[TOTAL_PJ])
    return {
        LATENCY: latency,
        ENERGY: energy,
        EDP: latency * energy,
        ROOM: float(answer[EXCESS]),
    }[objective]


@kernel
def cost(volumes: FloatArray, flows: Flows, scratch: FloatArray, answer: FloatArray) -> None:
    """Fills ``answer`` with excess, latency, energy and exposed time of some volumes.

    The excess is by how much memories are too small, as shares of their sizes; infinite if an
    axis is too short. What does not fit costs infinitely much. Exposed are the transfers of first
    tiles, and of all where a memory has no room for a second one. ``scratch`` has two entries per
    memory. The energy is rounded, so that mappings that cost the same are equal whatever order
    their energies are added in.
    """
    answer[EXCESS] = excess(volumes, flows, scratch)
    if answer[EXCESS] > 0.0:
        answer[TOTAL_PS] = answer[TOTAL_PJ] = answer[EXPOSED] = np.inf
    else:
        spend(volumes, flows, scratch, answer)


@kernel
def spend(volumes: FloatArray, flows: Flows, scratch: FloatArray, answer: FloatArray) -> None:
    """Latency, energy and exposed time, whether it fits or not."""
    energy = flows.fixed_pj + _traffic(volumes, flows, scratch)
    latency = _waits(volumes, flows, answer)
    busiest = 0.0
    for p in range(flows.ports.shape[0]):
        busiest = max(busiest, scratch[p] / flows.ports[p, 1])
    latency = max(latency, np.ceil(busiest))
    energy += flows.leakage_w * latency
    wide = energy * _ROUND_TO_40_BITS
    answer[TOTAL_PS] = latency
    answer[TOTAL_PJ] = wide - (wide - energy)


@kernel
def excess(volumes: FloatArray, flows: Flows, held: FloatArray) -> float:
    """By how much memories are too small; infinite if an axis is too short."""
    places, numbers = flows.places, flows.numbers
    for a in range(flows.axis_sizes.shape[0]):
        if volumes[flows.axis_columns[a]] > flows.axis_sizes[a]:
            return float(np.inf)
    for m in range(flows.capacity_bits.shape[0]):
        held[m] = 0.0
    for t in range(flows.sums, flows.tiles):
        bits = numbers[t, 1] if volumes[places[t, 2]] > 1.0 else numbers[t, 0]
        slots = numbers[t, 2] if volumes[places[t, 3]] > 1.0 else 1.0
        held[places[t, 1]] += volumes[places[t, 0]] * bits * slots
    missing = 0.0
    for m in range(flows.capacity_bits.shape[0]):
        capacity = flows.capacity_bits[m]
        if held[m] > capacity:
            missing += (held[m] - capacity) / capacity
    return missing


@kernel
def _traffic(volumes: FloatArray, flows: Flows, busy: FloatArray) -> float:
    """Fills the ticks that each port is busy; returns the energy."""
    places, numbers = flows.places, flows.numbers
    energy = 0.0
    for p in range(flows.ports.shape[0]):
        busy[p] = flows.ports[p, 0]
    for t in range(flows.linear):
        moved = volumes[places[t, 0]]
        busy[places[t, 1]] += moved * numbers[t, 0]
        energy += moved * numbers[t, 1]
    for t in range(flows.linear, flows.sums):
        moved = max(volumes[places[t, 0]], volumes[places[t, 1]] / flows.lanes) - numbers[t, 4]
        if volumes[places[t, 3]] > 1.0:
            busy[places[t, 2]] += moved * numbers[t, 2]
            energy += moved * numbers[t, 3]
        else:
            busy[places[t, 2]] += moved * numbers[t, 0]
            energy += moved * numbers[t, 1]
    return float(energy)


@kernel
def _waits(volumes: FloatArray, flows: Flows, answer: FloatArray) -> float:
    """Time of the steps or of round trips, whichever is longer; fills in the exposed time.

    Loads wait for a free slot and then for the memory's latency.
    """
    places, numbers = flows.places, flows.numbers
    columns = flows.steps_columns
    steps = max(volumes[columns[0]], volumes[columns[1]] / flows.lanes)
    ticks = steps * flows.step_ticks + volumes[columns[2]] * flows.fold_ticks + flows.aside_ticks
    latency = max(np.ceil(ticks / flows.step_ticks_per_ps), flows.least_ps)
    exposed = 0.0
    for t in range(flows.tiles, flows.waits):
        visits = volumes[places[t, 2]]
        loads = volumes[places[t, 0]]
        if numbers[t, 2] > 0.0:
            loads *= volumes[places[t, 1]] - 1.0
        slots = numbers[t, 1] if visits > 1.0 else 1.0
        moving = volumes[places[t, 3]] * numbers[t, 3]
        exposed += visits * numbers[t, 4] + (moving / visits if slots > 1.0 else moving)
        latency = max(latency, np.ceil(loads * numbers[t, 0] / slots))
    answer[EXPOSED] = exposed
    return float(latency)

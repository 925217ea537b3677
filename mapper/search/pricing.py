"""The cost of volumes, compiled: the analytical model, summed over one operator.

``cost`` grows with every volume, so that smallest volumes give a lower bound. Volumes are
integers kept in floats, exact below 2**53.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import compiled

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Columns of the stage table.
PARENT, CHILD, IS_OUTPUT, IS_INNERMOST = 0, 1, 2, 3
COL_PARENT, COL_CHILD, COL_HELD, COL_VISITS, COL_REVISITS = 4, 5, 6, 7, 8
FINAL_BITS, PARTIAL_BITS, DOUBLE_BUFFERED, OUTPUTS = 9, 10, 11, 12
IS_SHARED, LATENCY_PS, COL_FRESH, COL_OWN_REVISITS = 13, 14, 15, 16
STAGE_FIELDS = 17
# Columns of the datapath table (one row per operand).
MEMORY, D_IS_OUTPUT, COL_MOVED, COL_LIFTED = 0, 1, 2, 3
D_FINAL_BITS, D_PARTIAL_BITS, D_OUTPUTS = 4, 5, 6
DATAPATH_FIELDS = 7
# Columns of the memory table; a bit takes READ_TICKS (or WRITE_TICKS) / TICKS_PER_PS.
READ_TICKS, WRITE_TICKS, TICKS_PER_PS, SHARED_PORT = 0, 1, 2, 3
READ_PJ, WRITE_PJ, CAPACITY_BITS = 4, 5, 6
MEMORY_FIELDS = 7
# Columns of the scratch table of traffic, per memory in bits.
READ, WRITTEN, HELD = 0, 1, 2
TRAFFIC_FIELDS = 3
# What ``cost`` answers.
EXCESS, TOTAL_PS, TOTAL_PJ, TRANSFERS = 0, 1, 2, 3
ANSWERS = 4

#: Objectives. ``ROOM`` looks for the mapping that comes closest to fitting.
LATENCY, ENERGY, EDP, ROOM = 0, 1, 2, 3

#: Multiplying by this and subtracting again leaves 40 of a float's 53 bits.
_ROUND_TO_40_BITS = 2.0**13 + 1.0


class Model(NamedTuple):
    """The cost function's coefficients for one order of stages (see the column names above).

    ``axis_columns`` and ``axis_sizes`` are those of the contended axes, ``lanes`` the product
    of these sizes. A lifted column is a volume times the axes used: divided by ``lanes`` it
    bounds the volume from below, and unlike the volume itself it stays tight in a box whose
    dimensions cannot all be unrolled at once. ``least_ps`` is what other units need meanwhile.
    """

    stages: IntArray
    datapaths: IntArray
    memories: FloatArray
    axis_columns: IntArray
    axis_sizes: FloatArray
    lanes: float
    steps_column: int
    lifted_steps_column: int
    unit_revisits_column: int
    step_ticks: float
    aside_ticks: float
    step_ticks_per_ps: float
    compute_pj: float
    least_ps: float
    leakage_w: float
    objective: int
    fold_column: int = 0
    fold_ticks: float = 0.0


@compiled
def acceptable(objective: int, answer: FloatArray) -> bool:
    """Does it fit? Looking for room, it may be too large, but not too wide."""
    if objective == ROOM:
        return bool(answer[EXCESS] < np.inf)
    return bool(answer[EXCESS] == 0.0)


@compiled
def better(objective: int, answer: FloatArray, best: FloatArray) -> bool:
    """Is ``answer`` better than ``best``, both as filled in by ``cost``?

    Latency decides between equal energies (or products), energy between equal latencies, and
    then the number of tiles transferred: each costs a round trip, whether or not hidden.
    """
    if objective == ROOM:
        return bool(answer[EXCESS] < best[EXCESS])
    first, second = _keys(objective, answer)
    best_first, best_second = _keys(objective, best)
    if first != best_first:
        return first < best_first
    if second != best_second:
        return second < best_second
    return bool(answer[TRANSFERS] < best[TRANSFERS])


@compiled
def _keys(objective: int, answer: FloatArray) -> tuple[float, float]:
    latency, energy = answer[TOTAL_PS], answer[TOTAL_PJ]
    if objective == LATENCY:
        return latency, energy
    if objective == ENERGY:
        return energy, latency
    return latency * energy, latency


@compiled
def cost(volumes: FloatArray, model: Model, traffic: FloatArray, answer: FloatArray) -> None:
    """Fills ``answer`` with excess, latency, energy and transfers of some volumes.

    The excess is by how much memories are too small, as shares of their sizes; infinite if an
    axis is too short. Transfers are tiles of shared memories. ``traffic`` is scratch space.
    The energy is rounded, so that mappings that cost the same are equal whatever order their
    energies are added in.
    """
    transfers, waiting = _add_stages(volumes, model.stages, traffic)
    partial = volumes[model.unit_revisits_column] > 1.0
    _add_datapaths(volumes, model.datapaths, model.lanes, partial, traffic)
    steps = max(volumes[model.steps_column], volumes[model.lifted_steps_column] / model.lanes)
    ticks = steps * model.step_ticks + volumes[model.fold_column] * model.fold_ticks
    stepping = np.ceil((ticks + model.aside_ticks) / model.step_ticks_per_ps)
    latency = max(stepping, waiting, model.least_ps)
    busy_ps, energy, excess = _memories(model.memories, traffic)
    latency = max(latency, busy_ps)
    energy += model.compute_pj
    for a in range(model.axis_sizes.shape[0]):
        if volumes[model.axis_columns[a]] > model.axis_sizes[a]:
            excess = np.inf
    energy += model.leakage_w * latency
    wide = energy * _ROUND_TO_40_BITS
    answer[EXCESS] = excess
    answer[TOTAL_PS] = latency
    answer[TOTAL_PJ] = wide - (wide - energy)
    answer[TRANSFERS] = transfers


# The functions below index two-dimensional tables by number instead of taking rows out of
# them: a row is a new array object, and making one costs more than the arithmetic on it.


@compiled
def _add_stages(volumes: FloatArray, stages: IntArray, traffic: FloatArray) -> tuple[float, float]:
    """Fills ``traffic``; returns transfers and the longest wait for round trips."""
    for m in range(traffic.shape[0]):
        for field in range(TRAFFIC_FIELDS):
            traffic[m, field] = 0.0
    transfers = waiting = 0.0
    for s in range(stages.shape[0]):
        parent, child = stages[s, PARENT], stages[s, CHILD]
        at_parent, at_child = volumes[stages[s, COL_PARENT]], volumes[stages[s, COL_CHILD]]
        final, width = stages[s, FINAL_BITS], stages[s, FINAL_BITS]
        visits = volumes[stages[s, COL_VISITS]]
        loads = visits
        if stages[s, IS_OUTPUT]:
            partial, outputs = stages[s, PARTIAL_BITS], stages[s, OUTPUTS]
            if volumes[stages[s, COL_REVISITS]] > 1.0:
                width = partial
            refill = (at_parent - outputs) * partial
            traffic[parent, READ] += refill
            traffic[child, WRITTEN] += refill
            traffic[parent, WRITTEN] += refill + outputs * final
            if stages[s, IS_INNERMOST]:
                traffic[child, READ] += at_child * width
            else:
                traffic[child, READ] += (at_child - outputs) * partial + outputs * final
            loads = volumes[stages[s, COL_FRESH]] * (volumes[stages[s, COL_OWN_REVISITS]] - 1.0)
        else:
            traffic[parent, READ] += at_parent * final
            traffic[child, WRITTEN] += at_child * final
        slots = 2.0 if stages[s, DOUBLE_BUFFERED] and visits > 1.0 else 1.0
        traffic[child, HELD] += volumes[stages[s, COL_HELD]] * width * slots
        if stages[s, IS_SHARED]:
            # Loads wait for a free slot and then for the memory's latency.
            transfers += visits
            waiting = max(waiting, np.ceil(loads * stages[s, LATENCY_PS] / slots))
    return transfers, waiting


@compiled
def _add_datapaths(
    volumes: FloatArray, paths: IntArray, lanes: float, partial: bool, traffic: FloatArray
) -> None:
    """What the compute unit reads and writes; ``partial``: it writes partial sums."""
    for d in range(paths.shape[0]):
        moved = max(volumes[paths[d, COL_MOVED]], volumes[paths[d, COL_LIFTED]] / lanes)
        memory, width = paths[d, MEMORY], paths[d, D_FINAL_BITS]
        if paths[d, D_IS_OUTPUT]:
            if partial:
                width = paths[d, D_PARTIAL_BITS]
            traffic[memory, READ] += (moved - paths[d, D_OUTPUTS]) * width
            traffic[memory, WRITTEN] += moved * width
        else:
            traffic[memory, READ] += moved * width


@compiled
def _memories(memories: FloatArray, traffic: FloatArray) -> tuple[float, float, float]:
    """Time of the busiest port (rounded up, exact below 2**53 ticks), energy and excess."""
    busy_ps = energy = excess = 0.0
    for m in range(memories.shape[0]):
        read = traffic[m, READ] * memories[m, READ_TICKS]
        written = traffic[m, WRITTEN] * memories[m, WRITE_TICKS]
        ticks = read + written if memories[m, SHARED_PORT] != 0.0 else max(read, written)
        busy_ps = max(busy_ps, np.ceil(ticks / memories[m, TICKS_PER_PS]))
        energy += traffic[m, READ] * memories[m, READ_PJ]
        energy += traffic[m, WRITTEN] * memories[m, WRITE_PJ]
        capacity = memories[m, CAPACITY_BITS]
        if traffic[m, HELD] > capacity:
            excess += (traffic[m, HELD] - capacity) / capacity
    return busy_ps, energy, excess

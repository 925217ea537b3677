"""The cost of volumes, compiled: the analytical model, summed over one operator.

``cost`` grows with every volume, so that smallest volumes give a lower bound. Volumes are
integers kept in floats, exact below 2**53.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

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
    dimensions cannot all be unrolled at once.
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
    step_ps: float
    compute_pj: float
    leakage_w: float
    objective: int


@njit(cache=True)
def acceptable(objective: int, answer: FloatArray) -> bool:
    """Does it fit? Looking for room, it may be too large, but not too wide."""
    if objective == ROOM:
        return bool(answer[EXCESS] < np.inf)
    return bool(answer[EXCESS] == 0.0)


@njit(cache=True)
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


@njit(cache=True)
def _keys(objective: int, answer: FloatArray) -> tuple[float, float]:
    latency, energy = answer[TOTAL_PS], answer[TOTAL_PJ]
    if objective == LATENCY:
        return latency, energy
    if objective == ENERGY:
        return energy, latency
    return latency * energy, latency


@njit(cache=True)
def cost(volumes: FloatArray, model: Model, traffic: FloatArray, answer: FloatArray) -> None:
    """Fills ``answer`` with excess, latency, energy and transfers of some volumes.

    The excess is by how much memories are too small, as shares of their sizes; infinite if an
    axis is too short. Transfers are tiles of shared memories. ``traffic`` is scratch space.
    The energy is rounded, so that mappings that cost the same are equal whatever order their
    energies are added in.
    """
    transfers, waiting = _add_traffic(volumes, model, traffic)
    steps = max(volumes[model.steps_column], volumes[model.lifted_steps_column] / model.lanes)
    latency = max(steps * model.step_ps, waiting)
    energy, excess = model.compute_pj, 0.0
    for m in range(model.memories.shape[0]):
        row, load = model.memories[m], traffic[m]
        latency = max(latency, _busy_ps(row, load))
        energy += load[READ] * row[READ_PJ] + load[WRITTEN] * row[WRITE_PJ]
        excess += max(0.0, (load[HELD] - row[CAPACITY_BITS]) / row[CAPACITY_BITS])
    for a in range(model.axis_sizes.shape[0]):
        if volumes[model.axis_columns[a]] > model.axis_sizes[a]:
            excess = np.inf
    energy += model.leakage_w * latency
    wide = energy * _ROUND_TO_40_BITS
    answer[EXCESS] = excess
    answer[TOTAL_PS] = latency
    answer[TOTAL_PJ] = wide - (wide - energy)
    answer[TRANSFERS] = transfers


@njit(cache=True)
def _add_traffic(volumes: FloatArray, model: Model, traffic: FloatArray) -> tuple[float, float]:
    """Fills ``traffic``; returns transfers and the longest wait for round trips."""
    for m in range(traffic.shape[0]):
        for field in range(TRAFFIC_FIELDS):
            traffic[m, field] = 0.0
    transfers = waiting = 0.0
    for s in range(model.stages.shape[0]):
        _add_stage(volumes, model.stages[s], traffic)
        if model.stages[s, IS_SHARED]:
            transfers += volumes[model.stages[s, COL_VISITS]]
            waiting = max(waiting, _round_trips_ps(volumes, model.stages[s]))
    for d in range(model.datapaths.shape[0]):
        _add_datapath(volumes, model, model.datapaths[d], traffic)
    return transfers, waiting


@njit(cache=True)
def _busy_ps(memory: FloatArray, load: FloatArray) -> float:
    """Of the busiest port, rounded up; exact below 2**53 ticks."""
    read, written = load[READ] * memory[READ_TICKS], load[WRITTEN] * memory[WRITE_TICKS]
    ticks = read + written if memory[SHARED_PORT] != 0.0 else max(read, written)
    return float(np.ceil(ticks / memory[TICKS_PER_PS]))


@njit(cache=True)
def _add_stage(volumes: FloatArray, stage: IntArray, traffic: FloatArray) -> None:
    parent, child = traffic[stage[PARENT]], traffic[stage[CHILD]]
    at_parent, at_child = volumes[stage[COL_PARENT]], volumes[stage[COL_CHILD]]
    final, partial = stage[FINAL_BITS], stage[PARTIAL_BITS]
    width = final
    if stage[IS_OUTPUT]:
        outputs = stage[OUTPUTS]
        if volumes[stage[COL_REVISITS]] > 1.0:
            width = partial
        refill = (at_parent - outputs) * partial
        parent[READ] += refill
        child[WRITTEN] += refill
        parent[WRITTEN] += refill + outputs * final
        if stage[IS_INNERMOST]:
            child[READ] += at_child * width
        else:
            child[READ] += (at_child - outputs) * partial + outputs * final
    else:
        parent[READ] += at_parent * final
        child[WRITTEN] += at_child * final
    held = volumes[stage[COL_HELD]] * width
    if stage[DOUBLE_BUFFERED] and volumes[stage[COL_VISITS]] > 1.0:
        held *= 2.0
    child[HELD] += held


@njit(cache=True)
def _round_trips_ps(volumes: FloatArray, stage: IntArray) -> float:
    """Loads of a stage wait for a free slot and then for the memory's latency."""
    visits = volumes[stage[COL_VISITS]]
    loads = visits
    if stage[IS_OUTPUT]:
        loads = volumes[stage[COL_FRESH]] * (volumes[stage[COL_OWN_REVISITS]] - 1.0)
    slots = 2.0 if stage[DOUBLE_BUFFERED] and visits > 1.0 else 1.0
    return float(np.ceil(loads * stage[LATENCY_PS] / slots))


@njit(cache=True)
def _add_datapath(volumes: FloatArray, model: Model, path: IntArray, traffic: FloatArray) -> None:
    moved = max(volumes[path[COL_MOVED]], volumes[path[COL_LIFTED]] / model.lanes)
    memory = traffic[path[MEMORY]]
    if path[D_IS_OUTPUT]:
        width = path[D_FINAL_BITS]
        if volumes[model.unit_revisits_column] > 1.0:
            width = path[D_PARTIAL_BITS]
        memory[READ] += (moved - path[D_OUTPUTS]) * width
        memory[WRITTEN] += moved * width
    else:
        memory[READ] += moved * path[D_FINAL_BITS]

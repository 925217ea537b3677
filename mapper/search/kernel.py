"""Branch and bound over tables of factors, compiled.

Volumes are products of one row per group. A partial choice (rows for the first groups) is
bounded from below by multiplying with the smallest factor of each column over the remaining
groups: every volume can only grow from there, and latency, energy and the room needed grow
with every volume. A branch whose bound is infeasible or no better than the best mapping found
is cut; so what remains is optimal. Volumes are integers kept in floats, exact below 2**53.
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
STAGE_FIELDS = 13
# Columns of the datapath table (one row per operand).
MEMORY, D_IS_OUTPUT, COL_MOVED, D_FINAL_BITS, D_PARTIAL_BITS, D_OUTPUTS = 0, 1, 2, 3, 4, 5
DATAPATH_FIELDS = 6
# Columns of the memory table.
READ_PS, WRITE_PS, SHARED_PORT, READ_PJ, WRITE_PJ, CAPACITY_BITS = 0, 1, 2, 3, 4, 5

LATENCY, ENERGY, EDP = 0, 1, 2


class Model(NamedTuple):
    """The cost function's coefficients for one order of stages (see the column names above).

    ``axis_columns`` and ``axis_sizes`` are those of the contended axes; ``lanes`` is the
    product of all axes' sizes.
    """

    stages: IntArray
    datapaths: IntArray
    memories: FloatArray
    axis_columns: IntArray
    axis_sizes: FloatArray
    steps_column: int
    unit_revisits_column: int
    step_ps: float
    compute_pj: float
    leakage_w: float
    objective: int


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def better(objective, latency, energy, best):  # type: ignore[no-untyped-def]
    """Is (latency, energy) better than ``best``? The other one breaks ties."""
    if objective == LATENCY:
        return latency < best[0] or (latency == best[0] and energy < best[1])
    if objective == ENERGY:
        return energy < best[1] or (energy == best[1] and latency < best[0])
    edp, best_edp = latency * energy, best[0] * best[1]
    return edp < best_edp or (edp == best_edp and latency < best[0])


@njit(cache=True)  # type: ignore[untyped-decorator]
def cost(volumes, model, traffic, answer):  # type: ignore[no-untyped-def]
    """Fills ``answer`` with ``(overflow, latency_ps, energy_pj)`` of one vector of volumes.

    ``overflow`` is the largest needed/allowed ratio of a memory or axis; above 1 it does not
    fit. ``traffic`` is scratch space ``[memory, (read, write, held)]`` in bits.
    """
    memories = model.memories
    for m in range(memories.shape[0]):
        traffic[m, 0] = traffic[m, 1] = traffic[m, 2] = 0.0
    for s in range(model.stages.shape[0]):
        _add_stage(volumes, model.stages, s, traffic)
    for d in range(model.datapaths.shape[0]):
        _add_datapath(volumes, model, d, traffic)
    latency = volumes[model.steps_column] * model.step_ps
    energy = model.compute_pj
    overflow = 0.0
    for m in range(memories.shape[0]):
        read, write = traffic[m, 0], traffic[m, 1]
        read_ps, write_ps = read * memories[m, READ_PS], write * memories[m, WRITE_PS]
        busy = read_ps + write_ps if memories[m, SHARED_PORT] != 0.0 else max(read_ps, write_ps)
        latency = max(latency, busy)
        energy += read * memories[m, READ_PJ] + write * memories[m, WRITE_PJ]
        overflow = max(overflow, traffic[m, 2] / memories[m, CAPACITY_BITS])
    for a in range(model.axis_sizes.shape[0]):
        overflow = max(overflow, volumes[model.axis_columns[a]] / model.axis_sizes[a])
    answer[0] = overflow
    answer[1] = latency
    answer[2] = energy + model.leakage_w * latency


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _add_stage(volumes, stages, s, traffic):  # type: ignore[no-untyped-def]
    parent, child = stages[s, PARENT], stages[s, CHILD]
    at_parent, at_child = volumes[stages[s, COL_PARENT]], volumes[stages[s, COL_CHILD]]
    final, partial = stages[s, FINAL_BITS], stages[s, PARTIAL_BITS]
    width = final
    if stages[s, IS_OUTPUT]:
        outputs = stages[s, OUTPUTS]
        if volumes[stages[s, COL_REVISITS]] > 1.0:
            width = partial
        refill = (at_parent - outputs) * partial
        traffic[parent, 0] += refill
        traffic[child, 1] += refill
        traffic[parent, 1] += refill + outputs * final
        if stages[s, IS_INNERMOST]:
            traffic[child, 0] += at_child * width
        else:
            traffic[child, 0] += (at_child - outputs) * partial + outputs * final
    else:
        traffic[parent, 0] += at_parent * final
        traffic[child, 1] += at_child * final
    held = volumes[stages[s, COL_HELD]] * width
    if stages[s, DOUBLE_BUFFERED] and volumes[stages[s, COL_VISITS]] > 1.0:
        held *= 2.0
    traffic[child, 2] += held


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _add_datapath(volumes, model, d, traffic):  # type: ignore[no-untyped-def]
    paths = model.datapaths
    moved = volumes[paths[d, COL_MOVED]]
    memory = paths[d, MEMORY]
    if paths[d, D_IS_OUTPUT]:
        width = paths[d, D_FINAL_BITS]
        if volumes[model.unit_revisits_column] > 1.0:
            width = paths[d, D_PARTIAL_BITS]
        traffic[memory, 0] += (moved - paths[d, D_OUTPUTS]) * width
        traffic[memory, 1] += moved * width
    else:
        traffic[memory, 0] += moved * paths[d, D_FINAL_BITS]


@njit(cache=True)  # type: ignore[untyped-decorator]
def descend(table, first, start, model, best, chosen):  # type: ignore[no-untyped-def]
    """Coordinate descent from ``start``: one group at a time takes its best row.

    ``table[first[g]:first[g + 1]]`` are the rows of group ``g``. Fills ``best`` and ``chosen``
    if it ends at a feasible mapping better than ``best``; returns evaluations. While nothing
    fits, rows that overflow less are better.
    """
    groups, columns = len(first) - 1, table.shape[1]
    at = start.copy()
    traffic = np.empty((model.memories.shape[0], 3))
    answer = np.empty(3)
    volumes = np.empty(columns)
    here = np.array([np.inf, np.inf])
    least_overflow = np.inf
    calls = 0
    improved = True
    while improved:
        improved = False
        for g in range(groups):
            others = np.ones(columns)
            for h in range(groups):
                if h != g:
                    others *= table[at[h]]
            for r in range(first[g], first[g + 1]):
                for c in range(columns):
                    volumes[c] = others[c] * table[r, c]
                calls += 1
                cost(volumes, model, traffic, answer)
                if answer[0] > 1.0:
                    if answer[0] < least_overflow and here[0] == np.inf:
                        least_overflow = answer[0]
                        at[g] = r
                        improved = True
                elif better(model.objective, answer[1], answer[2], here):
                    here[0], here[1] = answer[1], answer[2]
                    at[g] = r
                    improved = True
    if here[0] < np.inf and better(model.objective, here[0], here[1], best):
        best[:] = here
        chosen[:] = at
    return calls


@njit(cache=True)  # type: ignore[untyped-decorator]
def promising(rows, others, model, best):  # type: ignore[no-untyped-def]
    """Mask of the rows whose lower bound with ``others`` is feasible and better than ``best``."""
    traffic = np.empty((model.memories.shape[0], 3))
    answer = np.empty(3)
    volumes = np.empty(rows.shape[1])
    mask = np.zeros(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        for c in range(rows.shape[1]):
            volumes[c] = others[c] * rows[r, c]
        cost(volumes, model, traffic, answer)
        mask[r] = answer[0] <= 1.0 and better(model.objective, answer[1], answer[2], best)
    return mask


@njit(cache=True)  # type: ignore[untyped-decorator]
def search(table, first, smallest, model, best, chosen):  # type: ignore[no-untyped-def]
    """Depth-first over groups; improves ``best`` and ``chosen`` in place, returns evaluations.

    ``smallest[g]`` is the product over groups from ``g`` on of their smallest factors.
    """
    groups, columns = len(first) - 1, table.shape[1]
    partial = np.ones((groups + 1, columns))
    bound = np.empty(columns)
    traffic = np.empty((model.memories.shape[0], 3))
    answer = np.empty(3)
    row = first[:-1].copy()
    calls = 0
    depth = 0
    while depth >= 0:
        if row[depth] == first[depth + 1]:
            row[depth] = first[depth]
            depth -= 1
            if depth >= 0:
                row[depth] += 1
            continue
        for c in range(columns):
            volume = partial[depth, c] * table[row[depth], c]
            partial[depth + 1, c] = volume
            bound[c] = volume * smallest[depth + 1, c]
        calls += 1
        cost(bound, model, traffic, answer)
        if answer[0] > 1.0 or not better(model.objective, answer[1], answer[2], best):
            row[depth] += 1
        elif depth == groups - 1:
            best[0], best[1] = answer[1], answer[2]
            chosen[:] = row
            row[depth] += 1
        else:
            depth += 1
            row[depth] = first[depth]
    return calls


@njit(cache=True)  # type: ignore[untyped-decorator]
def undominated(rows):  # type: ignore[no-untyped-def]
    """Mask of the rows of which no other row is at most as large in every column.

    Of equal rows the first stays. Rows must be sorted by their sum.
    """
    count, columns = rows.shape
    keep = np.ones(count, dtype=np.bool_)
    kept = np.empty(count, dtype=np.int64)
    found = 0
    for i in range(count):
        for k in range(found):
            dominated = True
            for c in range(columns):
                if rows[kept[k], c] > rows[i, c]:
                    dominated = False
                    break
            if dominated:
                keep[i] = False
                break
        if keep[i]:
            kept[found] = i
            found += 1
    return keep

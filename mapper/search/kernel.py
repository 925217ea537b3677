"""Branch and bound over tables of factors, compiled.

A partial choice (rows for the first groups) is bounded from below by multiplying with the
smallest factor of each column over the remaining groups: every volume can only grow from
there, and latency, energy and room needed grow with every volume. A branch whose bound is
infeasible or no better than the best mapping found is cut; so what remains is optimal.
"""

from __future__ import annotations

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
MEMORY_FIELDS = 6
# Scalars of the model.
COL_STEPS, COL_UNIT_REVISITS, FIRST_AXIS_COLUMN = 0, 1, 2
STEP_PS, COMPUTE_PJ, LEAKAGE_W = 0, 1, 2

LATENCY, ENERGY, EDP = 0, 1, 2


@njit(cache=True)  # type: ignore[untyped-decorator]
def cost(volumes, stages, datapaths, memories, numbers, prices, traffic):  # type: ignore[no-untyped-def]
    """``(overflow, latency_ps, energy_pj)`` of one vector of volumes.

    ``overflow`` is the largest needed/allowed ratio of a memory; above 1 it does not fit.
    ``traffic`` is scratch space ``[memory, (read, write, held)]`` in bits.
    """
    traffic[:] = 0.0
    for s in range(len(stages)):
        _add_stage(volumes, stages[s], traffic)
    for d in range(len(datapaths)):
        _add_datapath(volumes, datapaths[d], numbers, traffic)
    latency = volumes[numbers[COL_STEPS]] * prices[STEP_PS]
    energy = prices[COMPUTE_PJ]
    overflow = 0.0
    for m in range(len(memories)):
        read, write, held = traffic[m]
        read_ps, write_ps = read * memories[m, READ_PS], write * memories[m, WRITE_PS]
        busy = read_ps + write_ps if memories[m, SHARED_PORT] else max(read_ps, write_ps)
        latency = max(latency, busy)
        energy += read * memories[m, READ_PJ] + write * memories[m, WRITE_PJ]
        overflow = max(overflow, held / memories[m, CAPACITY_BITS])
    return overflow, latency, energy + prices[LEAKAGE_W] * latency


@njit(cache=True)  # type: ignore[untyped-decorator]
def _add_stage(volumes, stage, traffic):  # type: ignore[no-untyped-def]
    parent, child = stage[PARENT], stage[CHILD]
    at_parent, at_child = volumes[stage[COL_PARENT]], volumes[stage[COL_CHILD]]
    final, partial = stage[FINAL_BITS], stage[PARTIAL_BITS]
    width = final
    if stage[IS_OUTPUT]:
        outputs = stage[OUTPUTS]
        if volumes[stage[COL_REVISITS]] > 1:
            width = partial
        refill = (at_parent - outputs) * partial
        traffic[parent, 0] += refill
        traffic[child, 1] += refill
        traffic[parent, 1] += refill + outputs * final
        if stage[IS_INNERMOST]:
            traffic[child, 0] += at_child * width
        else:
            traffic[child, 0] += (at_child - outputs) * partial + outputs * final
    else:
        traffic[parent, 0] += at_parent * final
        traffic[child, 1] += at_child * final
    slots = 2 if stage[DOUBLE_BUFFERED] and volumes[stage[COL_VISITS]] > 1 else 1
    traffic[child, 2] += volumes[stage[COL_HELD]] * width * slots


@njit(cache=True)  # type: ignore[untyped-decorator]
def _add_datapath(volumes, datapath, numbers, traffic):  # type: ignore[no-untyped-def]
    moved = volumes[datapath[COL_MOVED]]
    memory = datapath[MEMORY]
    if datapath[D_IS_OUTPUT]:
        partial = volumes[numbers[COL_UNIT_REVISITS]] > 1
        width = datapath[D_PARTIAL_BITS] if partial else datapath[D_FINAL_BITS]
        traffic[memory, 0] += (moved - datapath[D_OUTPUTS]) * width
        traffic[memory, 1] += moved * width
    else:
        traffic[memory, 0] += moved * datapath[D_FINAL_BITS]


@njit(cache=True)  # type: ignore[untyped-decorator]
def better(objective, latency, energy, best):  # type: ignore[no-untyped-def]
    """Is (latency, energy) better than ``best``? The other one breaks ties."""
    if objective == LATENCY:
        return latency < best[0] or (latency == best[0] and energy < best[1])
    if objective == ENERGY:
        return energy < best[1] or (energy == best[1] and latency < best[0])
    edp, best_edp = latency * energy, best[0] * best[1]
    return edp < best_edp or (edp == best_edp and latency < best[0])


@njit(cache=True)  # type: ignore[untyped-decorator]
def axes_exceeded(volumes, axis_sizes, numbers):  # type: ignore[no-untyped-def]
    for axis in range(len(axis_sizes)):
        if volumes[numbers[FIRST_AXIS_COLUMN] + axis] > axis_sizes[axis]:
            return True
    return False


@njit(cache=True)  # type: ignore[untyped-decorator]
def search(
    table,
    first,
    smallest,
    remaining,
    stages,
    datapaths,
    memories,
    axis_sizes,
    numbers,
    prices,
    objective,
    best,
    chosen,
):  # type: ignore[no-untyped-def]
    """Depth-first over groups; improves ``best`` and ``chosen`` in place, returns calls.

    ``table[first[g]:first[g + 1]]`` are the rows of group ``g``; ``smallest[g]`` the product
    over groups from ``g`` on of their smallest factors, ``remaining[g]`` of their extents.
    """
    groups, columns = len(first) - 1, table.shape[1]
    partial = np.ones((groups + 1, columns), dtype=np.int64)
    bound = np.empty(columns, dtype=np.int64)
    traffic = np.empty((len(memories), 3))
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
        partial[depth + 1] = partial[depth] * table[row[depth]]
        bound[:] = partial[depth + 1] * smallest[depth + 1]
        _bound_steps(bound, partial[depth + 1], remaining[depth + 1], axis_sizes, numbers)
        cut = axes_exceeded(partial[depth + 1], axis_sizes, numbers)
        if not cut:
            calls += 1
            overflow, latency, energy = cost(
                bound, stages, datapaths, memories, numbers, prices, traffic
            )
            cut = overflow > 1.0 or not better(objective, latency, energy, best)
            if not cut and depth == groups - 1:
                best[0], best[1] = latency, energy
                chosen[:] = row
                cut = True
        if cut:
            row[depth] += 1
        else:
            depth += 1
            row[depth] = first[depth]
    return calls


@njit(cache=True)  # type: ignore[untyped-decorator]
def _bound_steps(bound, partial, remaining, axis_sizes, numbers):  # type: ignore[no-untyped-def]
    """Steps are at least what is left to do over all the parallelism that is left."""
    free = 1
    for axis in range(len(axis_sizes)):
        free *= axis_sizes[axis] // max(1, partial[numbers[FIRST_AXIS_COLUMN] + axis])
    if free > 0:
        steps = partial[numbers[COL_STEPS]] * -(-remaining // free)
        bound[numbers[COL_STEPS]] = max(bound[numbers[COL_STEPS]], steps)


@njit(cache=True)  # type: ignore[untyped-decorator]
def descend(
    table,
    first,
    start,
    stages,
    datapaths,
    memories,
    axis_sizes,
    numbers,
    prices,
    objective,
    best,
    chosen,
):  # type: ignore[no-untyped-def]
    """Coordinate descent from ``start``: one group at a time takes its best row.

    Fills ``best`` and ``chosen`` if it ends at a feasible mapping better than ``best``;
    returns calls. While nothing fits, rows that overflow less are better.
    """
    groups, columns = len(first) - 1, table.shape[1]
    at = start.copy()
    traffic = np.empty((len(memories), 3))
    here = np.array([np.inf, np.inf])
    least_overflow = np.inf
    calls = 0
    improved = True
    while improved:
        improved = False
        for g in range(groups):
            others = np.ones(columns, dtype=np.int64)
            for h in range(groups):
                if h != g:
                    others *= table[at[h]]
            for r in range(first[g], first[g + 1]):
                volumes = others * table[r]
                if axes_exceeded(volumes, axis_sizes, numbers):
                    continue
                calls += 1
                overflow, latency, energy = cost(
                    volumes, stages, datapaths, memories, numbers, prices, traffic
                )
                if overflow > 1.0:
                    if overflow < least_overflow and here[0] == np.inf:
                        least_overflow = overflow
                        at[g] = r
                        improved = True
                elif better(objective, latency, energy, here):
                    here[0], here[1] = latency, energy
                    at[g] = r
                    improved = True
    if here[0] < np.inf and better(objective, here[0], here[1], best):
        best[:] = here
        chosen[:] = at
    return calls


@njit(cache=True)  # type: ignore[untyped-decorator]
def undominated(rows):  # type: ignore[no-untyped-def]
    """Mask of the rows of which no other row is at most as large in every column.

    Of equal rows the first stays. Rows must be sorted by their sum.
    """
    count = len(rows)
    keep = np.ones(count, dtype=np.bool_)
    kept = np.empty(count, dtype=np.int64)
    found = 0
    for i in range(count):
        for k in range(found):
            if np.all(rows[kept[k]] <= rows[i]):
                keep[i] = False
                break
        if keep[i]:
            kept[found] = i
            found += 1
    return keep

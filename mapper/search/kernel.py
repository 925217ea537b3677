"""Branch and bound over tables of factors, compiled.

Volumes are products of one row per group. A box (a set of rows for each group) is bounded from
below by multiplying the smallest factor of each column over its rows: latency, energy and the
room needed grow with every volume. A box whose bound is infeasible or no better than the best
mapping found is dropped, any other is split in two; so what remains is optimal. Volumes are
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
# Columns of the memory table.
READ_PS, WRITE_PS, SHARED_PORT, READ_PJ, WRITE_PJ, CAPACITY_BITS = 0, 1, 2, 3, 4, 5

LATENCY, ENERGY, EDP = 0, 1, 2

#: Energies are rounded to this fraction of a picojoule.
ENERGY_GRID = 1024.0


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


@njit(cache=True, inline="always")
def better(objective, answer, best):  # type: ignore[no-untyped-def]
    """Is ``answer`` better than ``best``, both as filled in by ``cost``?

    Latency decides between equal energies (or products), energy between equal latencies, and
    then the number of tiles transferred: each costs a round trip, whether or not hidden.
    """
    if objective == LATENCY:
        first, second = answer[1] - best[1], answer[2] - best[2]
    elif objective == ENERGY:
        first, second = answer[2] - best[2], answer[1] - best[1]
    else:
        first, second = answer[1] * answer[2] - best[1] * best[2], answer[1] - best[1]
    if first != 0.0:
        return first < 0.0
    if second != 0.0:
        return second < 0.0
    return answer[3] < best[3]


@njit(cache=True)
def cost(volumes, model, traffic, answer):  # type: ignore[no-untyped-def]
    """Fills ``answer`` with ``(overflow, latency_ps, energy_pj, transfers)`` of some volumes.

    ``overflow`` is the largest needed/allowed ratio of a memory or axis; above 1 it does not
    fit. ``transfers`` counts tiles of shared memories. ``traffic`` is scratch space
    ``[memory, (read, write, held)]`` in bits. The energy is rounded, so that mappings that
    cost the same are equal whatever order their energies are added in.
    """
    memories = model.memories
    for m in range(memories.shape[0]):
        traffic[m, 0] = traffic[m, 1] = traffic[m, 2] = 0.0
    transfers = waiting = 0.0
    for s in range(model.stages.shape[0]):
        _add_stage(volumes, model.stages, s, traffic)
        if model.stages[s, IS_SHARED]:
            transfers += volumes[model.stages[s, COL_VISITS]]
            waiting = max(waiting, _round_trips(volumes, model.stages, s))
    for d in range(model.datapaths.shape[0]):
        _add_datapath(volumes, model, d, traffic)
    steps = max(volumes[model.steps_column], volumes[model.lifted_steps_column] / model.lanes)
    latency = max(steps * model.step_ps, waiting)
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
    answer[2] = np.rint((energy + model.leakage_w * latency) * ENERGY_GRID) / ENERGY_GRID
    answer[3] = transfers


@njit(cache=True, inline="always")
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


@njit(cache=True, inline="always")
def _round_trips(volumes, stages, s):  # type: ignore[no-untyped-def]
    """Loads of a stage wait for a free slot and then for the memory's latency."""
    visits = volumes[stages[s, COL_VISITS]]
    loads = visits
    if stages[s, IS_OUTPUT]:
        loads = volumes[stages[s, COL_FRESH]] * (volumes[stages[s, COL_OWN_REVISITS]] - 1.0)
    waiting = loads * stages[s, LATENCY_PS]
    return waiting / 2.0 if stages[s, DOUBLE_BUFFERED] and visits > 1.0 else waiting


@njit(cache=True, inline="always")
def _add_datapath(volumes, model, d, traffic):  # type: ignore[no-untyped-def]
    paths = model.datapaths
    moved = max(volumes[paths[d, COL_MOVED]], volumes[paths[d, COL_LIFTED]] / model.lanes)
    memory = paths[d, MEMORY]
    if paths[d, D_IS_OUTPUT]:
        width = paths[d, D_FINAL_BITS]
        if volumes[model.unit_revisits_column] > 1.0:
            width = paths[d, D_PARTIAL_BITS]
        traffic[memory, 0] += (moved - paths[d, D_OUTPUTS]) * width
        traffic[memory, 1] += moved * width
    else:
        traffic[memory, 0] += moved * paths[d, D_FINAL_BITS]


@njit(cache=True)
def _product_without(table, at, left_out, product):  # type: ignore[no-untyped-def]
    """Column products of one row per group, except for the group ``left_out``."""
    product[:] = 1.0
    for h in range(len(at)):
        if h != left_out:
            for c in range(table.shape[1]):
                product[c] *= table[at[h], c]


@njit(cache=True)
def descend(table, first, start, model, best, chosen):  # type: ignore[no-untyped-def]
    """Coordinate descent from ``start``: one group at a time takes its best row.

    ``table[first[g]:first[g + 1]]`` are the rows of group ``g``. Fills ``best`` and ``chosen``
    if it ends at a feasible mapping better than ``best``; returns evaluations. While nothing
    fits, rows that overflow less are better.
    """
    groups, columns = len(first) - 1, table.shape[1]
    at = start.copy()
    traffic = np.empty((model.memories.shape[0], 3))
    answer = np.empty(4)
    volumes, others = np.empty(columns), np.empty(columns)
    here = np.full(4, np.inf)
    least_overflow = np.inf
    calls = 0
    improved = True
    while improved:
        improved = False
        for g in range(groups):
            _product_without(table, at, g, others)
            for r in range(first[g], first[g + 1]):
                for c in range(columns):
                    volumes[c] = others[c] * table[r, c]
                calls += 1
                cost(volumes, model, traffic, answer)
                if answer[0] > 1.0:
                    if answer[0] < least_overflow and here[1] == np.inf:
                        least_overflow = answer[0]
                        at[g] = r
                        improved = True
                elif better(model.objective, answer, here):
                    here[:] = answer
                    at[g] = r
                    improved = True
    if here[1] < np.inf and better(model.objective, here, best):
        best[:] = here
        chosen[:] = at
    return calls


@njit(cache=True)
def promising(rows, others, model, best):  # type: ignore[no-untyped-def]
    """Mask of the rows whose lower bound with ``others`` is feasible and better than ``best``."""
    traffic = np.empty((model.memories.shape[0], 3))
    answer = np.empty(4)
    volumes = np.empty(rows.shape[1])
    mask = np.zeros(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        for c in range(rows.shape[1]):
            volumes[c] = others[c] * rows[r, c]
        cost(volumes, model, traffic, answer)
        mask[r] = answer[0] <= 1.0 and better(model.objective, answer, best)
    return mask


class Frontier(NamedTuple):
    """Boxes still to be looked at, with their bounds, and room to compute in."""

    boxes: IntArray
    bounds: FloatArray
    volumes: FloatArray
    others: FloatArray
    traffic: FloatArray
    answer: FloatArray


@njit(cache=True)
def search(forest, root, model, best, chosen):  # type: ignore[no-untyped-def]
    """Branch and bound over boxes of mappings; improves ``best`` and ``chosen`` in place.

    ``forest`` holds the trees of all groups behind one another, ``root[g]`` is the root of
    group ``g``. A box is one node per group. Returns the number of evaluations.
    """
    frontier = _frontier(len(root), forest.smallest.shape[1], len(model.memories))
    frontier.boxes[0] = root
    _product_without(forest.smallest, root, -1, frontier.volumes)
    cost(frontier.volumes, model, frontier.traffic, frontier.bounds[0])
    top, calls = (1 if frontier.bounds[0, 0] <= 1.0 else 0), 1
    while top > 0:
        top -= 1
        if not better(model.objective, frontier.bounds[top], best):
            continue
        box = frontier.boxes[top].copy()
        widest = _widest(forest, box)
        if widest < 0:
            best[:] = frontier.bounds[top]
            for h in range(len(box)):
                chosen[h] = forest.row[box[h]]
            continue
        if top + 2 > len(frontier.boxes):
            frontier = _doubled(frontier)
        top += _split(forest, (box, widest), model, best, frontier, top)
        calls += 2
    return calls


@njit(cache=True)
def _frontier(groups, columns, memories):  # type: ignore[no-untyped-def]
    room = 64 * groups + 64
    return Frontier(
        np.empty((room, groups), dtype=np.int64),
        np.empty((room, 4)),
        np.empty(columns),
        np.empty(columns),
        np.empty((memories, 3)),
        np.empty(4),
    )


@njit(cache=True)
def _doubled(frontier):  # type: ignore[no-untyped-def]
    """The same boxes with twice the room."""
    boxes, bounds = frontier.boxes, frontier.bounds
    return Frontier(
        np.concatenate((boxes, np.empty_like(boxes))),
        np.concatenate((bounds, np.empty_like(bounds))),
        frontier.volumes,
        frontier.others,
        frontier.traffic,
        frontier.answer,
    )


@njit(cache=True)
def _widest(forest, box):  # type: ignore[no-untyped-def]
    """The group whose rows differ most; -1 if the box is a single mapping."""
    widest, group = 0.0, -1
    for h in range(len(box)):
        if forest.spread[box[h]] > widest:
            widest, group = forest.spread[box[h]], h
    return group


@njit(cache=True)
def _split(forest, split, model, best, frontier, top):  # type: ignore[no-untyped-def]
    """Push the promising halves of a box, split in one group; returns how many they are."""
    box, group = split
    boxes, bounds, volumes, others, traffic, answer = frontier
    node, pushed = box[group], 0
    _product_without(forest.smallest, box, group, others)
    for child in (forest.left[node], forest.right[node]):
        box[group] = child
        for c in range(len(volumes)):
            volumes[c] = others[c] * forest.smallest[child, c]
        cost(volumes, model, traffic, answer)
        if answer[0] <= 1.0 and better(model.objective, answer, best):
            boxes[top + pushed] = box
            bounds[top + pushed] = answer
            pushed += 1
    if pushed == 2 and better(model.objective, bounds[top], bounds[top + 1]):
        _swap(boxes, bounds, top + 2)
    return pushed


@njit(cache=True)
def _swap(stack, bounds, top):  # type: ignore[no-untyped-def]
    """The more promising of the two boxes on top is explored first."""
    for column in range(stack.shape[1]):
        kept = stack[top - 1, column]
        stack[top - 1, column] = stack[top - 2, column]
        stack[top - 2, column] = kept
    for column in range(bounds.shape[1]):
        bound = bounds[top - 1, column]
        bounds[top - 1, column] = bounds[top - 2, column]
        bounds[top - 2, column] = bound

"""Where the room, the time and the energy of a mapping go: the parts that its cost is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapper.search import pricing
from mapper.search.costs import ANSWERS, TOTAL_PJ, TOTAL_PS, cost
from mapper.search.flows import Flows
from mapper.search.pricing import FloatArray, IntArray, Model
from mapper.search.space import StageOrder


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """``memories[memory]``: how full it is, its part of the energy, its time over the latency;
    ``steps`` is the time of the compute unit's steps over the latency."""

    memories: FloatArray
    steps: float


def shares(volumes: FloatArray, model: Model, flows: Flows) -> Shares:
    """Of a mapping that fits, with these volumes."""
    answer, busy = np.empty(ANSWERS), np.empty(len(flows.ports))
    cost(volumes, flows, busy, answer)
    ticks = volumes[flows.steps_columns[0]] * flows.step_ticks + flows.aside_ticks
    latency = answer[TOTAL_PS]
    time = (busy / flows.ports[:, 1]).reshape(-1, 2).max(axis=1) / latency
    parts = [_held(volumes, flows), _energy(volumes, model) / answer[TOTAL_PJ], time]
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


def _energy(volumes: FloatArray, model: Model) -> FloatArray:
    """Of the traffic of each memory."""
    read, written = _moved_bits(volumes, model)
    energy: FloatArray = (
        read * model.memories[:, pricing.READ_PJ] + written * model.memories[:, pricing.WRITE_PJ]
    )
    return energy


def _moved_bits(volumes: FloatArray, model: Model) -> tuple[FloatArray, FloatArray]:
    """Bits read from and written to each memory."""
    read, written = np.zeros(len(model.memories)), np.zeros(len(model.memories))
    for stage in model.stages:
        _add_stage(volumes, stage, read, written)
    partial = volumes[model.unit_revisits_column] > 1.0
    for path in model.datapaths:
        moved, memory = volumes[path[pricing.COL_MOVED]], path[pricing.MEMORY]
        is_output = bool(path[pricing.D_IS_OUTPUT])
        wide = is_output and partial
        bits = path[pricing.D_PARTIAL_BITS if wide else pricing.D_FINAL_BITS]
        read[memory] += (moved - is_output * path[pricing.D_OUTPUTS]) * bits
        written[memory] += is_output * moved * bits
    return read, written


def demands(volumes: FloatArray, order: StageOrder, model: Model, flows: Flows) -> FloatArray:
    """What a mapping asks of the hardware, whatever it costs there.

    Bits read from and written to each memory, steps, folds, and how often each shared memory is
    waited for, by operand. Prices are linear: of two mappings, one that asks for no more of
    anything costs no more.
    """
    read, written = _moved_bits(volumes, model)
    waits = np.zeros((len(model.memories), len(model.datapaths)))
    for position, stage in zip(order.listed, model.stages, strict=True):
        if stage[pricing.IS_HELD]:
            waits[stage[pricing.CHILD], order.stages[position][0]] = _round_trips(volumes, stage)
    steps = volumes[flows.steps_columns[[0, 2]].astype(np.int64)]
    return np.concatenate([read, written, steps, waits.ravel()])


def _round_trips(volumes: FloatArray, stage: IntArray) -> float:
    """Loads, of which those into different slots wait together."""
    visits = float(volumes[stage[pricing.COL_VISITS]])
    loads = float(volumes[stage[pricing.COL_FRESH]]) if stage[pricing.IS_OUTPUT] else visits
    if stage[pricing.IS_OUTPUT]:
        loads *= float(volumes[stage[pricing.COL_OWN_REVISITS]]) - 1.0
    return loads / (2.0 if stage[pricing.DOUBLE_BUFFERED] and visits > 1.0 else 1.0)


def _add_stage(volumes: FloatArray, stage: IntArray, read: FloatArray, written: FloatArray) -> None:
    parent, child, final = stage[pricing.PARENT], stage[pricing.CHILD], stage[pricing.FINAL_BITS]
    at_parent, at_child = volumes[stage[pricing.COL_PARENT]], volumes[stage[pricing.COL_CHILD]]
    if not stage[pricing.IS_OUTPUT]:
        read[parent] += at_parent * final
        written[child] += at_child * final
        return
    partial, outputs = stage[pricing.PARTIAL_BITS], stage[pricing.OUTPUTS]
    refill = (at_parent - outputs) * partial
    read[parent] += refill
    written[child] += refill
    written[parent] += refill + outputs * stage[pricing.PARENT_FINAL_BITS]
    if not stage[pricing.IS_INNERMOST]:
        read[child] += (at_child - outputs) * partial + outputs * final
    else:
        read[child] += at_child * (partial if volumes[stage[pricing.COL_REVISITS]] > 1.0 else final)

"""Factors on predicted times, by trees that were fitted to what the kernel model leaves over.

Which of a library's kernels runs is decided by heuristics that no formula reproduces; what they
do to a call's time is learned from measurements, as a function of sizes, alignments and waves
(``features``). No corrected time beats the peaks of HBM and tensor cores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np

from sim.gpu.chip import Chip
from sim.gpu.demand import Array, Call, Demand
from sim.gpu.features import features, group_of
from sim.gpu.trees import Trees, loaded_trees, trees_of

Corrections = Mapping[str, Trees]

#: Beyond this a correction would not be a correction.
MOST_LOG = 3.0

#: TF32 on the tensor cores, which convolutions in fp32 run on: half the rate of 16 bits.
TF32_SHARE = 0.5


@cache
def fitted_corrections() -> Corrections:
    """Those of an H200, by group of kinds, or of convolutions."""
    folder = files("sim") / "gpu" / "data"
    documents = json.loads((folder / "h200_corrections.json").read_text())
    with (folder / "h200_convolutions.npz").open("rb") as file:
        convolutions = loaded_trees(file)
    return {group: trees_of(each) for group, each in documents.items()} | convolutions


def least_us(demand: Demand, calls: Sequence[Call], chip: Chip) -> Array:
    """What the peaks of HBM and arithmetic units alone would take."""
    rates = [peak_rate(call, chip) for call in calls]
    arithmetic = demand.macs / (np.array(rates) * chip.sms * chip.clock_mhz)
    return np.maximum(arithmetic, demand.hbm_bytes / chip.hbm_bytes_per_us)


def peak_rate(call: Call, chip: Chip) -> float:
    """Multiply-adds of an SM in a cycle."""
    if call.kind == "conv2d" and call.dtype == "fp32":
        return chip.mma["bf16"] * TF32_SHARE
    return chip.rate(call.dtype)


def factors(
    demand: Demand, calls: Sequence[Call], corrections: Corrections, chip: Chip
) -> Array | None:
    """How much longer the calls take than ``demand`` says; they are of one class of
    kernels, which are all of the same group."""
    group = group_of(calls[0])
    if group is None or group not in corrections:
        return None
    time_us = demand.time_us()
    logs = corrections[group].total(features(calls, time_us))
    wanted = time_us * np.exp(np.clip(logs, -MOST_LOG, MOST_LOG))
    least = np.minimum(least_us(demand, calls, chip), time_us)
    return np.asarray(np.maximum(wanted, least) / time_us)


def corrected(demand: Demand, factor: Array) -> Demand:
    """The same work in ``factor`` times the time."""
    return replace(
        demand,
        core_us=demand.core_us * factor,
        memory_us=demand.memory_us * factor,
        fixed_us=demand.fixed_us * factor,
    )

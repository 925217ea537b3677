"""Kernels between the products of a network: normalization, pooling, joining, element by element.

What they read was mostly written by the kernel before, so that it may be in the L2 still. A kernel
is a launch, the longest chain of dependent steps of one thread, and the longer of bytes from the
HBM and what the SMs do: bytes from the L2, and for windows a time for each row of each result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from sim.gpu.chip import Chip, chip_scale
from sim.gpu.demand import Array, Call, Constants, Demand, sizes

#: Kinds; each is a class of kernels of its own. A ``batch_norm`` converts its statistics before.
KINDS = (
    "batch_norm",
    "max_pool",
    "avg_pool",
    "mean",
    "clamp",
    "activation",
    "sum",
    "scale",
    "bias",
    "join",
)
ELEMENT_BYTES = 2
#: Windows that one thread of a maximum goes through, and rows of an image that one of a mean does.
MOST_WINDOWS = 16
MOST_ROWS = 64


def between_key(call: Call) -> str:
    return f"between.{call.kind}"


def chain(call: Call) -> float:
    """Dependent steps of one thread: rows of its windows, or rows of the image that it adds up."""
    p = call.params
    chains: Mapping[str, float] = {
        "max_pool": p.get("R", 0) * min(p.get("side", 0), MOST_WINDOWS),
        "mean": min(p.get("side", 0), MOST_ROWS),
    }
    return chains.get(call.kind, 0.0)


def between(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    """``n`` results, ``moved`` bytes in all, windows of ``R`` rows, an image's ``side``."""
    n, moved, rows = sizes(calls, "n", "moved", "R")
    rows = np.where([call.kind.endswith("_pool") for call in calls], rows, 0.0)
    zeros = np.zeros_like(n)
    missed = 1 - np.minimum(1.0, chip.l2_bytes * constants["kept"] / np.maximum(moved, 1))
    each_ns = np.where(rows > 0, constants["result_ns"] + constants["row_ns"] * rows, 0.0)
    core = moved / (constants["l2"] * chip.l2_bytes_per_us)
    core = core + n * each_ns * 1e-3 * chip_scale(chip)
    steps: Array = np.array([chain(call) for call in calls])
    return Demand(
        core_us=core,
        memory_us=moved * missed / (constants["hbm"] * chip.hbm_bytes_per_us),
        fixed_us=constants["launch_us"] + steps * constants["step_ns"] * 1e-3,
        overlap=zeros + 2,
        macs=zeros,
        scalar=n * np.maximum(rows, 1) ** 2,
        hbm_bytes=moved * missed,
        l2_bytes=moved,
        written_bytes=n * ELEMENT_BYTES * missed,
        rounds=zeros + 1,
        last_share=zeros + 1,
    )


@cache
def between_constants() -> dict[str, Constants]:
    """As ``benchmarks/calibrate_between.py`` wrote them; energies are those of all kernels."""
    text = (files("sim") / "gpu" / "data" / "h200_between.json").read_text()
    same = dict.fromkeys(
        ("active_scale", "hbm_scale", "l2_scale", "mac_scale", "running_scale", "scalar_scale"), 1.0
    )
    return {key: {**same, **found} for key, found in json.loads(text).items()}

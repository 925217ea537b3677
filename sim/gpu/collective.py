"""NCCL between two GPUs: latency, a protocol change that costs more, and the links' bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.gpu.chip import Chip
from sim.gpu.demand import Array, Call, Constants, Demand, sizes

#: Times that a GPU reads or writes the stated bytes in its memory.
HBM_PASSES = 2

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")


#: A sum between other kernels of a block: its data are in the L2, and it does not wait for another
#: collective that is still at work.
INSIDE = "collective.all_reduce.inside"


def collective_key(call: Call) -> str:
    return INSIDE if call.params.get("inside") else f"collective.{call.kind}"


def link_bytes(calls: Sequence[Call], moved: Array, gpus: Array) -> Array:
    """Bytes that a GPU sends (or receives) over its links, with the least-traffic algorithm."""
    shares = {"all_reduce": 2 * (gpus - 1) / gpus, "p2p": np.ones_like(gpus)}
    return np.asarray(moved * shares.get(calls[0].kind, (gpus - 1) / gpus))


def collective(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    moved, gpus = sizes(calls, "bytes", "gpus")
    zeros = np.zeros_like(moved)
    sent = link_bytes(calls, moved, gpus)
    ramp = constants["ramp_us"] * moved / (moved + constants["ramp_bytes"])
    return Demand(
        core_us=zeros,
        memory_us=sent / (chip.link_bytes_per_us * constants["link"]),
        fixed_us=constants["launch_us"] * (gpus / 2) + ramp,
        overlap=zeros + 4,
        macs=zeros,
        scalar=zeros,
        hbm_bytes=moved * HBM_PASSES,
        l2_bytes=zeros,
        written_bytes=moved,
        rounds=zeros + 1,
        last_share=zeros + 1,
    )

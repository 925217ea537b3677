"""What calls ask of a GPU, and how the parts of one overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Fitted constants of one class of kernels, by name.
Constants = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One library call: its kind, sizes and data type, as in the columns of a measurement."""

    kind: str
    params: Mapping[str, Any]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Arrays, one element per kernel.

    ``core_us`` is the time of what runs at the SM clock (tensor cores, CUDA cores, shared memory,
    L2) at the highest clock; ``memory_us`` that of the HBM, ``fixed_us`` launches and latencies.
    The rest is work, for the energy: multiply-adds, other operations, bytes of HBM (of which
    ``written_bytes`` are results) and of L2. Thread blocks run in ``rounds``, one after the other;
    in the last one ``last_share`` of the SMs have any.
    """

    core_us: Array
    memory_us: Array
    fixed_us: Array
    overlap: Array
    macs: Array
    scalar: Array
    hbm_bytes: Array
    l2_bytes: Array
    written_bytes: Array
    rounds: Array
    last_share: Array

    def time_us(self, slowdown: Array | float = 1.0) -> Array:
        """Time of each kernel with a clock ``slowdown`` times lower.

        Pipes overlap, but not perfectly: the sum of powers is near the longest where one
        dominates, and above it where two are equally long.
        """
        core, memory = self.core_us * slowdown, self.memory_us
        longest = np.maximum(np.maximum(core, memory), 1e-9)
        shares = (core / longest) ** self.overlap + (memory / longest) ** self.overlap
        return np.asarray(self.fixed_us + longest * shares ** (1 / self.overlap))

    def at(self, index: Array) -> Demand:
        """Of each row of two-dimensional arrays the element that ``index`` names."""
        rows = np.arange(len(index))

        def chosen(values: Array) -> Array:
            """Arrays may have one row or one column for all."""
            first = rows if values.shape[0] > 1 else np.zeros_like(rows)
            return np.asarray(values[first, index if values.shape[1] > 1 else 0])

        return Demand(**{name: chosen(getattr(self, name)) for name in NAMES})

    def reordered(self, index: NDArray[np.intp]) -> Demand:
        """Of one-dimensional arrays the elements in another order."""
        return Demand(**{name: getattr(self, name)[index] for name in NAMES})


NAMES = tuple(field.name for field in fields(Demand))


def joined(demands: Sequence[Demand]) -> Demand:
    """All kernels one after the other."""
    if len(demands) == 1:
        return demands[0]
    return Demand(**{name: np.concatenate([getattr(d, name) for d in demands]) for name in NAMES})


def fastest(demands: Sequence[Demand]) -> Demand:
    """Of several ways to run the same calls the fastest for each."""
    stacked = Demand(
        **{name: np.stack([getattr(d, name) for d in demands], axis=1) for name in NAMES}
    )
    return stacked.at(np.argmin(stacked.time_us(), axis=1))


def sizes(calls: Sequence[Call], *names: str) -> tuple[Array, ...]:
    """One array per parameter; an absent one (the batch of a plain product) is 1."""
    return tuple(np.array([float(c.params.get(name, 1)) for c in calls]) for name in names)


#: How sharply calls stop finding their data in the L2 as they grow.
SHARPNESS = 6


def missing_share(moved_bytes: Array, constants: Constants) -> Array:
    """How much of a call's data comes from the HBM.

    Calls so small that all buffers that are rotated over fit into the L2 find their data there.
    """
    relative = constants["resident_bytes"] / np.maximum(moved_bytes, 1)
    return np.asarray(1 / (1 + np.minimum(relative, 1e3) ** SHARPNESS))


def warm_up_us(moved_bytes: Array, constants: Constants) -> Array:
    """Launch, and the latency of the first data from the HBM."""
    return np.asarray(
        constants["launch_us"] + constants["miss_us"] * missing_share(moved_bytes, constants)
    )

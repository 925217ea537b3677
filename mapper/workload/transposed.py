"""Transposed convolutions, as the ordinary convolutions that they are made of.

With stride ``s`` every ``s``-th output along an axis meets the same kernel elements, so the
output falls into ``s`` interleaved phases per axis, each of them a convolution of the input
with every ``s``-th element of the kernel. No zeros are inserted or multiplied. The kernel is
read as stored mirrored, which turns the sums into plain sliding windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arch.errors import InputError, Problem
from mapper.workload.nests import SPATIAL_DIMS, Nest, at, grouped
from mapper.workload.operators import AffineIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase along one axis: outputs ``first + stride * p``, ``taps`` kernel elements.

    Output ``p`` meets tap ``t`` at input ``p + t + shift``; the taps are elements
    ``last - stride * t`` of the kernel.
    """

    first: int
    outputs: int
    taps: int
    shift: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedShape:
    """Channel counts are of all groups; ``kernel`` and ``stride`` are per spatial axis."""

    batch: int
    in_channels: int
    out_channels: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    groups: int = 1


def phases(kernel: int, stride: int, padding: int, outputs: int) -> list[Phase]:
    """The phases of one axis. Output ``o`` meets element ``r`` at input ``(o + pad - r) / s``."""
    found = []
    for first in range(min(stride, outputs)):
        lowest = (first + padding) % stride
        taps = len(range(lowest, kernel, stride))
        if taps == 0:
            message = f"a kernel of {kernel} with stride {stride} leaves outputs untouched"
            raise InputError(Problem(message, where="workload: transposed convolution"))
        last = lowest + (taps - 1) * stride
        found.append(
            Phase(
                first=first,
                outputs=len(range(first, outputs, stride)),
                taps=taps,
                shift=(first + padding - last) // stride,
                last=last,
            )
        )
    return found


def phase_nest(shape: TransposedShape, phase: Sequence[Phase]) -> Nest:
    """A convolution over the phase, its outputs counted within the phase.

    The weight is stored ``[C, K / groups, R, S]``, as torch does.
    """
    groups = shape.groups
    channels, filters = shape.in_channels // groups, shape.out_channels // groups
    outputs, taps = SPATIAL_DIMS[len(phase)]
    extents = {"N": shape.batch, "G": groups, "K": filters, "C": channels}
    if groups == 1:
        del extents["G"]
    extents |= {dim: axis.outputs for dim, axis in zip(outputs, phase, strict=True)}
    extents |= {dim: axis.taps for dim, axis in zip(taps, phase, strict=True)}
    windows = (
        AffineIndex(((o, 1), (t, 1)), axis.shift)
        for o, t, axis in zip(outputs, taps, phase, strict=True)
    )
    # Mirrored, element ``last - s * t`` lies at ``size - 1 - last + s * t``.
    elements = (
        AffineIndex(((t, step),), size - 1 - axis.last)
        for t, step, size, axis in zip(taps, shape.stride, shape.kernel, phase, strict=True)
    )
    in_channel, out_channel = grouped("C", channels, groups), grouped("K", filters, groups)
    return Nest(
        extents=extents,
        inputs=((*at("N"), in_channel, *windows), (in_channel, *at("K"), *elements)),
        output=(*at("N"), out_channel, *at(*outputs)),
    )

"""Transposed convolutions, as the ordinary convolutions that they are made of.

With stride ``s`` every ``s``-th output along an axis meets the same kernel elements, so the
output falls into ``s`` interleaved phases per axis, each of them a convolution of the input
with every ``s``-th element of the kernel. No zeros are inserted or multiplied. The kernel is
read as stored mirrored, which turns the sums into plain sliding windows.

With dilation ``d`` the elements that meet are every ``s / gcd(s, d)``-th, and the inputs that
they meet lie ``d / gcd(s, d)`` apart. Outputs that meet no element (a kernel shorter than the
stride, a common factor of stride and dilation) have no sum; they are phases without taps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from arch.errors import InputError, Problem
from mapper.workload.nests import SPATIAL_DIMS, Nest, at, grouped
from mapper.workload.operators import AffineIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase along one axis: outputs ``first + stride * p``, ``taps`` kernel elements.

    Output ``p`` meets tap ``t`` at input ``p + reach * t + shift``; the taps are elements
    ``last - step * t`` of the kernel.
    """

    first: int
    outputs: int
    taps: int
    shift: int
    last: int
    step: int
    reach: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedShape:
    """Channel counts are of all groups; ``kernel`` is per spatial axis."""

    batch: int
    in_channels: int
    out_channels: int
    kernel: tuple[int, ...]
    groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposedAxis:
    """One spatial axis: how long the kernel is, how inputs and elements lie, what is cut off."""

    kernel: int
    stride: int
    padding: int = 0
    dilation: int = 1


def phases(axis: TransposedAxis, outputs: int) -> list[Phase]:
    """The phases of one axis. Output ``o`` meets element ``r`` at input ``(o + pad - d r) / s``."""
    return [_phase(axis, first, outputs) for first in range(min(axis.stride, outputs))]


def _phase(axis: TransposedAxis, first: int, outputs: int) -> Phase:
    common = math.gcd(axis.stride, axis.dilation)
    step, reach = axis.stride // common, axis.dilation // common
    place = first + axis.padding
    taps: range = range(0)
    if place % common == 0:
        lowest = place // common * pow(reach, -1, step) % step
        taps = range(lowest, axis.kernel, step)
    last = taps[-1] if taps else 0
    return Phase(
        first=first,
        outputs=len(range(first, outputs, axis.stride)),
        taps=len(taps),
        shift=(place - axis.dilation * last) // axis.stride,
        last=last,
        step=step,
        reach=reach,
    )


def refuse_untouched(axes: Sequence[Sequence[Phase]], where: str) -> None:
    """``InputError`` if some outputs meet no element of the kernel."""
    if any(phase.taps == 0 for axis in axes for phase in axis):
        message = "a kernel shorter than the stride leaves outputs untouched"
        raise InputError(Problem(message, where=where))


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
        AffineIndex(((o, 1), (t, axis.reach)), axis.shift)
        for o, t, axis in zip(outputs, taps, phase, strict=True)
    )
    # Mirrored, element ``last - step * t`` lies at ``size - 1 - last + step * t``.
    elements = (
        AffineIndex(((t, axis.step),), size - 1 - axis.last)
        for t, size, axis in zip(taps, shape.kernel, phase, strict=True)
    )
    in_channel, out_channel = grouped("C", channels, groups), grouped("K", filters, groups)
    return Nest(
        extents=extents,
        inputs=((*at("N"), in_channel, *windows), (in_channel, *at("K"), *elements)),
        output=(*at("N"), out_channel, *at(*outputs)),
    )

"""Index patterns of the contractions: extents and affine maps, before any tensor is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mapper.workload.operators import AffineIndex

Index = tuple[AffineIndex, ...]

#: Names of the output and kernel loops of a convolution over 1, 2 or 3 spatial axes.
SPATIAL_DIMS = {
    1: (("P",), ("R",)),
    2: (("P", "Q"), ("R", "S")),
    3: (("O", "P", "Q"), ("T", "R", "S")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """Loops and how each operand is indexed by them, inputs in order."""

    extents: Mapping[str, int]
    inputs: tuple[Index, ...]
    output: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A sliding window, one number per spatial axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def output_size(self, axis: int, size: int) -> int:
        """Positions of the window along an axis of ``size`` (floor, as torch rounds)."""
        reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        return (size + 2 * self.padding[axis] - reach) // self.stride[axis] + 1

    def index(self, axis: int) -> AffineIndex:
        """Where output position and kernel position meet the input."""
        outputs, kernels = SPATIAL_DIMS[len(self.kernel)]
        terms = ((outputs[axis], self.stride[axis]), (kernels[axis], self.dilation[axis]))
        return AffineIndex(terms, -self.padding[axis])


def per_axis(value: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """One number per spatial axis; a single one stands for all."""
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * rank if len(values) == 1 else values


def at(*dims: str) -> Index:
    """One plain loop per axis."""
    return tuple(AffineIndex(((dim, 1),)) for dim in dims)


def gemm(m: int, n: int, k: int) -> Nest:
    """``out[M, N] += in[M, K] * weight[K, N]``."""
    return Nest(
        extents={"M": m, "N": n, "K": k}, inputs=(at("M", "K"), at("K", "N")), output=at("M", "N")
    )


def gemv(m: int, k: int) -> Nest:
    """``out[M] += in[K] * weight[M, K]``."""
    return Nest(extents={"M": m, "K": k}, inputs=(at("K"), at("M", "K")), output=at("M"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionShape:
    """Sizes of a convolution, spatial ones per axis; channel counts are of all groups."""

    batch: int
    in_channels: int
    out_channels: int
    output_size: tuple[int, ...]
    window: Window
    groups: int = 1


def convolution(shape: ConvolutionShape) -> Nest:
    """``out[N, K, P, Q] += in[N, C, P*stride + R*dilation - pad, ...] * weight[K, C, R, S]``.

    With groups, loop ``G`` runs over them and ``K`` and ``C`` are those of one group: the input
    channel is ``G * C + c``, the output channel and the weight's first axis ``G * K + k``.
    """
    rank = len(shape.output_size)
    outputs, kernels = SPATIAL_DIMS[rank]
    channels = shape.in_channels // shape.groups
    filters = shape.out_channels // shape.groups
    extents = {"N": shape.batch, "G": shape.groups, "K": filters, "C": channels}
    if shape.groups == 1:
        del extents["G"]
    extents |= dict(zip(outputs, shape.output_size, strict=True))
    extents |= dict(zip(kernels, shape.window.kernel, strict=True))
    in_channel = grouped("C", channels, shape.groups)
    out_channel = grouped("K", filters, shape.groups)
    windows = tuple(shape.window.index(axis) for axis in range(rank))
    return Nest(
        extents=extents,
        inputs=((*at("N"), in_channel, *windows), (out_channel, *at("C", *kernels))),
        output=(*at("N"), out_channel, *at(*outputs)),
    )


def grouped(dim: str, size: int, groups: int) -> AffineIndex:
    """Position of element ``dim`` of group ``G`` among all groups' elements."""
    return AffineIndex((("G", size), (dim, 1)) if groups > 1 else ((dim, 1),))

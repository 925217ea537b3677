"""The library call that a convolution of a workload graph is: sizes of a ``conv2d`` kernel.

The kernel model knows square images and kernels, padded by ``R // 2``. Other images are counted
as squares with as many pixels; other paddings and dilations as what gives the same result's size.
Where the kernel is no square (or has one or three axes) and channels are mixed, the call is the
matrix product that the library computes implicitly. A note says what was replaced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mapper.workload.operators import Operator
from sim.gpu.chip import BYTES
from sim.gpu.demand import Call

CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
TRANSPOSED = "conv_transpose"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A sliding axis: positions of the result, taps, and how far apart either are."""

    positions: int
    taps: int
    stride: int
    dilation: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A convolution by what its loops run over; ``depth`` and ``width`` are of one group."""

    images: int
    groups: int
    depth: int
    width: int
    windows: tuple[Window, ...]

    @property
    def taps(self) -> int:
        return math.prod(window.taps for window in self.windows)

    @property
    def pixels(self) -> int:
        return math.prod(window.positions for window in self.windows)

    @property
    def is_square(self) -> bool:
        """Whether a kernel of one size and stride along two axes; one of a single tap always is."""
        alike = {(w.taps, w.stride) for w in self.windows}
        return len(alike) == 1 and (len(self.windows) == 2 or self.taps == 1)

    @property
    def is_depthwise(self) -> bool:
        return self.groups > 1 and self.depth == 1


def is_convolution(operator: Operator) -> bool:
    return operator.operation == "mac" and operator.kind.startswith((*CONVOLUTIONS, TRANSPOSED))


def shape_of(operator: Operator) -> Shape:
    """Loops by their classes; those of a sliding axis share an expression of the input."""
    windows, slid = [], set[str]()
    for axis in operator.inputs[0].index:
        ahead = _of_class(operator, axis.terms, "m")
        taps = _of_class(operator, axis.terms, "k")
        if len(ahead) != len(taps):
            continue
        for (dim, stride), (tap, dilation) in zip(ahead, taps, strict=True):
            slid |= {dim, tap}
            unit = min(stride, dilation)
            windows.append(
                Window(
                    positions=operator.extents[dim],
                    taps=operator.extents[tap],
                    stride=max(1, stride // unit) if len(ahead) > 1 else stride,
                    dilation=max(1, dilation // unit) if len(ahead) > 1 else dilation,
                    offset=axis.offset,
                )
            )
    size = dict.fromkeys("bmnk", 1)
    for dim, extent in operator.extents.items():
        if dim not in slid:
            size[operator.dim_class(dim)] *= extent
    return Shape(
        images=size["m"],
        groups=size["b"],
        depth=size["k"],
        width=size["n"],
        windows=tuple(windows),
    )


def _of_class(
    operator: Operator, terms: tuple[tuple[str, int], ...], wanted: str
) -> list[tuple[str, int]]:
    """Of a flattened axis the outer terms first."""
    found = [(dim, abs(step)) for dim, step in terms if operator.dim_class(dim) == wanted]
    return sorted(found, key=lambda term: -term[1])


def convolution_call(shape: Shape, dtype: str) -> tuple[Call, str]:
    """The call, and what about it is not as in the graph (nothing, mostly)."""
    notes = []
    if not shape.windows or (not shape.is_square and not shape.is_depthwise):
        return _product(shape, dtype), f"{_kernel(shape)} kernel: as a matrix product"
    if BYTES[dtype] == 1:
        if shape.groups == 1:
            return _product(shape, dtype), f"{dtype}: as a matrix product"
        notes.append(f"{dtype} with groups: in bf16")
        dtype = "bf16"
    side, images = _squares(shape)
    taps, stride = shape.windows[0].taps, max(window.stride for window in shape.windows)
    if not shape.is_square:
        taps = max(1, round(math.sqrt(shape.taps)))
        notes.append(f"{_kernel(shape)} kernel: as {taps} x {taps}")
    if {window.positions for window in shape.windows} != {side} or len(shape.windows) != 2:
        notes.append(f"{_image(shape)} image: as squares of {side} x {side}")
    call = _square_call(shape, (images, side, taps, stride), dtype)
    if call is None:
        return _product(shape, dtype), f"{taps} x {taps} kernel on one pixel: as a matrix product"
    return call, ", ".join([*notes, *_differences(shape, taps)])


def _square_call(shape: Shape, sizes: tuple[int, int, int, int], dtype: str) -> Call | None:
    """The kernel whose result has the sides wanted, if padding by ``R // 2`` can give it."""
    images, side, taps, stride = sizes
    least = (side - 1) * stride + taps - 2 * (taps // 2)
    if least < 1:
        return None
    params = {
        "N": images,
        "C": shape.groups * shape.depth,
        "H": min(side * stride, least + stride - 1),
        "K": shape.groups * shape.width,
        "R": taps,
        "stride": stride,
        "groups": shape.groups,
    }
    return Call(kind="conv2d", params=params, dtype=dtype)


def _squares(shape: Shape) -> tuple[int, int]:
    """Side and number of square images with as many pixels: exact where one side of the image is a
    multiple of the other, else of the nearest area."""
    sides = [window.positions for window in shape.windows]
    if len(set(sides)) == 1 and len(sides) == 2:
        return sides[0], shape.images
    found = []
    for side in (min(sides), max(1, round(math.sqrt(shape.pixels)))):
        images = max(1, round(shape.images * shape.pixels / side**2))
        error = abs(images * side**2 / (shape.images * shape.pixels) - 1)
        found.append((error, -side, images))
    _, side, images = min(found)
    return -side, images


def _differences(shape: Shape, taps: int) -> list[str]:
    """Paddings and dilations, which the result's size stands for."""
    notes = []
    if any(window.dilation > 1 for window in shape.windows):
        notes.append("dilated: as one without gaps")
    if shape.is_square and taps > 1:
        paddings = {-window.offset for window in shape.windows if window.dilation == 1}
        if paddings - {taps // 2}:
            notes.append(
                f"padding is not {taps // 2} all round: as a call with a result of the same size"
            )
    return notes


def _product(shape: Shape, dtype: str) -> Call:
    sizes = {
        "M": shape.images * shape.pixels,
        "N": shape.width,
        "K": shape.depth * shape.taps,
    }
    if shape.groups == 1:
        return Call(kind="gemm", params=sizes, dtype=dtype)
    wide = dtype if BYTES[dtype] > 1 else "bf16"
    return Call(kind="bmm", params={"B": shape.groups, **sizes}, dtype=wide)


def _kernel(shape: Shape) -> str:
    return " x ".join(str(window.taps) for window in shape.windows) or "1"


def _image(shape: Shape) -> str:
    return " x ".join(str(window.positions) for window in shape.windows)

"""Single operators of every shape that the mapper treats differently."""

from __future__ import annotations

from arch.datatypes import accumulator_of
from mapper.workload.graph import Workload
from mapper.workload.nests import ConvolutionShape, Index, Nest, Window, at, convolution, gemm
from mapper.workload.operators import Access, AffineIndex, Operator, Tensor

Shapes = tuple[tuple[int, ...], ...]


def product(rows: int, columns: int, depth: int) -> Workload:
    shapes = ((rows, depth), (depth, columns), (rows, columns))
    return _single("mac", gemm(rows, columns, depth), shapes)


def batched_product(batch: int, rows: int, columns: int, depth: int) -> Workload:
    """One product per batch element, none of the operands shared."""
    nest = Nest(
        extents={"B": batch, "M": rows, "N": columns, "K": depth},
        inputs=(at("B", "M", "K"), at("B", "K", "N")),
        output=at("B", "M", "N"),
    )
    shapes = ((batch, rows, depth), (batch, depth, columns), (batch, rows, columns))
    return _single("mac", nest, shapes)


def window(
    kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1, axes: int = 1
) -> Window:
    """The same along each axis."""
    return Window(
        kernel=(kernel,) * axes,
        stride=(stride,) * axes,
        padding=(padding,) * axes,
        dilation=(dilation,) * axes,
    )


def convolved(
    channels: int, filters: int, size: tuple[int, ...], window: Window, groups: int = 1
) -> Workload:
    """A convolution over as many axes as the window and ``size`` have."""
    shape = ConvolutionShape(
        batch=1,
        in_channels=channels,
        out_channels=filters,
        output_size=tuple(window.output_size(axis, s) for axis, s in enumerate(size)),
        window=window,
        groups=groups,
    )
    weight = (filters, channels // groups, *window.kernel)
    shapes = ((1, channels, *size), weight, (1, filters, *shape.output_size))
    return _single("mac", convolution(shape), shapes)


def pooled(channels: int, size: int, window: Window) -> Workload:
    """The largest of each window along one axis."""
    outputs = window.output_size(0, size)
    nest = Nest(
        extents={"C": channels, "P": outputs, "R": window.kernel[0]},
        inputs=((*at("C"), window.index(0)),),
        output=at("C", "P"),
    )
    return _single("max", nest, ((channels, size), (channels, outputs)))


def pooled_twice(channels: int, outputs: int) -> Workload:
    """The largest of each window of windows: three loops run along one padded axis."""
    index = AffineIndex((("P", 4), ("R", 2), ("S", 1)), -1)
    nest = Nest(
        extents={"C": channels, "P": outputs, "R": 3, "S": 2},
        inputs=((*at("C"), index),),
        output=at("C", "P"),
    )
    return _single("max", nest, ((channels, 4 * outputs), (channels, outputs)))


def added(rows: int, columns: int) -> Workload:
    """A matrix and a row that is added to each of its rows."""
    nest = Nest(
        extents={"M": rows, "N": columns}, inputs=(at("M", "N"), at("N")), output=at("M", "N")
    )
    return _single("add", nest, ((rows, columns), (columns,), (rows, columns)))


def _single(operation: str, nest: Nest, shapes: Shapes) -> Workload:
    kinds = ["input", "weight" if operation == "mac" else "input", "output"]
    if len(nest.inputs) == 1:
        kinds = ["input", "output"]
    indices: tuple[Index, ...] = (*nest.inputs, nest.output)
    names = [f"{kind}{number}" for number, kind in enumerate(kinds)]
    accesses = [Access(name, index) for name, index in zip(names, indices, strict=True)]
    operator = Operator(
        name=operation,
        kind=operation,
        operation=operation,
        extents=nest.extents,
        inputs=tuple(accesses[:-1]),
        output=accesses[-1],
        accumulator_dtype=accumulator_of("int8") if operation == "mac" else "int8",
    )
    tensors = tuple(
        Tensor(name=name, shape=shape, dtype="int8", kind=kind)
        for name, shape, kind in zip(names, shapes, kinds, strict=True)
    )
    return Workload(name=operation, tensors=tensors, operators=(operator,))

"""Convolutions, dense layers and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from mapper.workload.nests import ConvolutionShape, Nest, Window, at, convolution
from mapper.workload.operators import AffineIndex
from mapper.workload.tflite_import.geometry import window_of
from mapper.workload.tflite_import.importing import (
    Call,
    Padded,
    Reshaped,
    as_seen,
    as_stored,
    imports,
)
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.storage import View, broadcast, fresh, narrow, permute, reshape
from mapper.workload.transposed import (
    Phase,
    TransposedAxis,
    TransposedShape,
    phase_nest,
    phases,
    refuse_untouched,
)


@imports("CONV_2D")
def convolution_2d(call: Call) -> Sequence[View]:
    """Weights are stored ``[K, R, S, C]``; fewer channels than the input has are groups."""
    weight = permute(call.view(1), (0, 3, 1, 2))
    groups = call.tensor(0).shape[3] // weight.shape[1]
    return [_convolved(call, weight, groups)]


@imports("DEPTHWISE_CONV_2D")
def depthwise_convolution_2d(call: Call) -> Sequence[View]:
    """Weights are stored ``[1, R, S, K]``; each channel is a group."""
    return [_convolved(call, permute(call.view(1), (3, 0, 1, 2)), call.tensor(0).shape[3])]


def _convolved(call: Call, weight: View, groups: int) -> View:
    data, window = _window(call, weight.shape[2:])
    target = call.target().shape
    shape = ConvolutionShape(
        batch=target[0],
        in_channels=data.shape[3],
        out_channels=target[3],
        output_size=(target[1], target[2]),
        window=window,
        groups=groups,
    )
    note_bias(call, 2)
    kernel = Kernel(kind="conv2d", operation="mac", nest=convolution(shape))
    stored = (target[0], target[3], target[1], target[2])
    return as_seen(call.emit(kernel, [as_stored(data), weight], stored))


def note_bias(call: Call, position: int) -> None:
    if call.has(position):
        call.note("bias added on its output path")


def _window(call: Call, kernel: tuple[int, ...]) -> tuple[View, Window]:
    """What is read, and the window over it; zeros of a padding before are read beyond the edge."""
    value = call.value(0)
    earlier = (0, 0)
    if isinstance(value, Padded):
        earlier = (value.before[1], value.before[2])
    data = value.source if isinstance(value, Padded) else call.view(0)
    window = window_of(call.into.graph, call.operator, kernel)
    padding = tuple(a + b for a, b in zip(window.padding, earlier, strict=True))
    return data, Window(
        kernel=kernel, stride=window.stride, padding=padding, dilation=window.dilation
    )


@imports("TRANSPOSE_CONV")
def transposed_convolution(call: Call) -> Sequence[View]:
    """Phase by phase; inputs are the result's shape, weights ``[K, R, S, C]`` and data."""
    weight, data = permute(call.view(1), (3, 0, 1, 2)), call.view(2)
    target, kernel = call.target().shape, call.tensor(1).shape[1:3]
    stride = (call.option("StrideH"), call.option("StrideW"))
    note_bias(call, 3)
    call.note("weights stored mirrored, as it reads them")
    output = call.into.store(f"{call.name}.out", target, call.target().dtype, "activation")
    axes = [
        phases(
            TransposedAxis(kernel=k, stride=step, padding=max(0, (size - 1) * step + k - out) // 2),
            out,
        )
        for k, step, size, out in zip(kernel, stride, data.shape[1:3], target[1:3], strict=True)
    ]
    shape = TransposedShape(
        batch=target[0],
        in_channels=data.shape[3],
        out_channels=target[3],
        kernel=kernel,
    )
    refuse_untouched(axes, f"node {call.name}")
    for number, phase in enumerate(product(*axes)):
        kernel_of_phase = Kernel(
            kind="conv_transpose2d", operation="mac", nest=phase_nest(shape, phase)
        )
        name = call.draft.unique(f"{call.name}.phase{number}")
        place = _interleaved(as_stored(output), phase, stride)
        call.draft.emit_into(name, kernel_of_phase, [as_stored(data), weight], place)
    return [output]


def _interleaved(output: View, phase: Sequence[Phase], stride: Sequence[int]) -> View:
    for axis, (part, step) in enumerate(zip(phase, stride, strict=True), start=2):
        output = narrow(output, axis, part.first, part.outputs, step)
    return output


@imports("FULLY_CONNECTED")
def fully_connected(call: Call) -> Sequence[View | Reshaped]:
    """``out[..., N] = in[..., K] * weight[N, K]``; a single row is read in any shape."""
    weight = call.view(1)
    length = weight.shape[1]
    note_bias(call, 2)
    data = _any_shape(call, length)
    if data is not None:
        result = _single_row(call, data, weight)
    else:
        rows = call.tensor(0).elements // length
        result = _rows(call, call.draft.reshape(call.view(0), (rows, length)), weight)
    return [call.draft.reshape(result, call.target().shape)]


def _any_shape(call: Call, length: int) -> View | None:
    """The input before a reshape, if all of it is one row."""
    if call.tensor(0).elements != length:
        return None
    value = call.value(0)
    return value.source if isinstance(value, Reshaped) else call.view(0)


def _single_row(call: Call, data: View, weight: View) -> View:
    """One loop per axis of the data; the weights' row is split alike."""
    filters = weight.shape[0]
    sizes = [size for size in data.shape if size > 1] or [1]
    dims = ("K",) if len(sizes) == 1 else tuple(f"K{axis}" for axis in range(len(sizes)))
    split = reshape(weight, (filters, *sizes))
    assert split is not None  # splitting is always possible
    names = iter(dims)
    single = [size == 1 for size in data.shape]
    if all(single):
        single[-1] = False
    reading = tuple(AffineIndex(()) if one else AffineIndex(((next(names), 1),)) for one in single)
    nest = Nest(
        extents={"M": 1, "N": filters, **dict(zip(dims, sizes, strict=True))},
        inputs=(reading, at("N", *dims)),
        output=at("M", "N"),
    )
    return call.emit(Kernel(kind="gemm", operation="mac", nest=nest), [data, split], (1, filters))


def _rows(call: Call, data: View, weight: View) -> View:
    nest = Nest(
        extents={"M": data.shape[0], "N": weight.shape[0], "K": data.shape[1]},
        inputs=(at("M", "K"), at("N", "K")),
        output=at("M", "N"),
    )
    kernel = Kernel(kind="gemm", operation="mac", nest=nest)
    return call.emit(kernel, [data, weight], (data.shape[0], weight.shape[0]))


@imports("BATCH_MATMUL")
def batch_matmul(call: Call) -> Sequence[View]:
    left, right = call.view(0), call.view(1)
    batch = call.target().shape[:-2]
    left = broadcast(left, (*batch, *left.shape[-2:]))
    right = broadcast(right, (*batch, *right.shape[-2:]))
    rank = len(batch)
    swapped = (*range(rank), rank + 1, rank)
    left = permute(left, swapped) if call.option("AdjX") else left
    right = permute(right, swapped) if call.option("AdjY") else right
    outer = tuple(f"B{axis}" for axis in range(rank))
    sizes = dict(zip(outer, batch, strict=True))
    nest = Nest(
        extents={**sizes, "M": left.shape[-2], "N": right.shape[-1], "K": left.shape[-1]},
        inputs=(at(*outer, "M", "K"), at(*outer, "K", "N")),
        output=at(*outer, "M", "N"),
    )
    target = call.target()
    result = fresh(call.storage(f"{call.name}.out", target.shape, target.dtype, "activation"))
    kernel = Kernel(kind="bmm", operation="mac", nest=nest)
    call.draft.emit_into(call.draft.unique(call.name), kernel, [left, right], result)
    return [result]

"""Convolutions and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from mapper.workload.onnx_import.operators.padding import split_padding, window_padding
from mapper.workload.onnx_import.values import NodeCall, onnx_operator

_CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_TRANSPOSED = {
    1: functional.conv_transpose1d,
    2: functional.conv_transpose2d,
    3: functional.conv_transpose3d,
}


@onnx_operator("Conv")
def run_convolution(call: NodeCall) -> Any:
    return convolve(call, call.tensor(0), call.tensor(1), call.optional(2))


@onnx_operator("ConvInteger")
def run_integer_convolution(call: NodeCall) -> Any:
    return convolve(call, call.tensor(0).float(), call.tensor(1).float(), None)


@onnx_operator("QLinearConv")
def run_quantized_convolution(call: NodeCall) -> Any:
    """Scales and zero points are applied on the output path."""
    bias = call.optional(8)
    result = convolve(
        call, call.tensor(0).float(), call.tensor(3).float(), None if bias is None else bias.float()
    )
    return result.to(call.tensor(0).dtype)


def convolve(
    call: NodeCall, data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> Any:
    rank = weight.ndim - 2
    window = window_padding(call, data.shape[2:], weight.shape[2:])
    data, padding = split_padding(data, window)
    return _CONVOLUTIONS[rank](
        data,
        weight,
        bias,
        call.attribute("strides", [1] * rank),
        padding,
        call.attribute("dilations", [1] * rank),
        call.attribute("group", 1),
    )


@onnx_operator("ConvTranspose")
def run_transposed_convolution(call: NodeCall) -> Any:
    weight = call.tensor(1)
    rank = weight.ndim - 2
    pads = call.attribute("pads", [0] * 2 * rank)
    before, after = pads[:rank], pads[rank:]
    extra = call.attribute("output_padding", [0] * rank)
    if call.attribute("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise call.error("auto_pad is not supported; allowed: explicit pads")
    if "output_shape" in call.attributes:
        raise call.error("output_shape is not supported; allowed: pads and output_padding")
    # torch pads both sides alike; what is cut off more at the end is less output padding.
    output_padding = [e + b - a for e, b, a in zip(extra, before, after, strict=True)]
    if min(output_padding) < 0:
        raise call.error(f"pads {pads} cut off more at the end than at the start")
    return _TRANSPOSED[rank](
        call.tensor(0),
        weight,
        call.optional(2),
        call.attribute("strides", [1] * rank),
        before,
        output_padding,
        call.attribute("group", 1),
        call.attribute("dilations", [1] * rank),
    )


@onnx_operator("Gemm")
def run_gemm(call: NodeCall) -> Any:
    """``alpha * A B + beta * C``: factors and the addition run on the output path."""
    left, right = call.tensor(0), call.tensor(1)
    left = left.t() if call.attribute("transA", 0) else left
    bias = call.optional(2)
    if bias is not None and bias.ndim == 1:
        weight = right if call.attribute("transB", 0) else right.t()
        return functional.linear(left, weight, bias)
    product = left @ (right.t() if call.attribute("transB", 0) else right)
    return product if bias is None else product + bias


@onnx_operator("MatMul")
def run_matmul(call: NodeCall) -> Any:
    return torch.matmul(call.tensor(0), call.tensor(1))


@onnx_operator("MatMulInteger")
def run_integer_matmul(call: NodeCall) -> Any:
    return torch.matmul(call.tensor(0).float(), call.tensor(1).float())


@onnx_operator("QLinearMatMul")
def run_quantized_matmul(call: NodeCall) -> Any:
    product = torch.matmul(call.tensor(0).float(), call.tensor(3).float())
    return product.to(call.tensor(0).dtype)


@onnx_operator("FusedMatMul", domain="com.microsoft")
def run_fused_matmul(call: NodeCall) -> Any:
    left, right = call.tensor(0), call.tensor(1)
    left = left.mT if call.attribute("transA", 0) else left
    right = right.mT if call.attribute("transB", 0) else right
    product = left @ right
    alpha = call.attribute("alpha", 1.0)
    return product if alpha == 1.0 else product * alpha


@onnx_operator("Einsum")
def run_einsum(call: NodeCall) -> Any:
    operands: Sequence[torch.Tensor] = [call.tensor(at) for at in range(len(call.inputs))]
    return torch.einsum(call.attributes["equation"].decode(), *operands)

"""Operators on quantized tensors. Scales and zero points are applied on the output path.

Weights of few bits keep their format (``mapper.workload.onnx_import.packed``): they are read as
they lie in the file and widened on their way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from mapper.workload.onnx_import.operators.contraction import convolve
from mapper.workload.onnx_import.values import NodeCall, onnx_operator

_MICROSOFT = "com.microsoft"


@onnx_operator("MatMulNBits", domain=_MICROSOFT)
def run_packed_product(call: NodeCall) -> Any:
    """``A B + bias`` with B stored ``[N, K]`` in groups along K."""
    data = call.tensor(0)
    return functional.linear(data, call.tensor(1).to(data.dtype), call.optional(5))


@onnx_operator("GatherBlockQuantized", domain=_MICROSOFT)
def run_packed_lookup(call: NodeCall) -> Any:
    if call.attribute("gather_axis", 0) != 0:
        raise call.error("only rows can be looked up in packed tables")
    return functional.embedding(call.tensor(1).long(), call.tensor(0)).to(call.tensor(2).dtype)


@onnx_operator("QLinearConv", domain=_MICROSOFT)
def run_convolution(call: NodeCall) -> Any:
    if call.attribute("channels_last", 0):
        raise call.error("channels_last cannot be imported")
    bias = call.optional(8)
    floating = None if bias is None else bias.float()
    result = convolve(call, call.tensor(0).float(), call.tensor(3).float(), floating)
    return result.to(call.tensor(0).dtype)


@onnx_operator("QGemm", domain=_MICROSOFT)
def run_gemm(call: NodeCall) -> Any:
    left, right = call.tensor(0).float(), call.tensor(3).float()
    left = left.t() if call.attribute("transA", 0) else left
    weight = right if call.attribute("transB", 0) else right.t()
    bias = call.optional(6)
    result = functional.linear(left, weight, None if bias is None else bias.float())
    return result.to(call.tensor(0).dtype) if call.has(7) else result


@onnx_operator("DynamicQuantizeMatMul", "MatMulIntegerToFloat", domain=_MICROSOFT)
def run_product(call: NodeCall) -> Any:
    return torch.matmul(call.tensor(0).float(), call.tensor(1).float())


#: Which inputs are data; the others are scales and zero points.
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "QLinearAdd": torch.add,
    "QLinearMul": torch.mul,
}


@onnx_operator(*_BINARY, domain=_MICROSOFT)
def run_binary(call: NodeCall) -> Any:
    left, right = call.tensor(0), call.tensor(3)
    return _BINARY[call.operator](left.float(), right.float()).to(left.dtype)


_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "QLinearSigmoid": torch.sigmoid,
    "QLinearLeakyRelu": lambda data: functional.leaky_relu(data, 0.01),
    "QLinearSoftmax": lambda data: functional.softmax(data, dim=-1),
    "QLinearGlobalAveragePool": lambda data: data.mean(dim=(2, 3), keepdim=True),
}


@onnx_operator(*_UNARY, domain=_MICROSOFT)
def run_unary(call: NodeCall) -> Any:
    data = call.tensor(0)
    return _UNARY[call.operator](data.float()).to(data.dtype)


@onnx_operator("QLinearConcat", domain=_MICROSOFT)
def run_concatenation(call: NodeCall) -> Any:
    """After the result's scale and zero point: data, scale and zero point of each part."""
    parts = [call.tensor(at) for at in range(2, len(call.inputs), 3)]
    return torch.cat(parts, dim=call.attributes["axis"])


@onnx_operator("QuantizeLinear", domain=_MICROSOFT)
def run_quantize(call: NodeCall) -> Any:
    return call.tensor(0).to(torch.uint8 if not call.has(2) else call.tensor(2).dtype)


@onnx_operator("DequantizeLinear", domain=_MICROSOFT)
def run_dequantize(call: NodeCall) -> Any:
    return call.tensor(0).to(torch.float32)


@onnx_operator("DynamicQuantizeLinear")
def run_dynamic_quantize(call: NodeCall) -> Any:
    """The range is found first; scale and zero point follow from it."""
    data = call.tensor(0)
    low, high = torch.amin(data), torch.amax(data)
    scale = (high - low) / 255.0
    return (data / scale).to(torch.uint8), scale, (low / scale).to(torch.uint8)

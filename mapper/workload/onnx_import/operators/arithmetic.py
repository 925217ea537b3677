"""Element-by-element functions, reductions and normalizations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from mapper.workload.onnx_import.values import NodeCall, onnx_operator

_UNARY: dict[str, Callable[[torch.Tensor], Any]] = {
    "Abs": torch.abs,
    "Acos": torch.acos,
    "Asin": torch.asin,
    "Atan": torch.atan,
    "BitwiseNot": torch.bitwise_not,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "HardSwish": functional.hardswish,
    "Log": torch.log,
    "Mish": functional.mish,
    "Neg": torch.neg,
    "Not": torch.logical_not,
    "Reciprocal": torch.reciprocal,
    "Relu": functional.relu,
    "Round": torch.round,
    "Selu": functional.selu,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Softplus": functional.softplus,
    "Softsign": functional.softsign,
    "Sqrt": torch.sqrt,
    "Swish": functional.silu,
    "Tan": torch.tan,
    "Tanh": torch.tanh,
}

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "And": torch.logical_and,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseOr": torch.bitwise_or,
    "Div": lambda a, b: a / b,
    "Equal": lambda a, b: a == b,
    "Greater": lambda a, b: a > b,
    "GreaterOrEqual": lambda a, b: a >= b,
    "Less": lambda a, b: a < b,
    "LessOrEqual": lambda a, b: a <= b,
    "Mod": torch.remainder,
    "Mul": lambda a, b: a * b,
    "Or": torch.logical_or,
    "Pow": lambda a, b: a**b,
    "Sub": lambda a, b: a - b,
    "Xor": lambda a, b: torch.ne(a, b),
}

_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "Max": torch.maximum,
    "Mean": torch.add,
    "Min": torch.minimum,
    "Sum": torch.add,
}

_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceL1": functools.partial(torch.linalg.vector_norm, ord=1),
    "ReduceL2": torch.linalg.vector_norm,
    "ReduceMax": torch.amax,
    "ReduceMean": torch.mean,
    "ReduceMin": torch.amin,
    "ReduceLogSumExp": torch.logsumexp,
    "ReduceSumSquare": lambda data, **where: (data * data).sum(**where),
    "ReduceSum": torch.sum,
}

_LAYER_NORM_EPSILON = 1e-5
_LEAKY_SLOPE = 0.01


@onnx_operator(*_UNARY)
def run_unary(call: NodeCall) -> Any:
    return _UNARY[call.operator](call.tensor(0))


@onnx_operator(*_BINARY)
def run_binary(call: NodeCall) -> Any:
    return _BINARY[call.operator](call.operand(0), call.operand(1))


@onnx_operator(*_FOLDED)
def run_folded(call: NodeCall) -> Any:
    """Any number of tensors, two by two."""
    tensors = [call.tensor(at) for at in range(len(call.inputs))]
    total = functools.reduce(_FOLDED[call.operator], tensors)
    return total / len(tensors) if call.operator == "Mean" else total


@onnx_operator("Where")
def run_where(call: NodeCall) -> Any:
    return torch.where(call.tensor(0), call.tensor(1), call.tensor(2))


@onnx_operator("Clip")
def run_clip(call: NodeCall) -> Any:
    low, high = (
        call.operand(at) if call.has(at) else call.attributes.get(name)
        for at, name in ((1, "min"), (2, "max"))
    )
    return torch.clamp(call.tensor(0), low, high)


@onnx_operator("LeakyRelu")
def run_leaky_relu(call: NodeCall) -> Any:
    return functional.leaky_relu(call.tensor(0), call.attribute("alpha", _LEAKY_SLOPE))


@onnx_operator("PRelu")
def run_prelu(call: NodeCall) -> Any:
    return functional.prelu(call.tensor(0), call.tensor(1).reshape(-1))


@onnx_operator("Elu")
def run_elu(call: NodeCall) -> Any:
    return functional.elu(call.tensor(0), call.attribute("alpha", 1.0))


@onnx_operator("HardSigmoid")
def run_hard_sigmoid(call: NodeCall) -> Any:
    return functional.hardsigmoid(call.tensor(0))


@onnx_operator("Gelu")
@onnx_operator("Gelu", domain="com.microsoft")
def run_gelu(call: NodeCall) -> Any:
    approximate = call.attribute("approximate", b"none").decode()
    return functional.gelu(call.tensor(0), approximate=approximate)


@onnx_operator("FastGelu", "BiasGelu", domain="com.microsoft")
def run_biased_gelu(call: NodeCall) -> Any:
    approximate = "tanh" if call.operator == "FastGelu" else "none"
    bias = call.optional(1)
    data = call.tensor(0) if bias is None else call.tensor(0) + bias
    return functional.gelu(data, approximate=approximate)


@onnx_operator("Softmax", "LogSoftmax")
def run_softmax(call: NodeCall) -> Any:
    # Before version 13 all axes from the given one on were joined; the default was 1.
    axis = call.attribute("axis", 1 if call.opset < 13 else -1)
    return functional.softmax(call.tensor(0), dim=axis)


@onnx_operator(*_REDUCTIONS)
def run_reduction(call: NodeCall) -> Any:
    axes = call.integers(1, "axes")
    if not axes:
        if call.attribute("noop_with_empty_axes", 0):
            return call.tensor(0)
        axes = list(range(call.tensor(0).ndim))
    keep = bool(call.attribute("keepdims", 1))
    return _REDUCTIONS[call.operator](call.tensor(0), dim=axes, keepdim=keep)


@onnx_operator("ArgMax", "ArgMin")
def run_extreme_position(call: NodeCall) -> Any:
    function = torch.argmax if call.operator == "ArgMax" else torch.argmin
    keep = bool(call.attribute("keepdims", 1))
    return function(call.tensor(0), dim=call.attribute("axis", 0), keepdim=keep)


@onnx_operator("BatchNormalization")
def run_batch_norm(call: NodeCall) -> Any:
    scale, shift, mean, variance = (call.tensor(at) for at in range(1, 5))
    return functional.batch_norm(call.tensor(0), mean, variance, scale, shift)


@onnx_operator("InstanceNormalization")
def run_instance_norm(call: NodeCall) -> Any:
    return functional.instance_norm(call.tensor(0), weight=call.tensor(1), bias=call.tensor(2))


@onnx_operator("GroupNormalization")
def run_group_norm(call: NodeCall) -> Any:
    groups = call.attributes["num_groups"]
    return functional.group_norm(call.tensor(0), groups, call.tensor(1), call.tensor(2))


@onnx_operator("LayerNormalization")
def run_layer_norm(call: NodeCall) -> Any:
    data = call.tensor(0)
    shape = data.shape[call.attribute("axis", -1) :]
    epsilon = call.attribute("epsilon", _LAYER_NORM_EPSILON)
    return functional.layer_norm(data, shape, call.tensor(1), call.optional(2), epsilon)


@onnx_operator("RMSNormalization", "SimplifiedLayerNormalization")
def run_rms_norm(call: NodeCall) -> Any:
    data = call.tensor(0)
    return functional.rms_norm(data, data.shape[call.attribute("axis", -1) :], call.tensor(1))


@onnx_operator("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain="com.microsoft")
def run_skip_norm(call: NodeCall) -> Any:
    """A sum and its normalization; the sum is the fourth result."""
    total = call.tensor(0) + call.tensor(1)
    width = total.shape[-1:]
    if call.operator == "SkipSimplifiedLayerNormalization":
        bias = call.optional(3)
        total = total if bias is None else total + bias
        return functional.rms_norm(total, width, call.tensor(2)), None, None, total
    bias = call.optional(4)
    total = total if bias is None else total + bias
    normed = functional.layer_norm(total, width, call.tensor(2), call.optional(3))
    return normed, None, None, total

"""Non-linear functions of one element.

Clamps (relu and its like) run on the producer's output path. The others are vector operators.
Their scalar operations are counted from the formula beside each; an elementary function
(exp, log, sqrt, reciprocal, tanh, erf, sin, cos), rounding, a comparison and a selection count
one each.
"""

from __future__ import annotations

from mapper.workload.torch_import.folding import fold_into_producer
from mapper.workload.torch_import.registry import Call, Value, lowers

_CLAMPS = ("relu", "relu6", "hardtanh", "clamp", "clamp_min", "clamp_max", "threshold")

_ELEMENTARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"),
    *("tanh", "sinh", "cosh", "erf", "erfc", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("floor", "ceil", "round", "trunc", "frac", "sign", "sgn"),
)

_OPS = {
    **{f"aten.{name}": 1 for name in _ELEMENTARY},
    "aten.sigmoid": 4,  # 1 / (1 + exp(-x))
    "aten.silu": 5,  # x * sigmoid(x)
    "aten.hardsigmoid": 4,  # min(max(x + 3, 0), 6) / 6
    "aten.hardswish": 5,  # x * hardsigmoid(x)
    "aten.leaky_relu": 2,  # max(x, a * x)
    "aten.prelu": 2,  # max(x, a * x), a per channel
    "aten.elu": 3,  # x > 0 ? x : exp(x) - 1
    "aten.selu": 4,  # s * elu(x)
    "aten.softplus": 3,  # log(1 + exp(x))
    "aten.mish": 5,  # x * tanh(softplus(x))
    "aten.log_sigmoid": 5,  # log(sigmoid(x))
}

#: gelu(x) = x * (1 + erf(x / sqrt(2))) * 0.5
_GELU_OPS = 5

#: gelu(x) = 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))
_GELU_TANH_OPS = 9


@lowers(*(f"aten.{name}" for name in _CLAMPS))
def lower_clamp(call: Call) -> Value:
    folded = fold_into_producer(call, "self", f"{call.name}: clamped")
    # One comparison an element, as for relu; a second bound is not counted.
    return folded or call.emit_pointwise("clamp", "activation", 1, call["self"])


@lowers(*_OPS)
def lower_activation(call: Call) -> Value:
    kind = call.operation.removeprefix("aten.")
    return call.emit_pointwise(kind, "activation", _OPS[call.operation], call["self"])


@lowers("aten.gelu")
def lower_gelu(call: Call) -> Value:
    ops = _GELU_TANH_OPS if call["approximate"] == "tanh" else _GELU_OPS
    return call.emit_pointwise("gelu", "activation", ops, call["self"])

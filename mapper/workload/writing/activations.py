"""Activation functions and the scalar operations that an element takes."""

from __future__ import annotations

#: An elementary function (exp, tanh, erf, reciprocal) or a comparison counts one.
ACTIVATION_OPS = {
    "relu": 1,
    "relu6": 2,  # min(max(x, 0), 6)
    "gelu": 5,  # x * (1 + erf(x / sqrt(2))) * 0.5
    "gelu_tanh": 9,  # 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))
    "silu": 5,  # x / (1 + exp(-x))
    "sigmoid": 4,  # 1 / (1 + exp(-x))
    "tanh": 1,
    "exp": 1,
    "softplus": 3,  # log(1 + exp(x))
}

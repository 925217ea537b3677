"""Element by element: arithmetic, activations, conversions, softmax and norms.

Scalar operations are counted as for torch: an elementary function, a comparison and a selection
count one each.
"""

from __future__ import annotations

from collections.abc import Sequence

from mapper.workload.tflite_import.importing import Call, imports
from mapper.workload.torch_import.storage import View

#: The vector operation and the scalar operations of an element, of two operands.
_BINARY = {
    "ADD": ("add", 1),
    "SUB": ("add", 1),
    "MUL": ("mul", 1),
    "DIV": ("mul", 2),
    "MAXIMUM": ("max", 1),
    "MINIMUM": ("max", 1),
    "SQUARED_DIFFERENCE": ("mul", 2),
    "FLOOR_DIV": ("mul", 3),
    "FLOOR_MOD": ("mul", 4),
    "POW": ("activation", 3),
    **dict.fromkeys(
        (
            "EQUAL",
            "NOT_EQUAL",
            "GREATER",
            "GREATER_EQUAL",
            "LESS",
            "LESS_EQUAL",
            "LOGICAL_AND",
            "LOGICAL_OR",
        ),
        ("max", 1),
    ),
}

_UNARY = {
    "RELU": ("activation", 1),
    "RELU6": ("activation", 2),
    "RELU_N1_TO_1": ("activation", 2),
    "LEAKY_RELU": ("activation", 2),
    "ELU": ("activation", 3),
    "GELU": ("activation", 5),
    "LOGISTIC": ("activation", 4),
    "TANH": ("activation", 1),
    "HARD_SWISH": ("activation", 5),
    "SOFTMAX": ("softmax", 5),
    "LOG_SOFTMAX": ("softmax", 5),
    "L2_NORMALIZATION": ("norm", 3),
    "NEG": ("mul", 1),
    "ABS": ("max", 1),
    "SQUARE": ("mul", 1),
    **dict.fromkeys(("EXP", "LOG", "SQRT", "RSQRT", "SIN", "COS"), ("activation", 1)),
    **dict.fromkeys(("FLOOR", "CEIL", "ROUND", "LOGICAL_NOT"), ("max", 1)),
    "CAST": ("copy", 1),
    # A scale and a shift.
    "QUANTIZE": ("mul", 2),
    "DEQUANTIZE": ("mul", 2),
}


@imports(*_BINARY)
def binary(call: Call) -> Sequence[View]:
    """A constant of one element is part of the operator, not an operand."""
    operation, ops = _BINARY[call.operator.kind]
    operands = [call.view(i) for i in range(2) if not _is_number(call, i)]
    kind = call.operator.kind.lower()
    return [call.pointwise(kind, operation, ops, *(operands or [call.view(0)]))]


def _is_number(call: Call, position: int) -> bool:
    tensor = call.tensor(position)
    return tensor.constant and tensor.elements == 1


@imports(*_UNARY)
def unary(call: Call) -> Sequence[View]:
    operation, ops = _UNARY[call.operator.kind]
    return [call.pointwise(call.operator.kind.lower(), operation, ops, call.view(0))]


@imports("PRELU")
def prelu(call: Call) -> Sequence[View]:
    return [call.pointwise("prelu", "activation", 2, call.view(0), call.view(1))]


@imports("ADD_N")
def add_n(call: Call) -> Sequence[View]:
    operands = [call.view(i) for i in range(len(call.operator.inputs))]
    return [call.pointwise("add_n", "add", max(1, len(operands) - 1), *operands)]


@imports("SELECT", "SELECT_V2")
def select(call: Call) -> Sequence[View]:
    return [call.pointwise("select", "max", 1, *(call.view(i) for i in range(3)))]

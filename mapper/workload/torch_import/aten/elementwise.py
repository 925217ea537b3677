"""Element-by-element arithmetic.

With a number or a one-element constant as the other operand, the operator scales or shifts
what a producer writes, and runs on its output path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mapper.workload.torch_import.aten.complex_numbers import lower_complex
from mapper.workload.torch_import.folding import fold_into_producer
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a vector unit does for it and how many scalar operations an element takes."""

    operation: str
    ops: int


# A subtraction is an addition, a division a reciprocal and a product, a remainder what is left
# after a division rounded down; selections and
# comparisons are done by what computes a maximum.
_BINARY = {
    "aten.add": Arithmetic("add", 1),
    "aten.sub": Arithmetic("add", 1),
    "aten.rsub": Arithmetic("add", 1),
    "aten.mul": Arithmetic("mul", 1),
    "aten.div": Arithmetic("mul", 2),
    "aten.true_divide": Arithmetic("mul", 2),
    "aten.floor_divide": Arithmetic("mul", 3),
    "aten.remainder": Arithmetic("mul", 5),
    "aten.fmod": Arithmetic("mul", 5),
    "aten.maximum": Arithmetic("max", 1),
    "aten.minimum": Arithmetic("max", 1),
}

_COMPARISONS = (
    *("eq", "ne", "lt", "le", "gt", "ge"),
    *("logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or", "bitwise_not"),
)

#: Raising to a power that is not a small integer: logarithm, product, exponential.
_POWER_OPS = 3
_LARGEST_MULTIPLIED_POWER = 4


@lowers(*_BINARY)
def lower_arithmetic(call: Call) -> Value:
    arithmetic = _BINARY[call.operation]
    if call.node.meta["val"].is_complex():
        return lower_complex(call, arithmetic.operation)
    operands = {n: call[n] for n in ("self", "other") if not _is_number(call[n])}
    if len(operands) == 1:
        (argument, view), *_ = operands.items()
        what = f"{call.name}: constant {arithmetic.operation}"
        folded = fold_into_producer(call, argument, what)
        return folded or call.emit_pointwise(_kind(call), arithmetic.operation, 1, view)
    merged = _merged_vector(call, arithmetic)
    if merged is not None:
        return merged
    return call.emit_pointwise(
        _kind(call), arithmetic.operation, arithmetic.ops, *operands.values()
    )


def _merged_vector(call: Call, arithmetic: Arithmetic) -> Value | None:
    """A bias or a factor per channel, written apart from the product that it belongs to."""
    for argument, other in (("self", "other"), ("other", "self")):
        vector = call[other]
        if not _is_channel_vector(vector) or call.operation not in ("aten.add", "aten.mul"):
            continue
        producer = call.sole_producer(argument)
        if producer is not None and producer.kernel.operation == "mac":
            what = f"{vector.storage.name}: {arithmetic.operation} per channel"
            return fold_into_producer(call, argument, what)
    return None


def _is_channel_vector(view: View) -> bool:
    """Known before the network runs, and different along one axis only."""
    fixed = view.storage.constant or view.storage.kind == "weight"
    return fixed and sum(size > 1 for size in view.shape) == 1


@lowers("aten.neg")
def lower_negation(call: Call) -> Value:
    folded = fold_into_producer(call, "self", f"{call.name}: sign")
    return folded or call.emit_pointwise("neg", "mul", 1, call["self"])


@lowers("aten.abs")
def lower_abs(call: Call) -> Value:
    return call.emit_pointwise("abs", "max", 1, call["self"])


@lowers("aten.pow", "aten.square")
def lower_power(call: Call) -> Value:
    exponent = call.arguments.get("exponent", 2)
    if exponent in range(2, _LARGEST_MULTIPLIED_POWER + 1):
        return call.emit_pointwise("pow", "mul", exponent - 1, call["self"])
    return call.emit_pointwise("pow", "activation", _POWER_OPS, *_views(call))


@lowers(*(f"aten.{name}" for name in _COMPARISONS), "aten.where", "aten.masked_fill")
def lower_selection(call: Call) -> Value:
    return call.emit_pointwise(_kind(call), "max", 1, *_views(call))


def _kind(call: Call) -> str:
    return call.operation.removeprefix("aten.")


def _views(call: Call) -> list[View]:
    return [v for v in call.arguments.values() if isinstance(v, View) and not _is_number(v)]


def _is_number(value: Any) -> bool:
    """A plain number, or a constant tensor of one element."""
    if isinstance(value, View):
        return value.storage.constant and all(size == 1 for size in value.shape)
    return True

"""What flows along the edges of an ONNX graph while it is run, and how its nodes see it.

Shapes, axes and the like are numbers known beforehand (``numpy``); everything else is a tensor
that torch traces. A weight is both: small ones may turn out to be shapes or scales.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from arch.errors import InputError, Problem

Known = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """An initializer: a parameter of the network, and its numbers where they are in the file."""

    tensor: torch.Tensor
    numbers: Known | None


Value = Known | Weight | torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCall:
    """One node about to be run: its attributes and inputs; missing inputs are ``None``."""

    name: str
    operator: str
    attributes: Mapping[str, Any]
    inputs: tuple[Value | None, ...]
    outputs: int
    opset: int

    def attribute(self, name: str, default: Any) -> Any:
        return self.attributes.get(name, default)

    def has(self, position: int) -> bool:
        return position < len(self.inputs) and self.inputs[position] is not None

    def value(self, position: int) -> Value:
        """An input that must be there."""
        if not self.has(position):
            raise self.error(f"input {position} is missing")
        value = self.inputs[position]
        assert value is not None
        return value

    def tensor(self, position: int) -> torch.Tensor:
        """An input as torch sees it."""
        return as_tensor(self.value(position))

    def optional(self, position: int) -> torch.Tensor | None:
        return self.tensor(position) if self.has(position) else None

    def operand(self, position: int) -> Any:
        """An input as an operand of arithmetic: a number if it is known and there is only one."""
        value = self.value(position)
        numbers = numbers_of(value)
        if numbers is not None and numbers.size == 1 and numbers.ndim <= 1:
            return numbers.item()
        return as_tensor(value)

    def known(self, position: int) -> Known:
        """The numbers of an input; an error if they depend on the network's data."""
        numbers = numbers_of(self.value(position))
        if numbers is None:
            raise self.error(
                f"input {position} must be known beforehand, but it depends on the network's "
                "inputs or lies outside the file"
            )
        return numbers

    def integers(self, position: int, attribute: str | None = None) -> list[int] | None:
        """A list that newer files have as an input and older ones as an attribute."""
        if self.has(position):
            return [int(number) for number in self.known(position).reshape(-1)]
        listed = self.attributes.get(attribute) if attribute else None
        return None if listed is None else [int(number) for number in listed]

    def error(self, message: str) -> InputError:
        return InputError(Problem(f"{self.operator}: {message}", where=f"node {self.name}"))


def numbers_of(value: Value) -> Known | None:
    match value:
        case np.ndarray():
            return value
        case Weight(numbers=numbers):
            return numbers
    return None


def as_tensor(value: Value) -> torch.Tensor:
    match value:
        case Weight(tensor=tensor):
            return tensor
        case torch.Tensor():
            return value
    return torch.tensor(value)


Handler = Callable[[NodeCall], Any]

#: (domain, operator) -> what runs it; the standard domain is the empty string.
HANDLERS: dict[tuple[str, str], Handler] = {}


def onnx_operator(*names: str, domain: str = "") -> Callable[[Handler], Handler]:
    """Register what runs operators of a domain: a function from its call to its results."""

    def register(function: Handler) -> Handler:
        for name in names:
            if (domain, name) in HANDLERS:
                raise ValueError(f"ONNX operator {domain}.{name} is run by two functions")
            HANDLERS[domain, name] = function
        return function

    return register

"""Networks of our own writing, by name: plain torch modules with checked parameters.

This module knows names and parameters only; the family's module (and torch) is imported when a
network is built. Unless ``dtype`` says otherwise, a network is taken as quantized to int8:
activations and weights are int8, sums int32, embedding indices int32.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from arch.errors import InputError, Problem, unknown
from mapper.workload.parameters import Parameter, Value, dtype_parameter

if TYPE_CHECKING:
    import torch

Built = tuple["torch.nn.Module", tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooEntry:
    """A network: where it is defined and what may be chosen about it."""

    name: str
    description: str
    family: str
    function: str
    parameters: tuple[Parameter, ...]
    aliases: tuple[str, ...] = ()

    def builder(self, values: Mapping[str, Value]) -> Callable[[], Built]:
        """A function that makes the module and its example inputs on torch's current device."""
        # By name, so that listing and checking names does not import torch.
        family = importlib.import_module(f"{__name__}.{self.family}")
        arguments = {key: value for key, value in values.items() if key != "dtype"}
        return partial(getattr(family, self.function), **arguments)


_BATCH = Parameter(name="batch", help="inputs processed together", default=1, high=65536)
_CLASSES = Parameter(name="classes", help="outputs of the classifier", default=1000, high=10**6)


def _image(low: int) -> Parameter:
    return Parameter(
        name="image", help="height and width of the image", default=224, low=low, high=8192
    )


_CNN = (_BATCH, _image(32), _CLASSES, dtype_parameter("int8"))

_ENTRIES = (
    ZooEntry(
        name="resnet18",
        description="image classifier, 18 layers, 11.7 M parameters",
        family="resnet",
        function="resnet18",
        parameters=_CNN,
    ),
    ZooEntry(
        name="resnet50",
        description="image classifier, 50 layers, 25.6 M parameters",
        family="resnet",
        function="resnet50",
        parameters=_CNN,
    ),
)

_BY_NAME = {name: entry for entry in _ENTRIES for name in (entry.name, *entry.aliases)}


def names() -> tuple[str, ...]:
    """Names of all networks, without aliases."""
    return tuple(entry.name for entry in _ENTRIES)


def is_network(name: str) -> bool:
    return name in _BY_NAME


def describe(name: str) -> ZooEntry:
    """What the network is and which parameters it takes, with their defaults."""
    if name not in _BY_NAME:
        raise InputError(Problem(unknown("network", name, list(_BY_NAME))))
    return _BY_NAME[name]

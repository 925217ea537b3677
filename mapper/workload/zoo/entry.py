"""What the zoo says about a network without building it: its name and what may be chosen."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from mapper.workload.parameters import Parameter, Value, dtype_parameter

if TYPE_CHECKING:
    import torch

Built = tuple["torch.nn.Module", tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooEntry:
    """A network: where it is defined and what may be chosen about it.

    ``function`` of the module ``family`` gets ``fixed`` and the chosen parameters by name, and
    returns the torch module and its example inputs. ``group`` is what it is listed under.
    """

    name: str
    description: str
    family: str
    function: str
    parameters: tuple[Parameter, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict, hash=False)
    group: str = "image classifiers"

    def builder(self, values: Mapping[str, Value]) -> Callable[[], Built]:
        """A function that makes the module and its example inputs on torch's current device."""
        # By name, so that listing and checking names does not import torch.
        family = importlib.import_module(f"mapper.workload.zoo.{self.family}")
        arguments = {key: value for key, value in values.items() if key != "dtype"}
        return partial(getattr(family, self.function), **self.fixed, **arguments)


BATCH = Parameter(name="batch", help="inputs processed together", default=1, high=65536)
CLASSES = Parameter(name="classes", help="outputs of the classifier", default=1000, high=10**6)
DTYPE = dtype_parameter("int8")


def image(low: int = 32, multiple_of: int = 1, default: int = 224) -> Parameter:
    """Height and width of the (square) input image."""
    return Parameter(
        name="image",
        help="height and width of the image",
        default=default,
        low=low,
        high=8192,
        multiple_of=multiple_of,
    )

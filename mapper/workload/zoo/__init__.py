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
_DTYPE = dtype_parameter("int8")


def _image(low: int, multiple_of: int = 1) -> Parameter:
    return Parameter(
        name="image",
        help="height and width of the image",
        default=224,
        low=low,
        high=8192,
        multiple_of=multiple_of,
    )


def _seq(high: int) -> Parameter:
    return Parameter(name="seq", help="tokens of each input", default=512, high=high)


#: Positions that Llama 3 was trained for; its 3.1 update reaches 131072.
_LLAMA_POSITIONS = 131072

_ENTRIES = (
    ZooEntry(
        name="resnet18",
        description="image classifier, 18 layers, 11.7 M parameters",
        family="resnet",
        function="resnet18",
        parameters=(_BATCH, _image(32), _CLASSES, _DTYPE),
    ),
    ZooEntry(
        name="resnet50",
        description="image classifier, 50 layers, 25.6 M parameters",
        family="resnet",
        function="resnet50",
        parameters=(_BATCH, _image(32), _CLASSES, _DTYPE),
    ),
    ZooEntry(
        name="mobilenet_v2",
        description="image classifier of depthwise convolutions, 3.5 M parameters",
        family="mobilenet",
        function="mobilenet_v2",
        parameters=(_BATCH, _image(32), _CLASSES, _DTYPE),
        aliases=("mobilenetv2",),
    ),
    ZooEntry(
        name="vit_s",
        description="vision transformer ViT-S/16, 22 M parameters",
        family="vit",
        function="vit_s",
        parameters=(_BATCH, _image(16, multiple_of=16), _CLASSES, _DTYPE),
        aliases=("vit-s",),
    ),
    ZooEntry(
        name="gpt2",
        description="language model, 12 layers, 124 M parameters, logits at every position",
        family="gpt2",
        function="gpt2",
        parameters=(_BATCH, _seq(1024), _DTYPE),
    ),
    ZooEntry(
        name="llama3-8b",
        description="language model, 32 layers, 8.0 B parameters, prefill or one decoding step",
        family="llama",
        function="llama3_8b",
        parameters=(
            Parameter(
                name="phase",
                help="prefill: seq new tokens; decode: one token against ctx cached positions",
                default="prefill",
                choices=("prefill", "decode"),
            ),
            _BATCH,
            _seq(_LLAMA_POSITIONS),
            Parameter(
                name="ctx",
                help="positions in the caches while decoding, the new token's included",
                default=2048,
                high=_LLAMA_POSITIONS,
            ),
            _DTYPE,
        ),
        aliases=("llama3_8b",),
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

"""What a fused kernel is, and what its definitions share."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Least work of a call: every operand is read once, every result written once.

    A multiply-accumulate is two FLOPs; ``special`` are exponentials, roots and reciprocals of the
    special-function unit.
    """

    flops: int
    special: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """``reference`` computes in fp32 or better, ``triton`` is our kernel; of the same results.

    ``source`` names the publication that the definition and the counts follow. ``baseline``
    prepares a call of torch on the same inputs, ``baseline_name`` says which; it is torch's own of
    the same result where ``own`` is true, else what one would run without this kernel.
    """

    name: str
    what: str
    source: str
    inputs: Callable[[Sizes, torch.Generator], tuple[Any, ...]]
    reference: Callable[..., Any]
    triton: Callable[..., Any]
    counts: Callable[[Sizes], Counts]
    tolerance: float
    baseline: Callable[..., Callable[[], Any]]
    baseline_name: str
    own: bool = True


def relative_error(kernel: Fused, inputs: tuple[Any, ...]) -> float:
    """Distance of our results from the reference's, relative in the 2-norm; NaN if any element is.

    It is the worst of all results.
    """
    exact, found = (_as_tuple(f(*inputs)) for f in (kernel.reference, kernel.triton))
    errors = [
        (mine.double() - right.double()).norm() / right.double().norm()
        for right, mine in zip(exact, found, strict=True)
    ]
    import torch

    return float(torch.stack(errors).max())


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def ours(module: str, name: str) -> Callable[..., Any]:
    """Triton is imported at the first call: counts are needed where it does not exist."""

    def call(*inputs: Any) -> Any:
        return getattr(importlib.import_module(f"kernels_ref.triton_kernels.{module}"), name)(
            *inputs
        )

    return call


def direct(function: Callable[..., Any]) -> Callable[..., Callable[[], Any]]:
    """A baseline that needs no preparation."""
    return lambda *inputs: partial(function, *inputs)


def normal(shape: tuple[int, ...], generator: torch.Generator, scale: float = 1.0) -> Any:
    """Normal numbers in fp16."""
    import torch

    drawn = torch.randn(shape, generator=generator, device=generator.device)
    return (drawn * scale).to(torch.float16)


def integers(low: int, high: int, shape: tuple[int, ...], generator: torch.Generator) -> Any:
    import torch

    return torch.randint(low, high, shape, generator=generator, device=generator.device)

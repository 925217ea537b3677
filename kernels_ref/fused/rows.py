"""Norms of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernels_ref.fused.record import Counts, Fused, Sizes, direct, normal, ours

if TYPE_CHECKING:
    import torch


def _inputs(bias: bool) -> Callable[[Sizes, torch.Generator], tuple[Any, ...]]:
    def inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
        vectors = tuple(normal((p["C"],), generator) for _ in range(1 + bias))
        return (normal((p["R"], p["C"]), generator), *vectors)

    return inputs


def _layer_norm(x: Any, weight: Any, bias: Any) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.layer_norm(x, (x.shape[-1],), weight, bias)


def _rms_norm(x: Any, weight: Any) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.rms_norm(x, (x.shape[-1],), weight, 1e-5)


def _in_double(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda *inputs: function(*(x.double() for x in inputs))


def _counts(per_element: int, vectors: int) -> Callable[[Sizes], Counts]:
    def counts(p: Sizes) -> Counts:
        n = p["R"] * p["C"]
        return Counts(flops=per_element * n, special=p["R"], bytes=2 * (2 * n + vectors * p["C"]))

    return counts


ROWS = (
    Fused(
        name="layer_norm",
        what="rows to mean 0 and variance 1, times weights, plus biases",
        source="Layer normalization, arXiv:1607.06450",
        inputs=_inputs(bias=True),
        reference=_in_double(_layer_norm),
        triton=ours("norms", "layer_norm"),
        counts=_counts(8, 2),
        tolerance=2.0**-11,
        baseline=direct(_layer_norm),
        baseline_name="torch.nn.functional.layer_norm",
    ),
    Fused(
        name="rms_norm",
        what="rows to mean square 1, times weights",
        source="RMSNorm, arXiv:1910.07467",
        inputs=_inputs(bias=False),
        reference=_in_double(_rms_norm),
        triton=ours("norms", "rms_norm"),
        counts=_counts(4, 1),
        tolerance=2.0**-11,
        baseline=direct(_rms_norm),
        baseline_name="torch.nn.functional.rms_norm",
    ),
)

"""Norms of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernels_ref.fused.record import Counts, Fused, Sizes, direct, normal, ours
from kernels_ref.registry import KERNELS

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


def _softmax_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    return (normal((p["R"], p["C"]), generator),)


def _softmax(x: Any) -> torch.Tensor:
    import torch

    return torch.softmax(x, dim=-1)


def _softmax_triton(x: Any) -> Any:
    import torch

    out = torch.empty_like(x)
    KERNELS["row_softmax"].triton(x, out=out)
    return out


def _softmax_counts(p: Sizes) -> Counts:
    once = KERNELS["row_softmax"].counts({"rows": p["R"], "cols": p["C"]}, "fp16")
    moved = once.read_bytes + once.write_bytes
    return Counts(flops=once.flops, special=p["R"] * p["C"], bytes=moved)


def _reduce_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    parts = normal((p["ranks"], p["R"], p["C"]), generator)
    return parts, normal((p["R"], p["C"]), generator), normal((p["C"],), generator)


def _reduce_norm(parts: Any, residual: Any, weight: Any) -> torch.Tensor:
    import torch

    total = parts.sum(dim=0) + residual
    return torch.stack((_rms_norm(total, weight), total))


def _reduce_counts(p: Sizes) -> Counts:
    """A sum per rank and element, then the norm's four operations."""
    n = p["R"] * p["C"]
    return Counts(
        flops=(p["ranks"] + 4) * n,
        special=p["R"],
        bytes=2 * ((p["ranks"] + 3) * n + p["C"]),
    )


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
    Fused(
        name="row_softmax",
        what="exponentials of rows, divided by their sums",
        source="Online normalizer calculation for softmax, arXiv:1805.02867",
        inputs=_softmax_inputs,
        reference=_in_double(_softmax),
        triton=_softmax_triton,
        counts=_softmax_counts,
        tolerance=2.0**-11,
        baseline=direct(_softmax),
        baseline_name="torch.softmax",
    ),
    Fused(
        name="all_reduce_rms_norm",
        what="sum over ranks, plus residual, RMS norm, in one kernel that reads peers' memory",
        source="one-shot all-reduce with fused norm, as in TensorRT-LLM's documentation",
        inputs=_reduce_inputs,
        reference=_in_double(_reduce_norm),
        triton=ours("all_reduce", "reduce_norm_of_parts"),
        counts=_reduce_counts,
        tolerance=2.0**-11,
        baseline=direct(_reduce_norm),
        baseline_name="torch sums and rms_norm; ranks in one memory",
        own=False,
    ),
)

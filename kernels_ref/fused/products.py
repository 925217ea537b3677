"""Products of two operands of one narrow format."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kernels_ref.fused.record import Counts, Fused, Sizes, integers, normal, ours

if TYPE_CHECKING:
    import torch


def _int8_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    import torch

    return tuple(
        integers(-127, 128, (p[rows], p["K"]), generator).to(torch.int8) for rows in ("M", "N")
    )


def _fp8_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    import torch

    kind = torch.float8_e4m3fn
    return tuple(normal((p[rows], p["K"]), generator).to(kind) for rows in ("M", "N"))


def _reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double().t()


def _triton(result: str) -> Callable[..., Any]:
    def run(a: torch.Tensor, b: torch.Tensor) -> Any:
        import torch

        out = torch.empty((a.shape[0], b.shape[0]), dtype=getattr(torch, result), device=a.device)
        ours("gemm", "product")(a, b, out)
        return out

    return run


def _fp8_triton(a: torch.Tensor, b: torch.Tensor) -> Any:
    """Triton's interpreter has no bf16."""
    return _triton("float32" if a.device.type == "cpu" else "bfloat16")(a, b)


def _int8_baseline(a: torch.Tensor, b: torch.Tensor) -> Callable[[], Any]:
    import torch

    return partial(torch._int_mm, a, b.t())


def _fp8_baseline(a: torch.Tensor, b: torch.Tensor) -> Callable[[], Any]:
    import torch

    one = torch.ones((), device=a.device)
    return partial(
        torch._scaled_mm,
        a,
        b.t(),
        scale_a=one,
        scale_b=one,
        out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )


def _counts(result_bytes: int) -> Callable[[Sizes], Counts]:
    def counts(p: Sizes) -> Counts:
        m, n, k = p["M"], p["N"], p["K"]
        moved = m * k + n * k + m * n * result_bytes
        return Counts(flops=2 * m * n * k, special=0, bytes=moved)

    return counts


def _bf16_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    import torch

    return tuple(normal((p[rows], p["K"]), generator).to(torch.bfloat16) for rows in ("M", "N"))


def _bf16_baseline(a: torch.Tensor, b: torch.Tensor) -> Callable[[], Any]:
    import torch

    return partial(torch.matmul, a, b.t())


def _bf16_counts(p: Sizes) -> Counts:
    m, n, k = p["M"], p["N"], p["K"]
    return Counts(flops=2 * m * n * k, special=0, bytes=2 * (m * k + n * k + m * n))


PRODUCTS = (
    Fused(
        name="gemm_bf16",
        what="bf16 x bf16, sums fp32, result bf16",
        source="2 M N K operations",
        inputs=_bf16_inputs,
        reference=_reference,
        triton=_triton("bfloat16"),
        counts=_bf16_counts,
        tolerance=2.0**-8,
        baseline=_bf16_baseline,
        baseline_name="torch.matmul",
    ),
    Fused(
        name="gemm_int8",
        what="int8 x int8, sums and result int32",
        source="2 M N K operations",
        inputs=_int8_inputs,
        reference=_reference,
        triton=_triton("int32"),
        counts=_counts(4),
        tolerance=1e-12,
        baseline=_int8_baseline,
        baseline_name="torch._int_mm",
    ),
    Fused(
        name="gemm_fp8",
        what="e4m3 x e4m3, sums of the tensor core, result bf16",
        source="FP8 formats for deep learning, arXiv:2209.05433",
        inputs=_fp8_inputs,
        reference=_reference,
        triton=_fp8_triton,
        counts=_counts(2),
        tolerance=2.0**-7,
        baseline=_fp8_baseline,
        baseline_name="torch._scaled_mm, fast sums",
    ),
)

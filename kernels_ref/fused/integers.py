"""Products of integers that are not one plain product: mixed precision, and planes of bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernels_ref.fused.record import Counts, Fused, Sizes, integers, normal, ours
from kernels_ref.fused.weights import expanded

if TYPE_CHECKING:
    import torch

#: A column of activations with a value at least this large stays in fp16 (arXiv:2208.07339).
OUTLIER = 6.0
#: Bits in a word of a plane.
WORD = 32


def outlier_columns(x: torch.Tensor) -> torch.Tensor:
    """Columns that hold an outlier, in rising order."""
    import torch

    return torch.nonzero(x.abs().amax(dim=0) >= OUTLIER).flatten().to(torch.int32)


def _mixed_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    import torch

    x = normal((p["M"], p["K"]), generator).clamp(-OUTLIER + 0.5, OUTLIER - 0.5)
    chosen = torch.randperm(p["K"], generator=generator, device=generator.device)[: p["outliers"]]
    x[:, chosen] *= 8
    x[0, chosen] = 2 * OUTLIER
    weights = integers(-127, 128, (p["N"], p["K"]), generator).to(torch.int8)
    scales = normal((p["N"],), generator, 0.01).float()
    return x, weights, scales, outlier_columns(x)


def _mixed_reference(x: Any, weights: Any, scales: Any, columns: Any) -> torch.Tensor:
    """Rows quantized to int8 without the outliers, whose products stay in fp16."""
    import torch

    plain = x.float()
    plain[:, columns.long()] = 0
    row = plain.abs().amax(dim=1, keepdim=True) / 127
    # Triton rounds halves up, torch to even: halves are as good as never met.
    codes = torch.floor(plain / row + 0.5).double()
    outliers = x[:, columns.long()].double() @ weights[:, columns.long()].double().t()
    sums = codes @ weights.double().t() * row.double() + outliers
    return torch.mul(sums, scales.double()[None, :])


def _mixed_counts(p: Sizes) -> Counts:
    """int8 over all columns, fp16 over outliers; an absolute value, maximum, product, sum each."""
    m, n, k, outliers = p["M"], p["N"], p["K"], p["outliers"]
    return Counts(
        flops=2 * m * n * (k + outliers) + 4 * m * k,
        special=m,
        bytes=2 * m * k + n * k + 4 * n + 4 * outliers + 2 * m * n,
    )


def _planes(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """``[bits, rows, K / 32]`` of int32 words from codes below ``2**bits``."""
    import torch

    rows, k = codes.shape
    places = torch.arange(WORD, device=codes.device)
    planes = [
        (((codes.view(rows, k // WORD, WORD) >> bit) & 1) << places).sum(dim=2)
        for bit in range(bits)
    ]
    words = torch.stack(planes)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def _values(planes: torch.Tensor) -> torch.Tensor:
    """Odd integers: a set bit of plane ``i`` counts ``2**i``, another its negative."""
    import torch

    places = torch.arange(WORD, device=planes.device)
    bits = (planes.long()[..., None] >> places) & 1
    weights = 2 ** torch.arange(planes.shape[0], device=planes.device)
    signed = (2 * bits - 1).flatten(2).double()
    return (signed * weights[:, None, None]).sum(dim=0)


def _plane_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    return tuple(
        _planes(integers(0, 1 << p[bits], (p[rows], p["K"]), generator), p[bits])
        for rows, bits in (("M", "a_bits"), ("N", "b_bits"))
    )


def _plane_reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _values(a) @ _values(b).t()


def _plane_counts(p: Sizes) -> Counts:
    """A bit's exclusive or and its sum are two operations, for each pair of planes."""
    m, n, k, bits = p["M"], p["N"], p["K"], p["a_bits"] * p["b_bits"]
    moved = (p["a_bits"] * m + p["b_bits"] * n) * k // 8 + 4 * m * n
    return Counts(flops=2 * m * n * k * bits, special=0, bytes=moved)


def _plane_baseline(a: torch.Tensor, b: torch.Tensor) -> Any:
    import torch

    x = torch.randn((a.shape[1], a.shape[2] * WORD), device=a.device)
    return expanded(x, b[0])


INTEGERS = (
    Fused(
        name="gemm_mixed_int8",
        what="int8 but for columns with outliers, which stay fp16; rows are quantized here",
        source="LLM.int8(), arXiv:2208.07339",
        inputs=_mixed_inputs,
        reference=_mixed_reference,
        triton=ours("mixed", "mixed_gemm"),
        counts=_mixed_counts,
        tolerance=2.0**-10,
        baseline=expanded,
        baseline_name="torch.matmul in fp16",
        own=False,
    ),
    Fused(
        name="gemm_bit_planes",
        what="odd integers as planes of +-1 bits: exclusive or and population count, result int32",
        source="bipolar integers, arXiv:2409.17870",
        inputs=_plane_inputs,
        reference=_plane_reference,
        triton=ours("mixed", "plane_gemm"),
        counts=_plane_counts,
        tolerance=1e-12,
        baseline=_plane_baseline,
        baseline_name="torch.matmul in fp16",
        own=False,
    ),
)

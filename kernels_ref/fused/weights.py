"""Products with weights of few bits, whose activations stay fp16 or become int8."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kernels_ref.fused.record import Counts, Fused, Sizes, integers, normal, ours

if TYPE_CHECKING:
    import torch

#: Weights of a row that share a scale.
GROUP = 128


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """``codes[N, K]`` as bytes; a byte's values are ``GROUP / (8 / bits)`` apart along K."""
    import torch

    pieces = 8 // bits
    n, k = codes.shape
    parts = codes.view(n, k // GROUP, pieces, GROUP // pieces).to(torch.uint8)
    packed = sum(parts[:, :, i] << (bits * i) for i in range(pieces))
    assert isinstance(packed, torch.Tensor)
    return packed.reshape(n, k // pieces).contiguous()


def unpack(packed: torch.Tensor, bits: int) -> torch.Tensor:
    import torch

    pieces = 8 // bits
    n = packed.shape[0]
    rows = packed.view(n, -1, GROUP // pieces)
    parts = [(rows >> (bits * i)) & ((1 << bits) - 1) for i in range(pieces)]
    return torch.stack(parts, dim=2).reshape(n, -1).long()


def dequantized(
    packed: torch.Tensor, scales: torch.Tensor, table: torch.Tensor | None, bits: int
) -> torch.Tensor:
    codes = unpack(packed, bits)
    if table is not None:
        values = table.float().gather(1, codes)
    else:
        values = codes.float() - (8 if bits == 4 else 1)
    return values * scales.float().repeat_interleave(GROUP, dim=1)


def _packed_inputs(bits: int, table: bool) -> Callable[[Sizes, torch.Generator], tuple[Any, ...]]:
    def inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
        codes = integers(0, 3 if bits == 2 else 16, (p["N"], p["K"]), generator)
        scales = normal((p["N"], p["K"] // GROUP), generator, 0.05)
        tables = (normal((p["N"], 16), generator),) if table else ()
        x = normal((p["M"], p["K"]), generator)
        return (x, pack(codes, bits), scales, *tables)

    return inputs


def _packed_reference(bits: int) -> Callable[..., torch.Tensor]:
    def reference(
        x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, *table: torch.Tensor
    ) -> torch.Tensor:
        weights = dequantized(packed, scales, table[0] if table else None, bits)
        return x.double() @ weights.double().t()

    return reference


def _packed_triton(bits: int) -> Callable[..., Any]:
    def run(x: Any, packed: Any, scales: Any, *table: Any) -> Any:
        call = ours("quantized", "packed_gemm")
        return call(x, packed, scales, table[0] if table else None, bits)

    return run


def _packed_counts(bits: int, table: bool) -> Callable[[Sizes], Counts]:
    def counts(p: Sizes) -> Counts:
        m, n, k = p["M"], p["N"], p["K"]
        weights = n * k * bits // 8 + n * (k // GROUP) * 2 + (n * 16 * 2 if table else 0)
        return Counts(flops=2 * m * n * k, special=0, bytes=weights + 2 * (m * k + m * n))

    return counts


def expanded(x: torch.Tensor, packed: torch.Tensor, *rest: torch.Tensor) -> Callable[[], Any]:
    """torch's product with weights of 16 bits; what they are does not change its time."""
    import torch

    shape = (packed.shape[0], x.shape[1])
    weights = torch.randn(shape, device=x.device).to(torch.float16)
    return partial(torch.matmul, x.to(torch.float16), weights.t())


def _int4_baseline(
    x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor
) -> Callable[[], Any]:
    """torch's own product with int4 weights, which takes bf16."""
    import torch

    codes = unpack(packed, 4).to(torch.uint8)
    tiled = torch._convert_weight_to_int4pack(codes[:, ::2] << 4 | codes[:, 1::2], 8)
    pairs = torch.stack((scales, torch.zeros_like(scales)), dim=2).transpose(0, 1)
    pairs = pairs.to(torch.bfloat16).contiguous()
    return partial(torch._weight_int4pack_mm, x.to(torch.bfloat16), tiled, GROUP, pairs)


def _w4a8_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    import torch

    x = integers(-127, 128, (p["M"], p["K"]), generator).to(torch.int8)
    codes = integers(0, 16, (p["N"], p["K"]), generator)
    scales = tuple(normal((p[rows],), generator, 0.01).float() for rows in ("M", "N"))
    return (x, pack(codes, 4), *scales)


def _w4a8_reference(x: Any, packed: Any, x_scale: Any, w_scale: Any) -> torch.Tensor:
    codes = unpack(packed, 4)
    weights = codes - 16 * (codes >= 8)
    sums = x.double() @ weights.double().t()
    scales = x_scale.double()[:, None] * w_scale.double()[None, :]
    return sums * scales  # type: ignore[no-any-return]


def _w4a8_counts(p: Sizes) -> Counts:
    m, n, k = p["M"], p["N"], p["K"]
    moved = n * k // 2 + m * k + 4 * (m + n) + 2 * m * n
    return Counts(flops=2 * m * n * k, special=0, bytes=moved)


# A result is rounded once to fp16: half a unit in the last place is 2**-11. Weights of few bits are
# exact in fp16, an entry of a table too, and scales are applied to sums in fp32.
WEIGHTS = (
    *(
        Fused(
            name=name,
            what=what,
            source=source,
            inputs=_packed_inputs(bits, table),
            reference=_packed_reference(bits),
            triton=_packed_triton(bits),
            counts=_packed_counts(bits, table),
            tolerance=2.0**-10,
            baseline=_int4_baseline if own else expanded,
            baseline_name="torch._weight_int4pack_mm (bf16)" if own else "torch.matmul in fp16",
            own=own,
        )
        for name, bits, table, own, what, source in (
            (
                "gemm_w4a16", 4, False, True, "4-bit weights, a scale for 128, fp16 activations",
                "AWQ, arXiv:2306.00978",
            ),
            (
                "gemm_lut4", 4, True, False, "a table of 16 values per row, a scale for 128",
                "any4, arXiv:2507.04610",
            ),
            (
                "gemm_ternary", 2, False, False, "weights -1, 0, 1 in 2 bits, a scale for 128",
                "BitNet b1.58, arXiv:2402.17764",
            ),
        )
    ),
    Fused(
        name="gemm_w4a8",
        what="int4 weights as the upper half of int8, int8 activations, a scale per row and column",
        source="QQQ, arXiv:2406.09904; FastGEMM of OdysseyLLM, arXiv:2311.09550",
        inputs=_w4a8_inputs,
        reference=_w4a8_reference,
        triton=ours("quantized", "w4a8_gemm"),
        counts=_w4a8_counts,
        tolerance=2.0**-10,
        baseline=expanded,
        baseline_name="torch.matmul in fp16",
        own=False,
    ),
)  # fmt: skip

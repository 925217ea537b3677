"""Kernels of quantized weights, attention and norms: definitions, counts and our Triton versions.

Unlike those of ``registry``, they are not one loop nest, so they have no mapper operator.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Sizes = Mapping[str, int]
#: Values that share a scale.
GROUP = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Least work of a call; ``special`` are exponentials and roots."""

    flops: int
    special: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """``reference`` computes in fp32 or better; ``library`` is torch's own call, if it has one."""

    name: str
    inputs: Callable[[Sizes, torch.Generator], tuple[Any, ...]]
    reference: Callable[..., torch.Tensor]
    triton: Callable[..., torch.Tensor]
    library: Callable[..., torch.Tensor] | None
    counts: Callable[[Sizes], Counts]
    tolerance: float


def _ours(module: str, name: str) -> Callable[..., Any]:
    """Triton is imported at the first call: counts are needed where it does not exist."""

    def call(*inputs: Any) -> Any:
        return getattr(importlib.import_module(f"kernels_ref.triton_kernels.{module}"), name)(
            *inputs
        )

    return call


def _normal(shape: tuple[int, ...], generator: torch.Generator, scale: float = 1.0) -> Any:
    import torch

    drawn = torch.randn(shape, generator=generator, device=generator.device)
    return (drawn * scale).to(torch.float16)


# Products of narrow types


def _int8_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    import torch

    def draw(rows: int) -> torch.Tensor:
        return torch.randint(
            -127, 128, (rows, p["K"]), dtype=torch.int8, generator=generator,
            device=generator.device,
        )  # fmt: skip

    return draw(p["M"]), draw(p["N"])


def _fp8_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    import torch

    kind = torch.float8_e4m3fn
    return tuple(_normal((p[rows], p["K"]), generator).to(kind) for rows in ("M", "N"))


def _int8_reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double().t()


def _int8_triton(a: torch.Tensor, b: torch.Tensor) -> Any:
    import torch

    out = torch.empty((a.shape[0], b.shape[0]), dtype=torch.int32, device=a.device)
    return _ours("quantized", "narrow_gemm")(a, b, out)


def _fp8_triton(a: torch.Tensor, b: torch.Tensor) -> Any:
    import torch

    kind = torch.float32 if a.device.type == "cpu" else torch.bfloat16
    out = torch.empty((a.shape[0], b.shape[0]), dtype=kind, device=a.device)
    return _ours("quantized", "narrow_gemm")(a, b, out)


def _int8_library(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    import torch

    return torch._int_mm(a, b.t())


def _fp8_library(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    import torch

    one = torch.ones((), device=a.device)
    return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _narrow_counts(result_bytes: int) -> Callable[[Sizes], Counts]:
    def counts(p: Sizes) -> Counts:
        m, n, k = p["M"], p["N"], p["K"]
        moved = m * k + n * k + m * n * result_bytes
        return Counts(flops=2 * m * n * k, special=0, bytes=moved)

    return counts


# Weights of few bits


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """``codes[N, K]`` as bytes; a byte's values are ``GROUP / (8 / bits)`` apart along K."""
    import torch

    pieces = 8 // bits
    n, k = codes.shape
    parts = codes.view(n, k // GROUP, pieces, GROUP // pieces).to(torch.uint8)
    packed = sum(parts[:, :, i] << (bits * i) for i in range(pieces))
    assert isinstance(packed, torch.Tensor)
    return packed.reshape(n, k // pieces).contiguous()


def _codes(p: Sizes, generator: torch.Generator, high: int) -> Any:
    import torch

    return torch.randint(0, high, (p["N"], p["K"]), generator=generator, device=generator.device)


def _packed_inputs(bits: int, table: bool) -> Callable[[Sizes, torch.Generator], tuple[Any, ...]]:
    def inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
        codes = _codes(p, generator, 3 if bits == 2 else 16)
        scales = _normal((p["N"], p["K"] // GROUP), generator, 0.05)
        tables = (_normal((p["N"], 16), generator),) if table else ()
        x = _normal((p["M"], p["K"]), generator)
        return (x, pack(codes, bits), scales, *tables)

    return inputs


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


def _packed_reference(bits: int) -> Callable[..., torch.Tensor]:
    def reference(
        x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, *table: torch.Tensor
    ) -> torch.Tensor:
        weights = dequantized(packed, scales, table[0] if table else None, bits)
        return x.double() @ weights.double().t()

    return reference


def _packed_triton(bits: int) -> Callable[..., Any]:
    def run(x: Any, packed: Any, scales: Any, *table: Any) -> Any:
        call = _ours("quantized", "packed_gemm")
        return call(x, packed, scales, table[0] if table else None, bits)

    return run


def _packed_counts(bits: int, table: bool) -> Callable[[Sizes], Counts]:
    def counts(p: Sizes) -> Counts:
        m, n, k = p["M"], p["N"], p["K"]
        weights = n * k * bits // 8 + n * (k // GROUP) * 2 + (n * 16 * 2 if table else 0)
        return Counts(flops=2 * m * n * k, special=0, bytes=weights + 2 * (m * k + m * n))

    return counts


# Attention


def _attention_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    query = _normal((p["B"], p["H"], p.get("Sq", 1), p["D"]), generator)
    key, value = (_normal((p["B"], p["Hkv"], p["Skv"], p["D"]), generator) for _ in range(2))
    return (query, key, value) if p.get("Sq", 1) == 1 else (query, key, value, bool(p["causal"]))


def _attention_reference(q: Any, k: Any, v: Any, causal: bool = False) -> torch.Tensor:
    import torch

    group = q.shape[1] // k.shape[1]
    k, v = (x.float().repeat_interleave(group, dim=1) for x in (k, v))
    scores = q.float() @ k.transpose(2, 3) * q.shape[-1] ** -0.5
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return torch.matmul(scores.softmax(dim=-1), v)


def _attention_library(q: Any, k: Any, v: Any, causal: bool = False) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.scaled_dot_product_attention(
        q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
    )


def attention_counts(p: Sizes) -> Counts:
    b, h, sq, skv, d = p["B"], p["H"], p.get("Sq", 1), p["Skv"], p["D"]
    scores = b * h * (sq * (sq + 1) // 2 if p.get("causal") else sq * skv)
    moved = 2 * b * d * (2 * h * sq + 2 * p["Hkv"] * skv)
    return Counts(flops=4 * scores * d, special=scores, bytes=moved)


# Norms


def _norm_inputs(bias: bool) -> Callable[[Sizes, torch.Generator], tuple[Any, ...]]:
    def inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
        vectors = tuple(_normal((p["C"],), generator) for _ in range(1 + bias))
        return (_normal((p["R"], p["C"]), generator), *vectors)

    return inputs


def _layer_norm(x: Any, weight: Any, bias: Any) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.layer_norm(x, (x.shape[-1],), weight, bias)


def _rms_norm(x: Any, weight: Any) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.rms_norm(x, (x.shape[-1],), weight, 1e-5)


def _in_double(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda *inputs: function(*(x.double() for x in inputs))


def _norm_counts(per_element: int, vectors: int) -> Callable[[Sizes], Counts]:
    def counts(p: Sizes) -> Counts:
        n = p["R"] * p["C"]
        return Counts(flops=per_element * n, special=p["R"], bytes=2 * (2 * n + vectors * p["C"]))

    return counts


# Results are rounded to fp16 (half a unit in the last place is 2**-11) or bf16 (2**-8); weights of
# attention are rounded to fp16 before the second product, which doubles the error.
FUSED: dict[str, Fused] = {
    kernel.name: kernel
    for kernel in (
        Fused(
            name="gemm_int8",
            inputs=_int8_inputs,
            reference=_int8_reference,
            triton=_int8_triton,
            library=_int8_library,
            counts=_narrow_counts(4),
            tolerance=1e-12,
        ),
        Fused(
            name="gemm_fp8",
            inputs=_fp8_inputs,
            reference=_int8_reference,
            triton=_fp8_triton,
            library=_fp8_library,
            counts=_narrow_counts(2),
            tolerance=2.0**-7,
        ),
        *(
            Fused(
                name=name,
                inputs=_packed_inputs(bits, table),
                reference=_packed_reference(bits),
                triton=_packed_triton(bits),
                library=None,
                counts=_packed_counts(bits, table),
                tolerance=2.0**-10,
            )
            for name, bits, table in (
                ("gemm_w4a16", 4, False),
                ("gemm_lut4", 4, True),
                ("gemm_ternary", 2, False),
            )
        ),
        Fused(
            name="flash_attention",
            inputs=_attention_inputs,
            reference=_attention_reference,
            triton=_ours("attention", "flash_attention"),
            library=_attention_library,
            counts=attention_counts,
            tolerance=2.0**-9,
        ),
        Fused(
            name="decode_attention",
            inputs=_attention_inputs,
            reference=_attention_reference,
            triton=_ours("attention", "decode_attention"),
            library=_attention_library,
            counts=attention_counts,
            tolerance=2.0**-9,
        ),
        Fused(
            name="layer_norm",
            inputs=_norm_inputs(bias=True),
            reference=_in_double(_layer_norm),
            triton=_ours("norms", "layer_norm"),
            library=_layer_norm,
            counts=_norm_counts(8, 2),
            tolerance=2.0**-11,
        ),
        Fused(
            name="rms_norm",
            inputs=_norm_inputs(bias=False),
            reference=_in_double(_rms_norm),
            triton=_ours("norms", "rms_norm"),
            library=_rms_norm,
            counts=_norm_counts(4, 1),
            tolerance=2.0**-11,
        ),
    )
}

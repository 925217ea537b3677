"""Attention: for many queries, its gradients, within a window, and for one query at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kernels_ref.fused.record import Counts, Fused, Sizes, direct, normal, ours

if TYPE_CHECKING:
    import torch


def _queries(p: Sizes, generator: torch.Generator) -> Any:
    return normal((p["B"], p["H"], p.get("Sq", 1), p["D"]), generator)


def _keys_and_values(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    return tuple(normal((p["B"], p["Hkv"], p["Skv"], p["D"]), generator) for _ in range(2))


def _inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    return (_queries(p, generator), *_keys_and_values(p, generator), bool(p["causal"]))


def _decode_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    return (_queries(p, generator), *_keys_and_values(p, generator))


def _backward_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    q, k, v = _decode_inputs(p, generator)
    return q, k, v, _queries(p, generator), bool(p["causal"])


def _window_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    return (*_decode_inputs(p, generator), p["window"])


def _seen(queries: int, keys: int, window: int, device: Any) -> torch.Tensor:
    """Which keys a query sees: itself and the ``window - 1`` before it."""
    import torch

    back = torch.arange(queries, device=device)[:, None] - torch.arange(keys, device=device)
    return (back >= 0) & (back < window)


def _attend(q: Any, k: Any, v: Any, seen: torch.Tensor | None) -> torch.Tensor:
    """In the format of the inputs, which the caller widens."""
    import torch

    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5
    if seen is not None:
        scores = scores.masked_fill(~seen, float("-inf"))
    return torch.matmul(scores.softmax(dim=-1), v)


def _reference(q: Any, k: Any, v: Any, causal: bool = False) -> torch.Tensor:
    seen = _seen(q.shape[2], k.shape[2], q.shape[2], q.device) if causal else None
    return _attend(q.float(), k.float(), v.float(), seen)


def _window_reference(q: Any, k: Any, v: Any, window: int) -> torch.Tensor:
    seen = _seen(q.shape[2], k.shape[2], window, q.device)
    return _attend(q.float(), k.float(), v.float(), seen)


def _backward_reference(q: Any, k: Any, v: Any, grad: Any, causal: bool) -> tuple[Any, ...]:
    import torch

    inputs = q, k, v = tuple(x.float().requires_grad_() for x in (q, k, v))
    return torch.autograd.grad(_reference(q, k, v, causal), inputs, grad.float())


def _library(q: Any, k: Any, v: Any, causal: bool = False) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.scaled_dot_product_attention(
        q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
    )


def _window_baseline(q: Any, k: Any, v: Any, window: int) -> Callable[[], Any]:
    import torch.nn.functional as nn

    mask = _seen(q.shape[2], k.shape[2], window, q.device)
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    return partial(nn.scaled_dot_product_attention, q, k, v, attn_mask=mask)


def _backward_baseline(q: Any, k: Any, v: Any, grad: Any, causal: bool) -> Callable[[], Any]:
    """cuDNN's forward and backward, which torch chooses on this GPU; GQA by repeated keys."""
    import torch

    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    ops = torch.ops.aten

    def run() -> Any:
        forward = ops._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal)
        out, lse, starts_q, starts_k, most_q, most_k, seed, offset, _ = forward
        return ops._scaled_dot_product_cudnn_attention_backward(
            grad, q, k, v, out, lse, seed, offset, None, starts_q, starts_k, most_q, most_k, 0.0,
            causal,
        )  # fmt: skip

    return run


def counts(p: Sizes) -> Counts:
    """Two products per visible pair of a query and a key, one exponential."""
    b, h, sq, skv, d = p["B"], p["H"], p.get("Sq", 1), p["Skv"], p["D"]
    pairs = b * h * (_causal_pairs(sq, skv) if p.get("causal") else sq * skv)
    moved = 2 * b * d * (2 * h * sq + 2 * p["Hkv"] * skv)
    return Counts(flops=4 * pairs * d, special=pairs, bytes=moved)


def _causal_pairs(queries: int, keys: int) -> int:
    """Query ``i`` sees keys 0 to ``i``."""
    inside = min(queries, keys)
    return inside * (inside + 1) // 2 + (queries - inside) * keys


def _window_counts(p: Sizes) -> Counts:
    n, window = p["Sq"], min(p["window"], p["Sq"])
    pairs = p["B"] * p["H"] * (n * window - window * (window - 1) // 2)
    moved = counts({**p, "causal": 1}).bytes
    return Counts(flops=4 * pairs * p["D"], special=pairs, bytes=moved)


def _backward_counts(p: Sizes) -> Counts:
    """Two products forward; backward five, one of which makes the scores again."""
    once = counts(p)
    b, h, sq, skv, d = p["B"], p["H"], p["Sq"], p["Skv"], p["D"]
    gradient = 2 * b * h * sq * d
    read = 2 * b * d * (h * sq + 2 * p["Hkv"] * skv)
    return Counts(flops=once.flops * 7 // 2, special=2 * once.special, bytes=2 * read + gradient)


# Weights of attention are rounded to fp16 (half a unit in the last place is 2**-11) before the
# second product, which doubles the error of rounding the result; gradients pass two more roundings.
ATTENTION = (
    Fused(
        name="flash_attention",
        what="softmax(Q K^T / sqrt(D)) V without writing scores; causal or not, grouped queries",
        source="FlashAttention-2, arXiv:2307.08691; FlashAttention-3, arXiv:2407.08608",
        inputs=_inputs,
        reference=_reference,
        triton=ours("attention", "flash_attention"),
        counts=counts,
        tolerance=2.0**-9,
        baseline=direct(_library),
        baseline_name="scaled_dot_product_attention",
    ),
    Fused(
        name="flash_attention_backward",
        what="the same and the gradients of Q, K and V",
        source="FlashAttention-2, arXiv:2307.08691, algorithm 2",
        inputs=_backward_inputs,
        reference=_backward_reference,
        triton=ours("attention_backward", "flash_attention_backward"),
        counts=_backward_counts,
        tolerance=2.0**-8,
        baseline=_backward_baseline,
        baseline_name="cuDNN's attention and its gradient through torch",
    ),
    Fused(
        name="window_attention",
        what="a query sees itself and the window - 1 tokens before it",
        source="Longformer, arXiv:2004.05150; Mistral 7B, arXiv:2310.06825",
        inputs=_window_inputs,
        reference=_window_reference,
        triton=ours("attention", "window_attention"),
        counts=_window_counts,
        tolerance=2.0**-9,
        baseline=_window_baseline,
        baseline_name="scaled_dot_product_attention with a mask",
    ),
    Fused(
        name="decode_attention",
        what="one query per sequence, its keys split among programs, grouped queries",
        source="Flash-Decoding, pytorch.org/blog/flash-decoding",
        inputs=_decode_inputs,
        reference=_reference,
        triton=ours("attention", "decode_attention"),
        counts=counts,
        tolerance=2.0**-9,
        baseline=direct(_library),
        baseline_name="scaled_dot_product_attention",
    ),
)

"""Attention to a neighborhood on a grid, and to pairs of tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kernels_ref.fused.record import Counts, Fused, Sizes, normal, ours

if TYPE_CHECKING:
    import torch


def _grid_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    shape = (p["B"], p["H"], p["rows"], p["cols"], p["D"])
    window = (p["window_rows"], p["window_cols"])
    return (*(normal(shape, generator) for _ in range(3)), window)


def _near(extent: int, window: int, device: Any) -> torch.Tensor:
    """Along one axis: which tokens are in the window of which, that stays on the grid."""
    import torch

    at = torch.arange(extent, device=device)
    first = (at - window // 2).clamp(0, extent - window)
    return (at[None, :] >= first[:, None]) & (at[None, :] < first[:, None] + window)


def neighbors(rows: int, cols: int, window: tuple[int, int], device: Any) -> torch.Tensor:
    """``[rows * cols, rows * cols]``: who sees whom."""
    row, col = _near(rows, window[0], device), _near(cols, window[1], device)
    both = row[:, None, :, None] & col[None, :, None, :]
    return both.reshape(rows * cols, rows * cols)


def _grid_reference(q: Any, k: Any, v: Any, window: tuple[int, int]) -> torch.Tensor:
    import torch

    flat = [x.float().flatten(2, 3) for x in (q, k, v)]
    scores = flat[0] @ flat[1].transpose(2, 3) * q.shape[-1] ** -0.5
    seen = neighbors(q.shape[2], q.shape[3], window, q.device)
    weights = scores.masked_fill(~seen, float("-inf")).softmax(dim=-1)
    return torch.matmul(weights, flat[2]).reshape(q.shape)


def _grid_baseline(q: Any, k: Any, v: Any, window: tuple[int, int]) -> Callable[[], Any]:
    import torch.nn.functional as nn

    seen = neighbors(q.shape[2], q.shape[3], window, q.device)
    q, k, v = (x.flatten(2, 3) for x in (q, k, v))
    return partial(nn.scaled_dot_product_attention, q, k, v, attn_mask=seen)


def _grid_counts(p: Sizes) -> Counts:
    """Every token sees as many others; two products and an exponential for each."""
    tokens = p["B"] * p["H"] * p["rows"] * p["cols"]
    pairs = tokens * p["window_rows"] * p["window_cols"]
    return Counts(flops=4 * pairs * p["D"], special=pairs, bytes=8 * tokens * p["D"])


def _triple_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    shape = (p["B"], p["H"], p["N"], p["D"])
    q, k, v, k2, v2 = (normal(shape, generator) for _ in range(5))
    return q, (k, v), (k2, v2), (p["window"], p["window2"])


def _triple_reference(q: Any, first: Any, second: Any, windows: tuple[int, int]) -> torch.Tensor:
    """By heads and queries, since all triples at once would be too many."""
    import torch

    heads = [x.flatten(0, 1) for x in (q, *first, *second)]
    out = torch.empty_like(heads[0], dtype=torch.float32)
    for index, head in enumerate(zip(*heads, strict=True)):
        one, k, v, k2, v2 = (x.float() for x in head)
        for at in range(one.shape[0]):
            near, far = (slice(max(0, at - window + 1), at + 1) for window in windows)
            scores = (one[at] * k2[far]) @ k[near].t() * one.shape[1] ** -0.5
            weights = scores.flatten().softmax(dim=0).view(scores.shape)
            out[index, at] = ((weights @ v[near]) * v2[far]).sum(dim=0)
    return out.view(q.shape)


def _triples(length: int, windows: tuple[int, int]) -> int:
    """Pairs that all queries see together."""
    return sum(min(i + 1, windows[0]) * min(i + 1, windows[1]) for i in range(length))


def _triple_counts(p: Sizes) -> Counts:
    """Two products per triple, and two of vectors per query and second key."""
    heads, d = p["B"] * p["H"], p["D"]
    triples = heads * _triples(p["N"], (p["window"], p["window2"]))
    vectors = heads * _triples(p["N"], (1, p["window2"])) * d
    return Counts(
        flops=4 * triples * d + 3 * vectors, special=triples, bytes=12 * heads * p["N"] * d
    )


def _triple_baseline(q: Any, first: Any, second: Any, windows: Any) -> Callable[[], Any]:
    """Plain attention with as many pairs: causal, of the same tokens."""
    import torch.nn.functional as nn

    k, v = first
    return partial(nn.scaled_dot_product_attention, q, k, v, is_causal=True)


LOCAL = (
    Fused(
        name="neighborhood_attention",
        what="tokens on a grid see a window around them, which stays on the grid",
        source="Neighborhood attention, arXiv:2204.07143",
        inputs=_grid_inputs,
        reference=_grid_reference,
        triton=ours("attention_local", "neighborhood_attention"),
        counts=_grid_counts,
        tolerance=2.0**-9,
        baseline=_grid_baseline,
        baseline_name="scaled_dot_product_attention with a mask",
    ),
    Fused(
        name="simplicial_attention",
        what="scores of triples, sum_d q k k'; softmax over both windows; values v v'",
        source="Fast and simplex: 2-simplicial attention, arXiv:2507.02754",
        inputs=_triple_inputs,
        reference=_triple_reference,
        triton=ours("attention_local", "simplicial_attention"),
        counts=_triple_counts,
        # Products of two keys and of two values are rounded to fp16 too.
        tolerance=2.0**-8,
        baseline=_triple_baseline,
        baseline_name="causal scaled_dot_product_attention of the same tokens",
        own=False,
    ),
)

"""Llama 3 8B (Grattafiori et al., "The Llama 3 Herd of Models", 2024, table 3).

32 layers of 4096, 32 query and 8 key/value heads of 128, feed-forward 14336, vocabulary 128256:
8.03 B parameters. Logits are computed at the last position only, as serving systems do.

``prefill`` runs ``seq`` new tokens. ``decode`` runs one new token against key and value caches
of ``ctx`` positions, the last of which is the new token's: its key and value are written into
the caches, which are inputs of the network.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

VOCABULARY = 128256
WIDTH = 4096
LAYERS = 32
HEADS = 32
KEY_HEADS = 8
HEAD_SIZE = 128
FEED_FORWARD = 14336

#: Rotary base and norm epsilon of the released model; they do not change the cost.
ROTARY_BASE = 500_000.0
EPSILON = 1e-5


def rotary_tables(start: int, count: int) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines of positions from ``start``: both halves of a head side by side."""
    exponents = torch.arange(0, HEAD_SIZE, 2) / HEAD_SIZE
    angles = torch.outer(torch.arange(start, start + count), ROTARY_BASE**-exponents)
    cosines, sines = angles.cos(), angles.sin()
    return torch.cat((cosines, cosines), -1), torch.cat((-sines, sines), -1)


def rotate(x: Tensor, cosines: Tensor, signed_sines: Tensor) -> Tensor:
    """Rotary position embedding: each pair (i, i + half) turned by its position's angle."""
    low, high = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((high, low), dim=-1) * signed_sines


class Attention(nn.Module):
    """Grouped-query attention with rotary positions, over new tokens or over caches."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, HEADS * HEAD_SIZE, bias=False)
        self.k_proj = nn.Linear(WIDTH, KEY_HEADS * HEAD_SIZE, bias=False)
        self.v_proj = nn.Linear(WIDTH, KEY_HEADS * HEAD_SIZE, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD_SIZE, WIDTH, bias=False)

    def forward(
        self, x: Tensor, tables: tuple[Tensor, Tensor], cache: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        batch, seq, _ = x.shape
        query, key, value = (
            projection(x).view(batch, seq, -1, HEAD_SIZE).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = rotate(query, *tables), rotate(key, *tables)
        if cache is not None:
            key, value = (append(old, new) for old, new in zip(cache, (key, value), strict=True))
        y = scaled_dot_product_attention(
            query, key, value, is_causal=cache is None, enable_gqa=True
        )
        out: Tensor = self.o_proj(y.transpose(1, 2).reshape(batch, seq, HEADS * HEAD_SIZE))
        return out


def append(cache: Tensor, new: Tensor) -> Tensor:
    """The cache with its last positions overwritten."""
    end = cache.shape[2]
    return torch.slice_scatter(cache, new, dim=2, start=end - new.shape[2], end=end)


class FeedForward(nn.Module):
    """Gated: ``down(silu(gate(x)) * up(x))``."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, FEED_FORWARD, bias=False)
        self.up_proj = nn.Linear(WIDTH, FEED_FORWARD, bias=False)
        self.down_proj = nn.Linear(FEED_FORWARD, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Block(nn.Module):
    """Attention and feed-forward, each normalized before and added after."""

    def __init__(self) -> None:
        super().__init__()
        self.attn_norm = nn.RMSNorm(WIDTH, eps=EPSILON)
        self.attn = Attention()
        self.ffn_norm = nn.RMSNorm(WIDTH, eps=EPSILON)
        self.ffn = FeedForward()

    def forward(
        self, x: Tensor, tables: tuple[Tensor, Tensor], cache: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        x = x + self.attn(self.attn_norm(x), tables, cache)
        y: Tensor = x + self.ffn(self.ffn_norm(x))
        return y


class Llama3(nn.Module):
    """Embedding, blocks, a last norm and the output matrix."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.RMSNorm(WIDTH, eps=EPSILON)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor, caches: list[tuple[Tensor, Tensor]] | None = None) -> Tensor:
        seq = tokens.shape[1]
        context = seq if caches is None else caches[0][0].shape[2]
        tables = rotary_tables(context - seq, seq)
        x = self.embed(tokens)
        for number, layer in enumerate(self.layers):
            x = layer(x, tables, None if caches is None else caches[number])
        logits: Tensor = self.head(self.norm(x[:, -1:]))
        return logits


def llama3_8b(
    phase: str, batch: int, seq: int, ctx: int, layers: int = LAYERS
) -> tuple[nn.Module, tuple[Any, ...]]:
    if phase == "prefill":
        return Llama3(layers), (torch.zeros(batch, seq, dtype=torch.int32),)
    caches = [
        (
            torch.zeros(batch, KEY_HEADS, ctx, HEAD_SIZE),
            torch.zeros(batch, KEY_HEADS, ctx, HEAD_SIZE),
        )
        for _ in range(layers)
    ]
    return Llama3(layers), (torch.zeros(batch, 1, dtype=torch.int32), caches)

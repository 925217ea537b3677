"""GPT-2 small (Radford et al., 2019): 12 layers of 768, 12 heads, 1024 positions, 124 M parameters.

Logits are computed at every position. The output matrix is the token embedding (tied).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

VOCABULARY = 50257
POSITIONS = 1024
WIDTH = 768
HEADS = 12
LAYERS = 12


class Attention(nn.Module):
    """Causal self-attention with one matrix for query, key and value."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, seq, width = x.shape
        query, key, value = (
            part.view(batch, seq, HEADS, width // HEADS).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        y = scaled_dot_product_attention(query, key, value, is_causal=True)
        out: Tensor = self.proj(y.transpose(1, 2).reshape(batch, seq, width))
        return out


class Block(nn.Module):
    """Attention and a two-layer perceptron, each normalized before and added after."""

    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.act = nn.GELU(approximate="tanh")
        self.proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        y: Tensor = x + self.proj(self.act(self.fc(self.ln_2(x))))
        return y


class GPT2(nn.Module):
    """Token and position embeddings, blocks, a last norm and the tied output matrix."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, WIDTH)
        self.wpe = nn.Embedding(POSITIONS, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(layers))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens: Tensor) -> Tensor:
        # Positions count from 0, so looking them up is taking the first rows.
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        logits: Tensor = self.lm_head(self.ln_f(x))
        return logits


def gpt2(batch: int, seq: int, layers: int = LAYERS) -> tuple[nn.Module, tuple[Any, ...]]:
    return GPT2(layers), (torch.zeros(batch, seq, dtype=torch.int32),)

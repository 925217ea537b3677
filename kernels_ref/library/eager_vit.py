"""Vision transformers (Dosovitskiy et al., 2020; tiny and small sizes of Touvron et al., 2020).

Patches become tokens; a class token is added, whose last state is classified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Width, heads and layers; every head has 64 elements."""

    width: int
    heads: int
    layers: int


SIZES = {
    "ti": Size(width=192, heads=3, layers=12),
    "s": Size(width=384, heads=6, layers=12),
    "b": Size(width=768, heads=12, layers=12),
    "l": Size(width=1024, heads=16, layers=24),
}

#: The feed-forward layer is wider by this factor.
FEED_FORWARD = 4


class Attention(nn.Module):
    """Self-attention with one matrix for query, key and value."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.qkv = nn.Linear(size.width, 3 * size.width)
        self.proj = nn.Linear(size.width, size.width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        split = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        y = scaled_dot_product_attention(query, key, value)
        out: Tensor = self.proj(y.transpose(1, 2).reshape(batch, tokens, width))
        return out


class Block(nn.Module):
    """Attention and a two-layer perceptron, each normalized before and added after."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(size.width)
        self.attn = Attention(size)
        self.norm2 = nn.LayerNorm(size.width)
        self.fc1 = nn.Linear(size.width, FEED_FORWARD * size.width)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(FEED_FORWARD * size.width, size.width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        y: Tensor = x + self.fc2(self.act(self.fc1(self.norm2(x))))
        return y


class ViT(nn.Module):
    """Patch embedding, class token, position embedding, blocks and a classifier."""

    def __init__(self, size: Size, patch: int, image: int, classes: int) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, size.width, patch, patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, size.width))
        self.pos_embed = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, size.width))
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, classes)

    def forward(self, image: Tensor) -> Tensor:
        patches = self.patch_embed(image).flatten(2).transpose(1, 2)
        token = self.cls_token.expand(image.shape[0], -1, -1)
        x = torch.cat((token, patches), dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x)[:, 0])
        return logits


def vit(
    size: str, batch: int, image: int = 224, classes: int = 1000, patch: int = 16
) -> tuple[nn.Module, tuple[Any, ...]]:
    return ViT(SIZES[size], patch, image, classes), (torch.zeros(batch, 3, image, image),)

"""Vision transformer, small: ViT-S/16 (Dosovitskiy et al., 2020; sizes of Touvron et al., 2020).

12 layers of 384, 6 heads, patches of 16 x 16, a class token: 22 M parameters at 224 x 224.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

WIDTH = 384
HEADS = 6
LAYERS = 12
PATCH = 16


class Attention(nn.Module):
    """Self-attention with one matrix for query, key and value."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        heads = self.qkv(x).reshape(batch, tokens, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind(0)
        y = scaled_dot_product_attention(query, key, value)
        out: Tensor = self.proj(y.transpose(1, 2).reshape(batch, tokens, width))
        return out


class Block(nn.Module):
    """Attention and a two-layer perceptron, each normalized before and added after."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.fc1 = nn.Linear(WIDTH, 4 * WIDTH)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        y: Tensor = x + self.fc2(self.act(self.fc1(self.norm2(x))))
        return y


class ViT(nn.Module):
    """Patch embedding, class token, position embedding, blocks and a classifier."""

    def __init__(self, image: int, classes: int) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.pos_embed = nn.Parameter(torch.zeros(1, (image // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, image: Tensor) -> Tensor:
        patches = self.patch_embed(image).flatten(2).transpose(1, 2)
        token = self.cls_token.expand(image.shape[0], -1, -1)
        x = torch.cat((token, patches), dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x)[:, 0])
        return logits


def vit_s(batch: int, image: int, classes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    return ViT(image, classes), (torch.zeros(batch, 3, image, image),)

"""EfficientViT B0 to B3 (Cai et al., "EfficientViT: Multi-Scale Linear Attention", 2022).

Attention without a softmax: with ReLU in its place, the product of keys and values is formed
first, so the cost grows linearly with the number of pixels. Keys, queries and values exist at two
scales, the second one aggregated by 5x5 depthwise and grouped 1x1 convolutions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, relu

from mapper.workload.zoo.layers import HARD_SWISH, LINEAR, Activation, ConvNorm, images

EXPANSION = 4
AGGREGATED = 5

#: Keeps the division by the sum of weights defined.
EPSILON = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Channels and blocks of the stem and the four stages, channels of a head, classifier."""

    widths: tuple[int, int, int, int, int]
    depths: tuple[int, int, int, int, int]
    head: int
    classifier: tuple[int, int]


#: From the authors' release (mit-han-lab/efficientvit).
SIZES = {
    "b0": Size(
        widths=(8, 16, 32, 64, 128), depths=(1, 2, 2, 2, 2), head=16, classifier=(1024, 1280)
    ),
    "b1": Size(
        widths=(16, 32, 64, 128, 256), depths=(1, 2, 3, 3, 4), head=16, classifier=(1536, 1600)
    ),
    "b2": Size(
        widths=(24, 48, 96, 192, 384), depths=(1, 3, 4, 4, 6), head=32, classifier=(2304, 2560)
    ),
    "b3": Size(
        widths=(32, 64, 128, 256, 512), depths=(1, 4, 6, 6, 9), head=32, classifier=(2304, 2560)
    ),
}


class Convolution(nn.Module):
    """Like ``ConvNorm``, with a bias in place of the normalization."""

    def __init__(
        self, channels: int, width: int, kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, width, kernel, stride, kernel // 2, groups=groups)
        self.act = nn.Hardswish(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.act(self.conv(x))
        return y


class Residual(nn.Module):
    def __init__(self, main: nn.Module) -> None:
        super().__init__()
        self.main = main

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.main(x)
        return y


class LinearAttention(nn.Module):
    """Multi-scale attention with ReLU as its kernel."""

    def __init__(self, channels: int, head: int) -> None:
        super().__init__()
        total = channels // head * head
        self.head = head
        self.qkv = nn.Conv2d(channels, 3 * total, 1, bias=False)
        self.aggregate = nn.Sequential(
            nn.Conv2d(
                3 * total,
                3 * total,
                AGGREGATED,
                padding=AGGREGATED // 2,
                groups=3 * total,
                bias=False,
            ),
            nn.Conv2d(3 * total, 3 * total, 1, groups=3 * (total // head), bias=False),
        )
        self.proj = ConvNorm(2 * total, channels, 1, activation=LINEAR)

    def forward(self, x: Tensor) -> Tensor:
        batch, _, height, width = x.shape
        qkv = self.qkv(x)
        scales = torch.cat((qkv, self.aggregate(qkv)), dim=1)
        heads = scales.reshape(batch, -1, 3 * self.head, height * width).transpose(-1, -2)
        query, key, value = heads.chunk(3, dim=-1)
        # A column of ones makes the same products yield the sums of weights.
        products = relu(key).transpose(-1, -2) @ pad(value, (0, 1), value=1.0)
        weighted = relu(query) @ products
        result = weighted[..., :-1] / (weighted[..., -1:] + EPSILON)
        merged: Tensor = self.proj(result.transpose(-1, -2).reshape(batch, -1, height, width))
        return merged


def mobile(channels: int, width: int, stride: int) -> nn.Sequential:
    """An inverted residual with normalizations."""
    hidden = channels * EXPANSION
    return nn.Sequential(
        ConvNorm(channels, hidden, 1, activation=HARD_SWISH),
        ConvNorm(hidden, hidden, 3, stride, groups=hidden, activation=HARD_SWISH),
        ConvNorm(hidden, width, 1, activation=LINEAR),
    )


def mobile_biased(channels: int, width: int, stride: int) -> nn.Sequential:
    """An inverted residual that is normalized at its end only."""
    hidden = channels * EXPANSION
    return nn.Sequential(
        Convolution(channels, hidden),
        Convolution(hidden, hidden, 3, stride, groups=hidden),
        ConvNorm(hidden, width, 1, activation=LINEAR),
    )


def separable(channels: int, activation: Activation) -> nn.Sequential:
    return nn.Sequential(
        ConvNorm(channels, channels, 3, groups=channels, activation=activation),
        ConvNorm(channels, channels, 1, activation=LINEAR),
    )


def features(size: Size) -> nn.Sequential:
    """Stem, two convolutional stages, two stages with attention."""
    channels = size.widths[0]
    layers: list[nn.Module] = [ConvNorm(3, channels, 3, 2, activation=HARD_SWISH)]
    layers += [Residual(separable(channels, HARD_SWISH)) for _ in range(size.depths[0])]
    for width, depth in zip(size.widths[1:3], size.depths[1:3], strict=True):
        layers.append(mobile(channels, width, 2))
        layers += [Residual(mobile(width, width, 1)) for _ in range(depth - 1)]
        channels = width
    for width, depth in zip(size.widths[3:], size.depths[3:], strict=True):
        layers.append(mobile_biased(channels, width, 2))
        for _ in range(depth):
            layers += [
                Residual(LinearAttention(width, size.head)),
                Residual(mobile_biased(width, width, 1)),
            ]
        channels = width
    layers.append(ConvNorm(channels, size.classifier[0], 1, activation=HARD_SWISH))
    return nn.Sequential(*layers)


def efficientvit(
    size: str, batch: int, image: int, classes: int
) -> tuple[nn.Module, tuple[Any, ...]]:
    chosen = SIZES[size]
    wide, hidden = chosen.classifier
    network = nn.Sequential(
        features(chosen),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(wide, hidden, bias=False),
        nn.LayerNorm(hidden),
        nn.Hardswish(inplace=True),
        nn.Linear(hidden, classes),
    )
    return network, images(batch, image)

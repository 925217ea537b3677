"""VoVNet (Lee et al., "An Energy and GPU-Computation Efficient Backbone Network", 2019).

One-shot aggregation: the results of a chain of 3x3 convolutions are joined once, at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mapper.workload.zoo.layers import Classifier, ConvNorm, images

CHAIN = 5
STEM = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Table 1 of the paper, per stage: channels in the chain, channels after it, repetitions."""

    inner: tuple[int, ...]
    outer: tuple[int, ...]
    depths: tuple[int, ...]


_WIDE = (256, 512, 768, 1024)

SIZES = {
    "27-slim": Size(inner=(64, 80, 96, 112), outer=(128, 256, 384, 512), depths=(1, 1, 1, 1)),
    "39": Size(inner=(128, 160, 192, 224), outer=_WIDE, depths=(1, 1, 2, 2)),
    "57": Size(inner=(128, 160, 192, 224), outer=_WIDE, depths=(1, 1, 4, 3)),
}


class OneShotAggregation(nn.Module):
    """A chain of 3x3 convolutions; the input and all results joined by a 1x1 convolution."""

    def __init__(self, channels: int, inner: int, outer: int) -> None:
        super().__init__()
        self.chain = nn.ModuleList(
            ConvNorm(channels if number == 0 else inner, inner, 3) for number in range(CHAIN)
        )
        self.joined = ConvNorm(channels + CHAIN * inner, outer, 1)
        self.shortcut = channels == outer

    def forward(self, x: Tensor) -> Tensor:
        parts = [x]
        for layer in self.chain:
            parts.append(layer(parts[-1]))
        y: Tensor = self.joined(torch.cat(parts, 1))
        return x + y if self.shortcut else y


def vovnet(size: str, batch: int, image: int, classes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    chosen = SIZES[size]
    layers: list[nn.Module] = [
        ConvNorm(3, STEM // 2, 3, 2),
        ConvNorm(STEM // 2, STEM // 2, 3),
        ConvNorm(STEM // 2, STEM, 3, 2),
    ]
    channels = STEM
    for number, (inner, outer, depth) in enumerate(
        zip(chosen.inner, chosen.outer, chosen.depths, strict=True)
    ):
        if number > 0:
            layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        for _ in range(depth):
            layers.append(OneShotAggregation(channels, inner, outer))
            channels = outer
    return Classifier(nn.Sequential(*layers), nn.Linear(channels, classes)), images(batch, image)

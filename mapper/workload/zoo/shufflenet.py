"""ShuffleNetV2 (Ma et al., "Practical Guidelines for Efficient CNN Architecture Design", 2018)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mapper.workload.zoo.layers import LINEAR, Classifier, ConvNorm, depthwise, images

#: Table 5 of the paper: channels after each stage, and of the last 1x1 convolution.
CHANNELS = {
    "0.5": (48, 96, 192, 1024),
    "1.0": (116, 232, 464, 1024),
    "1.5": (176, 352, 704, 1024),
    "2.0": (244, 488, 976, 2048),
}
STEM = 24
REPETITIONS = (4, 8, 4)


def shuffled(left: Tensor, right: Tensor) -> Tensor:
    """Both halves joined, channels taken from them in turn."""
    batch, channels, height, width = left.shape
    pairs = torch.stack((left, right), dim=2)
    return pairs.view(batch, 2 * channels, height, width)


class Unit(nn.Module):
    """Half of the channels pass unchanged, the other half through three convolutions."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.branch = branch(half, half, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept, changed = x.chunk(2, dim=1)
        return shuffled(kept, self.branch(changed))


class Downsampling(nn.Module):
    """All channels through two branches, both of stride 2."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.shortcut = nn.Sequential(
            depthwise(channels, 3, 2, LINEAR), ConvNorm(channels, width // 2, 1)
        )
        self.branch = branch(channels, width // 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return shuffled(self.shortcut(x), self.branch(x))


def branch(channels: int, width: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        ConvNorm(channels, width, 1),
        depthwise(width, 3, stride, LINEAR),
        ConvNorm(width, width, 1),
    )


def shufflenet_v2(
    batch: int, image: int, width: str, classes: int
) -> tuple[nn.Module, tuple[Any, ...]]:
    *stages, head = CHANNELS[width]
    layers: list[nn.Module] = [ConvNorm(3, STEM, 3, 2), nn.MaxPool2d(3, 2, 1)]
    channels = STEM
    for wide, repetitions in zip(stages, REPETITIONS, strict=True):
        layers.append(Downsampling(channels, wide))
        layers += [Unit(wide) for _ in range(repetitions - 1)]
        channels = wide
    layers.append(ConvNorm(channels, head, 1))
    return Classifier(nn.Sequential(*layers), nn.Linear(head, classes)), images(batch, image)

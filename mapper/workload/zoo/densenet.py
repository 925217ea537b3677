"""DenseNet (Huang et al., "Densely Connected Convolutional Networks", 2016)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mapper.workload.zoo.layers import Classifier, images

#: Table 1 of the paper: layers of each dense block.
DEPTHS = {121: (6, 12, 24, 16), 169: (6, 12, 32, 32), 201: (6, 12, 48, 32)}
GROWTH = 32
STEM = 64

#: Channels after a layer's 1x1 convolution, in multiples of the growth.
BOTTLENECK = 4


class DenseLayer(nn.Module):
    """Norm and ReLU before each of a 1x1 and a 3x3 convolution, whose result is appended."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, BOTTLENECK * GROWTH, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(BOTTLENECK * GROWTH)
        self.conv2 = nn.Conv2d(BOTTLENECK * GROWTH, GROWTH, 3, padding=1, bias=False)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(self.relu(self.norm1(x)))
        y = self.conv2(self.relu(self.norm2(y)))
        return torch.cat((x, y), 1)


def transition(channels: int) -> nn.Sequential:
    """Half the channels, half the height and width."""
    return nn.Sequential(
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
        nn.Conv2d(channels, channels // 2, 1, bias=False),
        nn.AvgPool2d(2, 2),
    )


def densenet(depth: int, batch: int, image: int, classes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    layers: list[nn.Module] = [
        nn.Conv2d(3, STEM, 7, 2, 3, bias=False),
        nn.BatchNorm2d(STEM),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = STEM
    for number, repetitions in enumerate(DEPTHS[depth]):
        if number > 0:
            layers.append(transition(channels))
            channels //= 2
        for _ in range(repetitions):
            layers.append(DenseLayer(channels))
            channels += GROWTH
    layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
    return Classifier(nn.Sequential(*layers), nn.Linear(channels, classes)), images(batch, image)

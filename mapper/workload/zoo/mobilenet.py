"""MobileNetV2 (Sandler et al., "Inverted Residuals and Linear Bottlenecks", 2018), width 1.0."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

#: Table 2 of the paper: expansion factor, output channels, repetitions, stride of the first.
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
STEM_CHANNELS = 32
HEAD_CHANNELS = 1280


def conv_bn_relu6(
    channels: int, width: int, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, width, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """1x1 expansion, 3x3 depthwise, linear 1x1 projection; a shortcut where shapes agree."""

    def __init__(self, channels: int, width: int, expansion: int, stride: int) -> None:
        super().__init__()
        hidden = channels * expansion
        layers: list[nn.Module] = []
        if expansion > 1:
            layers.append(conv_bn_relu6(channels, hidden, 1))
        layers += [
            conv_bn_relu6(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, width, 1, bias=False),
            nn.BatchNorm2d(width),
        ]
        self.layers = nn.Sequential(*layers)
        self.shortcut = stride == 1 and channels == width

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.shortcut else y


class MobileNetV2(nn.Module):
    """Stem, inverted residuals, a 1x1 head, global pooling and a classifier."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        blocks: list[nn.Module] = [conv_bn_relu6(3, STEM_CHANNELS, 3, 2)]
        channels = STEM_CHANNELS
        for expansion, width, repetitions, stride in STAGES:
            for number in range(repetitions):
                first = stride if number == 0 else 1
                blocks.append(InvertedResidual(channels, width, expansion, first))
                channels = width
        blocks.append(conv_bn_relu6(channels, HEAD_CHANNELS, 1))
        self.features = nn.Sequential(*blocks)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(HEAD_CHANNELS, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.avgpool(self.features(x))
        y: Tensor = self.classifier(torch.flatten(x, 1))
        return y


def mobilenet_v2(batch: int, image: int, classes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    return MobileNetV2(classes), (torch.zeros(batch, 3, image, image),)

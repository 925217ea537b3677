"""The reference networks of MLPerf Tiny (Banbury et al., 2021; mlcommons/tiny), but for visual wake
words, which is MobileNetV1 at a quarter of its width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from mapper.workload.zoo.layers import ConvNorm, depthwise

#: Spectrogram frames by mel bins, and the filters of the keyword network.
KEYWORD_INPUT, KEYWORD_FILTERS, KEYWORD_BLOCKS = (49, 10), 64, 4
#: Features of five frames, and the widths of the auto-encoder's layers.
ANOMALY_INPUT = 640
ANOMALY_WIDTHS = (128, 128, 128, 128, 8, 128, 128, 128, 128, ANOMALY_INPUT)
#: Filters of the image classifier's stacks.
IMAGE_STACKS = (16, 32, 64)


class Keywords(nn.Sequential):
    """DS-CNN: a tall convolution, then depthwise separable ones."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        width = KEYWORD_FILTERS
        self.stem = nn.Conv2d(1, width, (10, 4), 2, (5, 1), bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.act = nn.ReLU()
        blocks = [
            nn.Sequential(depthwise(width, 3), ConvNorm(width, width, 1))
            for _ in range(KEYWORD_BLOCKS)
        ]
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(width, classes)


class Stack(nn.Module):
    """Two convolutions with a shortcut, which is a convolution where the size changes."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        stride = 1 if channels == width else 2
        self.first = ConvNorm(channels, width, 3, stride)
        self.second = ConvNorm(width, width, 3, activation=nn.Identity)
        self.short = nn.Identity() if stride == 1 else nn.Conv2d(channels, width, 1, stride)
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.act(self.second(self.first(x)) + self.short(x))
        return result


class Images(nn.Sequential):
    """ResNet-8 for images of 32 x 32."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = ConvNorm(3, IMAGE_STACKS[0], 3)
        widths = (IMAGE_STACKS[0], *IMAGE_STACKS)
        pairs = zip(widths, IMAGE_STACKS, strict=False)
        self.stacks = nn.Sequential(*(Stack(a, b) for a, b in pairs))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(IMAGE_STACKS[-1], classes)


class Anomalies(nn.Sequential):
    """A dense auto-encoder."""

    def __init__(self) -> None:
        super().__init__()
        before = ANOMALY_INPUT
        for number, width in enumerate(ANOMALY_WIDTHS):
            self.add_module(f"dense{number}", nn.Linear(before, width))
            if number < len(ANOMALY_WIDTHS) - 1:
                self.add_module(f"act{number}", nn.ReLU())
            before = width


def keywords(*, batch: int, classes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    return Keywords(classes), (torch.empty(batch, 1, *KEYWORD_INPUT),)


def tiny_images(*, batch: int, classes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    return Images(classes), (torch.empty(batch, 3, 32, 32),)


def anomalies(*, batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    return Anomalies(), (torch.empty(batch, ANOMALY_INPUT),)

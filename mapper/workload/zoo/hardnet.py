"""HarDNet (Chao et al., "HarDNet: A Low Memory Traffic Network", 2019).

In a block, layer ``l`` reads layers ``l - 1``, ``l - 2``, ``l - 4`` ... as far as these powers of
two divide ``l`` (harmonic connections), and is the wider the more powers do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mapper.workload.zoo.layers import LINEAR, RELU6, Classifier, ConvNorm, depthwise, images


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Section 3 of the paper and the authors' release (PingoLH/Pytorch-HarDNet).

    ``stages`` has per block: growth, layers, channels after it, whether the size is halved then.
    ``separable``: 1x1 and depthwise convolutions in place of 3x3 ones.
    """

    stem: tuple[int, int]
    widening: float
    stages: tuple[tuple[int, int, int, bool], ...]
    separable: bool = False


_STAGES_39 = ((16, 4, 96, True), (20, 16, 320, True), (64, 8, 640, True), (160, 4, 1024, False))
_STAGES_68 = (
    (14, 8, 128, True),
    (16, 16, 256, False),
    (20, 16, 320, True),
    (40, 16, 640, True),
    (160, 4, 1024, False),
)
_STAGES_85 = (
    (24, 8, 192, True),
    (24, 16, 256, False),
    (28, 16, 320, True),
    (36, 16, 480, False),
    (48, 16, 720, True),
    (256, 4, 1280, False),
)

SIZES = {
    "39ds": Size(stem=(24, 48), widening=1.6, stages=_STAGES_39, separable=True),
    "68ds": Size(stem=(32, 64), widening=1.7, stages=_STAGES_68, separable=True),
    "68": Size(stem=(32, 64), widening=1.7, stages=_STAGES_68),
    "85": Size(stem=(48, 96), widening=1.7, stages=_STAGES_85),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How many channels the layers of a block have; layer 0 is its input."""

    channels: int
    growth: int
    widening: float

    def width(self, layer: int) -> int:
        """Channels of a layer's result, rounded to an even number."""
        if layer == 0:
            return self.channels
        wide: float = self.growth
        for _ in linked(layer)[1:]:
            wide *= self.widening
        return int(int(wide + 1) / 2) * 2


def linked(layer: int) -> list[int]:
    """The layers that a layer reads, the nearest first."""
    return [layer - 2**power for power in range(layer.bit_length()) if layer % 2**power == 0]


class HarmonicBlock(nn.Module):
    """Harmonically connected layers; every second result and the last one leave the block."""

    def __init__(self, growth: Growth, depth: int, separable: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for layer in range(1, depth + 1):
            channels = sum(growth.width(source) for source in linked(layer))
            self.layers.append(unit(channels, growth.width(layer), separable))
        self.leaving = [layer for layer in range(1, depth + 1) if layer % 2 or layer == depth]
        self.width = sum(growth.width(layer) for layer in self.leaving)

    def forward(self, x: Tensor) -> Tensor:
        results = [x]
        for number, layer in enumerate(self.layers, start=1):
            sources = [results[source] for source in linked(number)]
            results.append(layer(torch.cat(sources, 1) if len(sources) > 1 else sources[0]))
        return torch.cat([results[layer] for layer in self.leaving], 1)


def unit(channels: int, width: int, separable: bool) -> nn.Module:
    if separable:
        return nn.Sequential(
            ConvNorm(channels, width, 1, activation=RELU6), depthwise(width, 3, 1, LINEAR)
        )
    return ConvNorm(channels, width, 3, activation=RELU6)


def hardnet(size: str, batch: int, image: int, classes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    chosen = SIZES[size]
    first, channels = chosen.stem
    second_kernel = 1 if chosen.separable else 3
    layers: list[nn.Module] = [
        ConvNorm(3, first, 3, 2, activation=RELU6),
        ConvNorm(first, channels, second_kernel, activation=RELU6),
        depthwise(channels, 3, 2, LINEAR) if chosen.separable else nn.MaxPool2d(3, 2, 1),
    ]
    for growth, depth, width, halved in chosen.stages:
        widths = Growth(channels=channels, growth=growth, widening=chosen.widening)
        block = HarmonicBlock(widths, depth, chosen.separable)
        layers += [block, ConvNorm(block.width, width, 1, activation=RELU6)]
        channels = width
        if halved:
            layers.append(
                depthwise(channels, 3, 2, LINEAR) if chosen.separable else nn.MaxPool2d(2, 2)
            )
    return Classifier(nn.Sequential(*layers), nn.Linear(channels, classes)), images(batch, image)

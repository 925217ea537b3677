"""MCUNet (Lin et al., "MCUNet: Tiny Deep Learning on IoT Devices", 2020).

Searched for microcontrollers: five networks for ImageNet (``in0`` to ``in4``) and three for visual
wake words (``vww0`` to ``vww2``). Blocks as in the configurations that the authors publish with
their model zoo (mit-han-lab/mcunet).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from mapper.workload.zoo.layers import (
    RELU6,
    Bottleneck,
    Classifier,
    ConvNorm,
    InvertedResidual,
    images,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiny:
    """Channels of the 3x3 stem, then per block: expanded and output channels, kernel, stride."""

    stem: int
    blocks: tuple[tuple[int, int, int, int], ...]


VARIANTS = {
    "in0": Tiny(
        stem=24,
        blocks=(
            (24, 16, 3, 1),
            (64, 16, 5, 2),
            (48, 16, 3, 1),
            (64, 16, 3, 1),
            (80, 24, 7, 2),
            (96, 24, 5, 1),
            (120, 24, 5, 1),
            (120, 48, 7, 2),
            (192, 48, 5, 1),
            (240, 56, 3, 1),
            (224, 56, 5, 1),
            (280, 56, 3, 1),
            (336, 112, 3, 2),
            (448, 112, 5, 1),
            (672, 192, 3, 1),
        ),
    ),
    "in1": Tiny(
        stem=16,
        blocks=(
            (16, 8, 3, 1),
            (32, 16, 3, 2),
            (48, 16, 3, 1),
            (48, 24, 7, 2),
            (120, 24, 3, 1),
            (120, 40, 3, 2),
            (160, 40, 7, 1),
            (160, 48, 5, 1),
            (144, 48, 3, 1),
            (192, 48, 3, 1),
            (240, 96, 7, 2),
            (384, 96, 5, 1),
            (384, 96, 5, 1),
            (576, 160, 3, 1),
        ),
    ),
    "in2": Tiny(
        stem=16,
        blocks=(
            (16, 8, 3, 1),
            (24, 16, 5, 2),
            (96, 16, 7, 1),
            (80, 16, 3, 1),
            (80, 16, 5, 1),
            (80, 24, 3, 2),
            (144, 24, 7, 1),
            (144, 24, 5, 1),
            (96, 40, 7, 2),
            (200, 40, 5, 1),
            (200, 48, 3, 1),
            (240, 48, 5, 1),
            (192, 48, 3, 1),
            (288, 96, 5, 2),
            (384, 96, 5, 1),
            (288, 96, 5, 1),
            (384, 96, 3, 1),
            (480, 160, 5, 1),
        ),
    ),
    "in3": Tiny(
        stem=16,
        blocks=(
            (16, 8, 3, 1),
            (24, 16, 7, 2),
            (80, 16, 3, 1),
            (80, 16, 7, 1),
            (64, 16, 5, 1),
            (80, 24, 5, 2),
            (120, 24, 5, 1),
            (120, 24, 5, 1),
            (120, 40, 3, 2),
            (240, 40, 7, 1),
            (160, 40, 5, 1),
            (200, 48, 5, 1),
            (240, 48, 7, 1),
            (240, 48, 3, 1),
            (288, 96, 3, 2),
            (480, 96, 7, 1),
            (384, 96, 3, 1),
            (480, 160, 7, 1),
        ),
    ),
    "in4": Tiny(
        stem=32,
        blocks=(
            (32, 16, 3, 1),
            (48, 24, 7, 2),
            (120, 24, 3, 1),
            (96, 24, 5, 1),
            (120, 40, 7, 2),
            (160, 40, 3, 1),
            (160, 40, 7, 1),
            (120, 80, 7, 2),
            (240, 80, 3, 1),
            (240, 80, 7, 1),
            (320, 96, 3, 1),
            (288, 96, 5, 1),
            (288, 96, 5, 1),
            (384, 192, 7, 2),
            (576, 192, 7, 1),
            (576, 192, 5, 1),
            (768, 320, 5, 1),
        ),
    ),
    "vww0": Tiny(
        stem=16,
        blocks=(
            (16, 8, 3, 1),
            (48, 16, 5, 2),
            (64, 16, 3, 1),
            (80, 24, 3, 2),
            (96, 24, 3, 1),
            (96, 24, 3, 1),
            (120, 40, 3, 2),
            (160, 40, 3, 1),
            (120, 40, 7, 1),
            (120, 48, 3, 1),
            (192, 48, 3, 1),
            (240, 96, 7, 2),
            (480, 96, 5, 1),
            (384, 160, 7, 1),
        ),
    ),
    "vww1": Tiny(
        stem=16,
        blocks=(
            (16, 8, 3, 1),
            (48, 16, 3, 2),
            (48, 16, 3, 1),
            (48, 16, 3, 1),
            (48, 24, 7, 2),
            (144, 24, 3, 1),
            (120, 24, 5, 1),
            (144, 40, 7, 2),
            (240, 40, 7, 1),
            (240, 48, 3, 1),
            (192, 48, 3, 1),
            (240, 96, 5, 2),
            (480, 96, 3, 1),
            (384, 96, 3, 1),
            (288, 160, 7, 1),
        ),
    ),
    "vww2": Tiny(
        stem=16,
        blocks=(
            (16, 8, 3, 1),
            (24, 16, 3, 2),
            (80, 16, 3, 1),
            (96, 16, 5, 1),
            (48, 16, 3, 1),
            (80, 24, 7, 2),
            (96, 24, 5, 1),
            (96, 24, 3, 1),
            (144, 24, 7, 1),
            (144, 40, 3, 2),
            (240, 40, 7, 1),
            (160, 40, 5, 1),
            (200, 40, 3, 1),
            (200, 48, 5, 1),
            (144, 48, 5, 1),
            (192, 48, 3, 1),
            (144, 48, 5, 1),
            (192, 96, 3, 2),
            (480, 96, 5, 1),
            (384, 96, 5, 1),
            (384, 96, 3, 1),
            (480, 160, 3, 1),
        ),
    ),
}


def mcunet(variant: str, batch: int, image: int, classes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    network = VARIANTS[variant]
    channels = network.stem
    layers: list[nn.Module] = [ConvNorm(3, channels, 3, 2, activation=RELU6)]
    for hidden, width, kernel, stride in network.blocks:
        shape = Bottleneck(
            channels=channels,
            hidden=hidden,
            width=width,
            kernel=kernel,
            stride=stride,
            activation=RELU6,
        )
        layers.append(InvertedResidual(shape))
        channels = width
    module = Classifier(nn.Sequential(*layers), nn.Linear(channels, classes))
    return module, images(batch, image)

"""MobileOne S0 to S4 (Vasu et al., "An Improved One Millisecond Mobile Backbone", 2022).

As deployed: the branches that training uses are merged into one convolution with a bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from mapper.workload.zoo.layers import Classifier, Gate, SqueezeExcite, images

#: Blocks of each stage and their output channels before widening.
DEPTHS = (2, 8, 10, 1)
CHANNELS = (64, 128, 256, 512)

GATE_RATIO = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Table 2 of the paper: widening of each stage, and how many of its last blocks are gated."""

    widths: tuple[float, float, float, float]
    gated: tuple[int, int, int, int] = (0, 0, 0, 0)


SIZES = {
    "s0": Size(widths=(0.75, 1.0, 1.0, 2.0)),
    "s1": Size(widths=(1.5, 1.5, 2.0, 2.5)),
    "s2": Size(widths=(1.5, 2.0, 2.5, 4.0)),
    "s3": Size(widths=(2.0, 2.5, 3.0, 4.0)),
    "s4": Size(widths=(3.0, 3.5, 3.5, 4.0), gated=(0, 0, 5, 1)),
}


def mobileone(size: str, batch: int, image: int, classes: int) -> tuple[nn.Module, tuple[Any, ...]]:
    chosen = SIZES[size]
    channels = min(CHANNELS[0], int(CHANNELS[0] * chosen.widths[0]))
    layers = [merged(3, channels, 3, 2)]
    for depth, full, wider, gated in zip(
        DEPTHS, CHANNELS, chosen.widths, chosen.gated, strict=True
    ):
        width = int(full * wider)
        for number in range(depth):
            stride = 2 if number == 0 else 1
            has_gate = number >= depth - gated
            layers += [
                merged(channels, channels, 3, stride, groups=channels, gated=has_gate),
                merged(channels, width, 1, gated=has_gate),
            ]
            channels = width
    return Classifier(nn.Sequential(*layers), nn.Linear(channels, classes)), images(batch, image)


def merged(
    channels: int,
    width: int,
    kernel: int,
    stride: int = 1,
    *,
    groups: int = 1,
    gated: bool = False,
) -> nn.Sequential:
    """A block after its branches have been merged."""
    layers: list[nn.Module] = [
        nn.Conv2d(channels, width, kernel, stride, kernel // 2, groups=groups)
    ]
    if gated:
        layers.append(SqueezeExcite(width, Gate(width=width // GATE_RATIO)))
    return nn.Sequential(*layers, nn.ReLU(inplace=True))

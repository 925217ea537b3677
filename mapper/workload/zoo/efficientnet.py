"""EfficientNet B0 to B7 (Tan and Le, "EfficientNet: Rethinking Model Scaling", 2019).

Inverted residuals with gates, widened and deepened together; each size has a resolution of its
own. Convolutions are padded evenly on both sides, as in the torch implementations.
"""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from mapper.workload.zoo.layers import (
    SWISH,
    Bottleneck,
    Classifier,
    ConvNorm,
    Gate,
    InvertedResidual,
    images,
    rounded,
)

#: Table 1 (B0): expansion factor, kernel, stride of the first, output channels, repetitions.
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
STEM = 32
HEAD = 1280

#: The gate's hidden layer, as a part of the block's input channels.
GATE_RATIO = 4

#: Factors of width and depth of B0 to B7, from the authors' implementation.
SCALES = (
    (1.0, 1.0),
    (1.0, 1.1),
    (1.1, 1.2),
    (1.2, 1.4),
    (1.4, 1.8),
    (1.6, 2.2),
    (1.8, 2.6),
    (2.0, 3.1),
)


def efficientnet(
    size: int, batch: int, image: int, classes: int
) -> tuple[nn.Module, tuple[Any, ...]]:
    wider, deeper = SCALES[size]
    channels = rounded(STEM * wider)
    layers: list[nn.Module] = [ConvNorm(3, channels, 3, 2, activation=SWISH)]
    for expansion, kernel, stride, full, repetitions in STAGES:
        width = rounded(full * wider)
        for number in range(math.ceil(repetitions * deeper)):
            shape = Bottleneck(
                channels=channels,
                hidden=channels * expansion,
                width=width,
                kernel=kernel,
                stride=stride if number == 0 else 1,
                activation=SWISH,
                gate=Gate(width=max(1, channels // GATE_RATIO), activation=SWISH),
            )
            layers.append(InvertedResidual(shape))
            channels = width
    head = rounded(HEAD * wider)
    layers.append(ConvNorm(channels, head, 1, activation=SWISH))
    network = Classifier(nn.Sequential(*layers), nn.Linear(head, classes))
    return network, images(batch, image)

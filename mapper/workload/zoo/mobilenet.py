"""MobileNets: depthwise convolutions, then inverted residuals, then searched ones.

V1 (Howard et al., "MobileNets", 2017), V2 (Sandler et al., "Inverted Residuals and Linear
Bottlenecks", 2018), V3 (Howard et al., "Searching for MobileNetV3", 2019). ``width`` multiplies
all channel counts; V2 and V3 round them to multiples of 8.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from mapper.workload.zoo.layers import (
    HARD_SWISH,
    RELU,
    RELU6,
    Activation,
    Bottleneck,
    Classifier,
    ConvNorm,
    Gate,
    InvertedResidual,
    depthwise,
    images,
    rounded,
)

#: V1, table 1: output channels and stride of each depthwise separable convolution.
V1_LAYERS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *[(512, 1)] * 5,
    (1024, 2),
    (1024, 1),
)

#: V2, table 2: expansion factor, output channels, repetitions, stride of the first.
V2_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
V2_HEAD = 1280

#: V3, tables 1 and 2: kernel, expanded channels, output channels, gated, activation, stride.
V3_LARGE = (
    (3, 16, 16, False, RELU, 1),
    (3, 64, 24, False, RELU, 2),
    (3, 72, 24, False, RELU, 1),
    (5, 72, 40, True, RELU, 2),
    (5, 120, 40, True, RELU, 1),
    (5, 120, 40, True, RELU, 1),
    (3, 240, 80, False, HARD_SWISH, 2),
    (3, 200, 80, False, HARD_SWISH, 1),
    (3, 184, 80, False, HARD_SWISH, 1),
    (3, 184, 80, False, HARD_SWISH, 1),
    (3, 480, 112, True, HARD_SWISH, 1),
    (3, 672, 112, True, HARD_SWISH, 1),
    (5, 672, 160, True, HARD_SWISH, 2),
    (5, 960, 160, True, HARD_SWISH, 1),
    (5, 960, 160, True, HARD_SWISH, 1),
)
V3_SMALL = (
    (3, 16, 16, True, RELU, 2),
    (3, 72, 24, False, RELU, 2),
    (3, 88, 24, False, RELU, 1),
    (5, 96, 40, True, HARD_SWISH, 2),
    (5, 240, 40, True, HARD_SWISH, 1),
    (5, 240, 40, True, HARD_SWISH, 1),
    (5, 120, 48, True, HARD_SWISH, 1),
    (5, 144, 48, True, HARD_SWISH, 1),
    (5, 288, 96, True, HARD_SWISH, 2),
    (5, 576, 96, True, HARD_SWISH, 1),
    (5, 576, 96, True, HARD_SWISH, 1),
)
#: V3: variant -> blocks and the width of the classifier's hidden layer.
V3 = {"large": (V3_LARGE, 1280), "small": (V3_SMALL, 1024)}
V3_STEM = 16
V3_GATE_RATIO = 4

STEM = 32

Network = tuple[nn.Module, tuple[Any, ...]]


def mobilenet_v1(batch: int, image: int, width: str, classes: int) -> Network:
    factor = float(width)
    channels = int(STEM * factor)
    layers: list[nn.Module] = [ConvNorm(3, channels, 3, 2)]
    for full, stride in V1_LAYERS:
        narrow = int(full * factor)
        layers += [depthwise(channels, 3, stride), ConvNorm(channels, narrow, 1)]
        channels = narrow
    network = Classifier(nn.Sequential(*layers), nn.Linear(channels, classes))
    return network, images(batch, image)


def mobilenet_v2(batch: int, image: int, width: str, classes: int) -> Network:
    factor = float(width)
    channels = rounded(STEM * factor)
    layers: list[nn.Module] = [ConvNorm(3, channels, 3, 2, activation=RELU6)]
    for expansion, full, repetitions, stride in V2_STAGES:
        narrow = rounded(full * factor)
        for number in range(repetitions):
            shape = Bottleneck(
                channels=channels,
                hidden=channels * expansion,
                width=narrow,
                kernel=3,
                stride=stride if number == 0 else 1,
                activation=RELU6,
            )
            layers.append(InvertedResidual(shape))
            channels = narrow
    head = rounded(V2_HEAD * max(1.0, factor))  # the head is never narrowed
    layers.append(ConvNorm(channels, head, 1, activation=RELU6))
    network = Classifier(nn.Sequential(*layers), nn.Linear(head, classes))
    return network, images(batch, image)


def mobilenet_v3(variant: str, batch: int, image: int, width: str, classes: int) -> Network:
    blocks, hidden_classifier = V3[variant]
    factor = float(width)
    channels = rounded(V3_STEM * factor)
    layers: list[nn.Module] = [ConvNorm(3, channels, 3, 2, activation=HARD_SWISH)]
    for block in blocks:
        shape = _v3_shape(channels, factor, block)
        layers.append(InvertedResidual(shape))
        channels = shape.width
    head = 6 * channels
    layers.append(ConvNorm(channels, head, 1, activation=HARD_SWISH))
    hidden = rounded(hidden_classifier * factor)
    classifier = nn.Sequential(
        nn.Linear(head, hidden), nn.Hardswish(inplace=True), nn.Linear(hidden, classes)
    )
    return Classifier(nn.Sequential(*layers), classifier), images(batch, image)


def _v3_shape(
    channels: int, factor: float, block: tuple[int, int, int, bool, Activation, int]
) -> Bottleneck:
    kernel, expanded, width, gated, activation, stride = block
    hidden = rounded(expanded * factor)
    gate = Gate(width=rounded(hidden / V3_GATE_RATIO), gate=nn.Hardsigmoid)
    return Bottleneck(
        channels=channels,
        hidden=hidden,
        width=rounded(width * factor),
        kernel=kernel,
        stride=stride,
        activation=activation,
        gate=gate if gated else None,
    )

"""Parts that many convolutional networks share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

Activation = Callable[[], nn.Module]

RELU: Activation = partial(nn.ReLU, inplace=True)
RELU6: Activation = partial(nn.ReLU6, inplace=True)
SWISH: Activation = partial(nn.SiLU, inplace=True)
HARD_SWISH: Activation = partial(nn.Hardswish, inplace=True)
LINEAR: Activation = nn.Identity


class ConvNorm(nn.Sequential):
    """Convolution that keeps the size (up to its stride), batch normalization, activation."""

    def __init__(
        self,
        channels: int,
        width: int,
        kernel: int,
        stride: int = 1,
        *,
        groups: int = 1,
        activation: Activation = RELU,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            channels, width, kernel, stride, kernel // 2, groups=groups, bias=False
        )
        self.norm = nn.BatchNorm2d(width)
        self.act = activation()


def depthwise(
    channels: int, kernel: int, stride: int = 1, activation: Activation = RELU
) -> ConvNorm:
    """One filter per channel."""
    return ConvNorm(channels, channels, kernel, stride, groups=channels, activation=activation)


def rounded(channels: float, multiple: int = 8) -> int:
    """The nearest multiple, but never less than nine tenths of ``channels``.

    The rule of the MobileNets' reference implementation, which EfficientNet took over.
    """
    nearest = max(multiple, int(channels + multiple / 2) // multiple * multiple)
    return nearest if nearest >= 0.9 * channels else nearest + multiple


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Squeeze and excitation (Hu et al., 2018): how wide, and through which functions."""

    width: int
    activation: Activation = RELU
    gate: Callable[[], nn.Module] = field(default=nn.Sigmoid)


class SqueezeExcite(nn.Module):
    """Channels weighted by what a small perceptron makes of their means."""

    def __init__(self, channels: int, gate: Gate) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.reduce = nn.Conv2d(channels, gate.width, 1)
        self.act = gate.activation()
        self.expand = nn.Conv2d(gate.width, channels, 1)
        self.gate = gate.gate()

    def forward(self, x: Tensor) -> Tensor:
        weights: Tensor = self.gate(self.expand(self.act(self.reduce(self.pool(x)))))
        return x * weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """An inverted residual: ``channels`` expanded to ``hidden``, filtered, projected to ``width``.

    Without ``expands`` the first 1x1 convolution is left out (``hidden`` equals ``channels``).
    """

    channels: int
    hidden: int
    width: int
    kernel: int
    stride: int
    activation: Activation
    gate: Gate | None = None

    @property
    def expands(self) -> bool:
        return self.hidden != self.channels


class InvertedResidual(nn.Module):
    """1x1 expansion, depthwise, gate, linear 1x1 projection; a shortcut where shapes agree."""

    def __init__(self, shape: Bottleneck) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        if shape.expands:
            layers.append(ConvNorm(shape.channels, shape.hidden, 1, activation=shape.activation))
        layers.append(depthwise(shape.hidden, shape.kernel, shape.stride, shape.activation))
        if shape.gate is not None:
            layers.append(SqueezeExcite(shape.hidden, shape.gate))
        layers.append(ConvNorm(shape.hidden, shape.width, 1, activation=LINEAR))
        self.layers = nn.Sequential(*layers)
        self.shortcut = shape.stride == 1 and shape.channels == shape.width

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.shortcut else y


class Classifier(nn.Module):
    """Features, global average pooling, and what makes class scores of the means."""

    def __init__(self, features: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = classifier

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))
        return y


def images(batch: int, image: int) -> tuple[Any, ...]:
    """Example inputs: a batch of square colour images."""
    return (torch.zeros(batch, 3, image, image),)

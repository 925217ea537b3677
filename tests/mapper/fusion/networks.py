"""Small networks whose operators can be fused, as they come from torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from mapper.workload.graph import Workload
from mapper.workload.torch_import.export import lower_traced, trace


class Residual(nn.Module):
    """What a shortcut around some layers computes."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y


class Attention(nn.Module):
    """Products, softmax and context of given queries, keys and values."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v)


def imported(module: nn.Module, *inputs: Tensor) -> Workload:
    return lower_traced(trace(module, inputs), name="test", dtype="int8")


def image(channels: int, height: int, width: int) -> Tensor:
    return torch.zeros(1, channels, height, width)


def conv_conv() -> Workload:
    layers = nn.Conv2d(2, 3, 3, padding=1, bias=False), nn.Conv2d(3, 2, 3, padding=1, bias=False)
    return imported(nn.Sequential(*layers), image(2, 9, 7))


def strided() -> Workload:
    """Strides, no padding, a kernel of one that skips the last row and column."""
    layers = (
        nn.Conv2d(2, 3, 3, stride=2, bias=False),
        nn.Conv2d(3, 3, 1, stride=2, bias=False),
    )
    return imported(nn.Sequential(*layers), image(2, 17, 13))


def inverted_bottleneck() -> Workload:
    return imported(
        Residual(
            nn.Conv2d(2, 6, 1, bias=False),
            nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False),
            nn.Conv2d(6, 2, 1, bias=False),
        ),
        image(2, 7, 6),
    )


def residual() -> Workload:
    return imported(
        Residual(
            nn.Conv2d(2, 2, 3, padding=1, bias=False),
            nn.Conv2d(2, 2, 3, padding=1, bias=False),
        ),
        image(2, 8, 5),
    )


def pooled() -> Workload:
    layers = nn.Conv2d(2, 3, 3, padding=1, bias=False), nn.MaxPool2d(3, 2, 1)
    return imported(nn.Sequential(*layers), image(2, 9, 8))


def attention() -> Workload:
    return imported(Attention(), *(torch.zeros(1, 2, 6, 4) for _ in range(3)))


def mlp() -> Workload:
    layers = nn.Linear(5, 8, bias=False), nn.SiLU(), nn.Linear(8, 4, bias=False)
    return imported(nn.Sequential(*layers), torch.zeros(7, 5))


class Gated(nn.Module):
    """A gated feed-forward behind a normalization: two products of the same rows."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(5)
        self.gate = nn.Linear(5, 6, bias=False)
        self.up = nn.Linear(5, 6, bias=False)
        self.down = nn.Linear(6, 4, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        result: Tensor = self.down(functional.silu(self.gate(y)) * self.up(y))
        return result


def gated() -> Workload:
    return imported(Gated(), torch.zeros(7, 5))


def normalized_residual() -> Workload:
    """What a decoder has between two products."""
    layers = nn.RMSNorm(5), nn.Linear(5, 5, bias=False)
    return imported(Residual(*layers), torch.zeros(6, 5))


class Steps(nn.Module):
    """A linear recurrence written out: decay, input, read-out (as scans step by step)."""

    def forward(self, decay: Tensor, given: Tensor, read: Tensor) -> Tensor:
        state = given[0]
        for step in range(1, given.shape[0]):
            state = state * decay[step] + given[step]
        return (state * read[-1]).sum(1)


def scan() -> Workload:
    return imported(Steps(), *(torch.zeros(3, 4, 5) for _ in range(3)))


NETWORKS: dict[str, Callable[[], Workload]] = {
    "conv conv": conv_conv,
    "strided": strided,
    "inverted bottleneck": inverted_bottleneck,
    "residual": residual,
    "pooled": pooled,
    "attention": attention,
    "mlp": mlp,
    "gated": gated,
    "normalized residual": normalized_residual,
    "scan": scan,
}

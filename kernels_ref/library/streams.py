"""Kernels between the products of convolutional networks, alone: normalization, pooling, sums.

Tensors are ``N x C x H x H`` in bf16, channels last, as torch keeps them in a network; a call reads
what the call before it left in the L2, as there. Sizes are drawn log-uniformly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

PER_KIND = 22
#: Elements of the largest input.
MOST_ELEMENTS = 3e8
LEAST_ELEMENTS = 2e4


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """``R`` and ``stride`` are of pooling windows; ``K`` channels are put after ``C`` others."""

    kind: str
    params: dict[str, int]


def _batch_norm(x: torch.Tensor, vectors: list[torch.Tensor], _: dict[str, int]) -> Any:
    import torch.nn.functional as nn

    mean, variance, scale, shift = vectors
    return nn.batch_norm(x, mean, variance, scale, shift)


def _max_pool(x: torch.Tensor, _: Any, p: dict[str, int]) -> Any:
    import torch.nn.functional as nn

    return nn.max_pool2d(x, p["R"], p["stride"], p["R"] // 2)


def _avg_pool(x: torch.Tensor, _: Any, p: dict[str, int]) -> Any:
    import torch.nn.functional as nn

    return nn.avg_pool2d(x, p["R"], p["stride"], p["R"] // 2)


def _mean(x: torch.Tensor, _: Any, p: dict[str, int]) -> Any:
    import torch.nn.functional as nn

    return nn.adaptive_avg_pool2d(x, 1)


def _clamp(x: torch.Tensor, _: Any, p: dict[str, int]) -> Any:
    return x.clamp(min=0)


def _silu(x: torch.Tensor, _: Any, p: dict[str, int]) -> Any:
    import torch.nn.functional as nn

    return nn.silu(x)


def _add(x: torch.Tensor, _: Any, p: dict[str, int]) -> Any:
    return x + x


def _scale_channels(x: torch.Tensor, vectors: list[torch.Tensor], p: dict[str, int]) -> Any:
    return x * vectors[0].abs().expand(p["N"], p["C"])[:, :, None, None]


def _bias(x: torch.Tensor, vectors: list[torch.Tensor], p: dict[str, int]) -> Any:
    return x.add_(vectors[0][:, None, None])


def _join(x: torch.Tensor, _: Any, p: dict[str, int]) -> Any:
    import torch

    return torch.cat((x, x[:, : p["K"]]), 1)


#: By kind, what is called with the tensor, vectors of its channels and the sizes.
CALLS: dict[str, Callable[[Any, Any, dict[str, int]], Any]] = {
    "batch_norm": _batch_norm,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "mean": _mean,
    "clamp": _clamp,
    "silu": _silu,
    "add": _add,
    "scale": _scale_channels,
    "bias": _bias,
    "join": _join,
}
POOLS = ("max_pool", "avg_pool")


def streams(seed: int) -> list[Stream]:
    rng = np.random.default_rng(seed)
    return [Stream(kind=kind, params=_sizes(rng, kind)) for _ in range(PER_KIND) for kind in CALLS]


def _sizes(rng: np.random.Generator, kind: str) -> dict[str, int]:
    while True:
        n = int(2 ** rng.uniform(0, 8.4))
        c = 8 * int(2 ** rng.uniform(0, 8))
        h = int(2 ** rng.uniform(2.8, 7.2))
        if LEAST_ELEMENTS <= n * c * h * h <= MOST_ELEMENTS:
            break
    sizes = {"N": n, "C": c, "H": h}
    if kind in POOLS:
        window = int(rng.choice([2, 3, 3, 5]))
        return sizes | {"R": window, "stride": int(rng.choice([1, 2, 2]))}
    return sizes | ({"K": 8 * int(rng.integers(1, c // 8 + 1))} if kind == "join" else {})


def prepared(stream: Stream, device: str) -> Callable[[], Any]:
    """The call on random tensors."""
    import torch

    p = stream.params
    x = torch.randn(p["N"], p["C"], p["H"], p["H"], device=device, dtype=torch.bfloat16)
    x = x.to(memory_format=torch.channels_last)
    vectors = [torch.rand(p["C"], device=device).to(torch.bfloat16) + 0.5 for _ in range(4)]
    call = CALLS[stream.kind]
    return lambda: call(x, vectors, p)

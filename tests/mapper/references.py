"""What single operators compute, written down independently of their loop nests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

Array = NDArray[np.float64]
Values = Mapping[str, Array]
Reference = Callable[[Values], Array]


def _torch(values: Values, *names: str) -> list[Tensor]:
    return [torch.from_numpy(values[name]) for name in names]


def convolution(rank: int, **options: int) -> Reference:
    function = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]

    def reference(values: Values) -> Array:
        found: Tensor = function(*_torch(values, "input", "weight"), **options)  # type: ignore[operator]
        return found.numpy()

    return reference


def transposed(rank: int, **options: int) -> Reference:
    """The workload reads the kernel mirrored."""
    names = "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"

    def reference(values: Values) -> Array:
        data, weight = _torch(values, "input", "weight")
        mirrored = weight.flip(tuple(range(2, 2 + rank)))
        found: Tensor = getattr(functional, names[rank - 1])(data, mirrored, **options)
        return found.numpy()

    return reference


def einsum(expression: str) -> Reference:
    def reference(values: Values) -> Array:
        operands = [values[name] for name in sorted(values) if name.startswith("operand")]
        found: Array = np.einsum(expression, *operands)
        return found

    return reference


def _heads(rows: Array, batch: int, heads: int) -> Array:
    """``[batch * tokens, heads * size]`` as ``[batch, heads, tokens, size]``."""
    split = rows.reshape(batch, -1, heads, rows.shape[-1] // heads)
    return split.transpose(0, 2, 1, 3)


def attention(
    batch: int, heads: int, kv_heads: int, window: int = 0, causal: bool = False
) -> Reference:
    def reference(values: Values) -> Array:
        query = _heads(values["query"], batch, heads)
        stored = values["cache"].reshape(-1, 2, values["cache"].shape[-1])
        key, value = (
            np.repeat(_heads(stored[:, part], batch, kv_heads), heads // kv_heads, axis=1)
            for part in (0, 1)
        )
        scores = query @ key.swapaxes(-1, -2)
        at = np.arange(key.shape[2])
        now = at[-query.shape[2] :, None]
        seen = np.ones_like(now - at, dtype=bool)
        if window:
            seen = (at <= now) & (at > now - window)
        if causal:
            seen = at <= now
        weights = _softmax(np.where(seen, scores, -np.inf))
        context = (weights @ value).transpose(0, 2, 1, 3)
        return context.reshape(values["query"].shape)

    return reference


def latent_attention(batch: int, heads: int, value_size: int, absorbed: bool) -> Reference:
    """Contexts of every head; only the first ``value_size`` elements matter."""

    def reference(values: Values) -> Array:
        query, cache = _heads(values["query"], batch, heads), values["cache"]
        if absorbed:
            key = value = cache.reshape(batch, 1, -1, cache.shape[-1])
        else:
            key, value = (_heads(cache[:, part], batch, heads) for part in (0, 1))
        weights = _softmax(query @ key.swapaxes(-1, -2))
        return (weights @ value)[..., :value_size].transpose(0, 2, 1, 3)

    return reference


def block_sparse(block: int, window: int, fixed: int) -> Reference:
    """As dense attention over the pairs that the mask lets see each other.

    A position may be in the window and among the first blocks: the mask decides for each slot.
    """

    def reference(values: Values) -> Array:
        query, key, value = (values[name] for name in ("query", "key", "value"))
        out = np.zeros_like(query)
        for row in range(query.shape[1]):
            own = row // block
            near = range(own - window + 1, own + 1)
            slots = [b * block + at for b in (*near, *range(fixed)) for at in range(block)]
            allowed = values["mask"][own, row % block] > 0
            picked = [p for p, ok in zip(slots, allowed, strict=True) if ok]
            weights = _softmax(np.einsum("hd,hld->hl", query[:, row], key[:, picked]))
            out[:, row] = np.einsum("hl,hld->hd", weights, value[:, picked])
        return out

    return reference


def simplicial(window1: int, window2: int) -> Reference:
    """Sum over pairs of keys, straight from the definition."""

    def reference(values: Values) -> Array:
        query = values["query"]
        out = np.zeros_like(query)
        for row in range(query.shape[1]):
            j = np.arange(max(0, row - window1 + 1), row + 1)
            k = np.arange(max(0, row - window2 + 1), row + 1)
            keys = [values["key1"][:, j], values["key2"][:, k]]
            scores = np.einsum("hd,hjd,hkd->hjk", query[:, row], *keys)
            weights = _softmax(scores.reshape(len(scores), -1)).reshape(scores.shape)
            both = [values["value1"][:, j], values["value2"][:, k]]
            out[:, row] = np.einsum("hjk,hjd,hkd->hd", weights, *both)
        return out

    return reference


def _softmax(scores: Array) -> Array:
    found: Array = torch.softmax(torch.from_numpy(scores), -1).numpy()
    return found


def softmax(values: Values) -> Array:
    return _softmax(values["input"])


def rms_norm(values: Values) -> Array:
    data, gain = _torch(values, "input", "gain")
    return functional.rms_norm(data, data.shape[-1:], gain, eps=1e-12).numpy()


def layer_norm(values: Values) -> Array:
    data, gain, bias = _torch(values, "input", "gain", "bias")
    return functional.layer_norm(data, data.shape[-1:], gain, bias, eps=1e-12).numpy()


def batch_norm(values: Values) -> Array:
    data, gain, bias = _torch(values, "input", "gain", "bias")
    mean, variance = torch.zeros_like(gain), torch.ones_like(gain)
    return functional.batch_norm(data, mean, variance, gain, bias, eps=0.0).numpy()


def group_norm(groups: int) -> Reference:
    def reference(values: Values) -> Array:
        data, gain, bias = _torch(values, "input", "gain", "bias")
        return functional.group_norm(data, groups, gain, bias, eps=1e-12).numpy()

    return reference


def function(name: str, **options: str) -> Reference:
    def reference(values: Values) -> Array:
        found: Tensor = getattr(functional, name)(*_torch(values, "input"), **options)
        return found.numpy()

    return reference


def pool(kind: str, kernel: int, stride: int, pad: int) -> Reference:
    chosen = functional.max_pool2d if kind == "max" else functional.avg_pool2d

    def reference(values: Values) -> Array:
        found: Tensor = chosen(*_torch(values, "input"), kernel, stride, pad)
        return found.numpy()

    return reference


def experts(chosen: int) -> Reference:
    """Each row of the dispatched tokens through its expert, rows in the order of experts."""

    def reference(values: Values) -> Array:
        data, router = _torch(values, "input", "moe.router.weight")
        gate, up, down = _torch(values, *(f"moe.{p}.weight" for p in ("gate", "up", "down")))
        shares = torch.softmax(data @ router.T, -1).topk(chosen).values
        sent = data.repeat_interleave(chosen, 0)
        which = torch.from_numpy(values["experts of rows"]).long()
        inner = functional.silu(torch.einsum("td,tfd->tf", sent, gate[which]))
        inner = inner * torch.einsum("td,tfd->tf", sent, up[which])
        returned = torch.einsum("tf,tdf->td", inner, down[which])
        weighted = returned.reshape(len(data), chosen, -1) * shares[..., None]
        return weighted.sum(1).numpy()

    return reference


def gated_linear_attention(values: Values) -> Array:
    """Token by token."""
    query, key, value, gate = (values[n] for n in ("query", "key", "value", "gate"))
    state, out = values["state"], []
    for t in range(query.shape[1]):
        state = gate[:, t, :, None] * state + key[:, t, :, None] * value[:, t, None, :]
        out.append(np.einsum("hd,hde->he", query[:, t], state))
    return np.stack(out, axis=1)


def state_space(per_group: int) -> Reference:
    """Token by token."""

    def reference(values: Values) -> Array:
        read, write = (np.repeat(values[n], per_group, axis=0) for n in ("C", "B"))
        state, out = values["state"], []
        for t in range(read.shape[1]):
            decay = np.exp(values["decay"][:, t])[:, None, None]
            state = decay * state + write[:, t, :, None] * values["x"][:, t, None, :]
            out.append(np.einsum("hd,hde->he", read[:, t], state))
        return np.stack(out, axis=1)

    return reference

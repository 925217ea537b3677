"""A mixture's experts as a few batched products, in place of the library's loop over them.

Which expert a token goes to depends on data; how many tokens each gets is told (even, skewed or
from a trace), and experts with equally many are one product.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from arch.errors import InputError, Problem

#: Tokens of each expert, given how many tokens there are, experts, and experts per token.
Loads = Callable[[int, int, int], tuple[int, ...]]

#: The name under which transformers knows this.
NAME = "tilewright"

#: What configurations call the number of experts, of which each token chooses some.
_COUNTS = ("n_routed_experts", "num_local_experts", "num_experts")


def check_chosen(config: Any, where: str) -> None:
    """A token cannot choose more experts than there are."""
    chosen = getattr(config, "num_experts_per_tok", None)
    counts = [(name, getattr(config, name, None)) for name in _COUNTS]
    found = next(((n, c) for n, c in counts if isinstance(c, int) and c > 0), None)
    if found is not None and isinstance(chosen, int) and chosen > found[1]:
        name, count = found
        message = f"num_experts_per_tok is {chosen}; allowed at most {count}, which is {name}"
        raise InputError(Problem(message, where=where))


def register(loads: Loads) -> bool:
    """Have the library's experts run so; false if this version of it cannot be told how."""
    try:
        from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
    except ImportError:
        return False

    def forward(module: nn.Module, hidden: Tensor, index: Tensor, weights: Tensor) -> Tensor:
        return _run(module, hidden, index, weights, loads)

    ALL_EXPERTS_FUNCTIONS.register(NAME, forward)
    return True


def _run(module: Any, hidden: Tensor, index: Tensor, weights: Tensor, loads: Loads) -> Tensor:
    """Dispatch, gate and up, activation, down, and the weighted sum."""
    tokens, chosen = index.shape
    width = hidden.shape[-1]
    experts = (module.gate_up_proj if module.has_gate else module.up_proj).shape[0]
    sent = hidden.unsqueeze(1).expand(tokens, chosen, width).reshape(tokens * chosen, width)
    parts = []
    first = row = 0
    for load, members in groupby(loads(tokens, experts, chosen)):
        count = len(list(members))
        if load:
            rows = sent[row : row + count * load].reshape(count, load, width)
            found = _feed_forward(module, rows, slice(first, first + count))
            parts.append(found.reshape(count * load, width))
        first, row = first + count, row + count * load
    returned = torch.cat(parts) if len(parts) > 1 else parts[0]
    shares = weights.reshape(tokens, chosen, 1)
    return (returned.reshape(tokens, chosen, width) * shares).sum(1)


def _feed_forward(module: Any, rows: Tensor, which: slice) -> Tensor:
    """Of the experts ``which``, ``[expert, row, element]``."""
    name = "gate_up_proj" if module.has_gate else "up_proj"
    inner = _linear(module, name, rows, which)
    inner = module._apply_gate(inner) if module.has_gate else module.act_fn(inner)
    return _linear(module, "down_proj", inner, which)


def _linear(module: Any, name: str, rows: Tensor, which: slice) -> Tensor:
    matrices = getattr(module, name)[which]
    if not module.is_transposed:
        matrices = matrices.transpose(1, 2)
    result = torch.bmm(rows, matrices)
    if module.has_bias:
        result = result + getattr(module, f"{name}_bias")[which].unsqueeze(1)
    return result

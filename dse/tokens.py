"""What a language model costs per token: rates that only make sense for one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from arch.spec import PS_PER_S, Architecture, Compute
from mapper.cost import Metrics
from mapper.workload.graph import Workload

#: The family whose metrics have the tensor cores as their only compute unit.
GPU = "gpu"

#: The kind of operator that turns tokens into their embeddings.
LOOKUP = "lookup"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRates:
    """Of one step: ``tokens`` are those whose embeddings are looked up, of all sequences."""

    tokens: int
    tokens_per_s: float
    energy_pj_per_token: float


def tokens_of(workload: Workload) -> int:
    """Tokens that a step computes; 0 for networks that look up no embeddings."""
    for operator in workload.operators:
        if operator.kind == LOOKUP:
            *rows, _ = operator.extents.values()
            return math.prod(rows)
    return 0


def token_rates(workload: Workload, metrics: Metrics) -> TokenRates | None:
    tokens = tokens_of(workload)
    if not tokens:
        return None
    return TokenRates(
        tokens=tokens,
        tokens_per_s=tokens * PS_PER_S / metrics.latency_ps,
        energy_pj_per_token=metrics.energy_pj / tokens,
    )


def flops_utilization(architecture: Architecture, metrics: Metrics) -> float | None:
    """MFU: useful multiply-adds of the tensor cores over those of their peak at the highest clock.

    What a causal mask sets to zero does not count.
    """
    if architecture.family != GPU:
        return None
    units = {c.name for c in architecture.components if isinstance(c, Compute)}
    (tensor_cores,) = units & set(metrics.components)
    return metrics.components[tensor_cores].utilization

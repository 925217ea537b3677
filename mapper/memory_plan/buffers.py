"""The buffers of TensorFlow Lite Micro's arena, in the order in which it lists them."""

from __future__ import annotations

from collections.abc import Sequence

from mapper.memory_plan.layers import Layer
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.plan import Buffer
from mapper.workload.graph import Workload


def tflm_buffers(workload: Workload, layers: Sequence[Layer]) -> list[Buffer]:
    """Those of the file, scratch of kernels included; without a file one per activation."""
    if workload.runtime is None:
        lives = lifetimes(layers)
        return [lives[t.name] for t in workload.tensors if t.name in lives]
    return [
        Buffer(name=b.name, size_bytes=b.size_bytes, first=b.first, last=b.last)
        for b in workload.runtime.buffers
    ]

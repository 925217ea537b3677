"""When two operators are the same work, whatever they and their tensors are called."""

from __future__ import annotations

from collections.abc import Hashable

from mapper.workload.graph import Workload
from mapper.workload.operators import Operator


def same_work(workload: Workload, operator: Operator) -> Hashable:
    """Equal for two operators exactly if any mapping of one costs the same for the other."""
    tensors = [workload.tensor(access.tensor) for access in operator.accesses]
    return (
        operator.operation,
        tuple(operator.extents.items()),
        tuple(access.index for access in operator.accesses),
        tuple((tensor.shape, tensor.dtype, tensor.sparsity) for tensor in tensors),
        operator.accumulator_dtype,
        operator.ops_per_point,
        operator.issues_per_point,
        operator.whole_dims,
        operator.dim_classes,
        operator.side,
    )

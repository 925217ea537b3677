"""The best mapping of every operator of a workload; equal operators are searched once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from arch.spec import Architecture
from mapper.cost import PriceList
from mapper.hierarchy import execution
from mapper.search.exact import SearchResult
from mapper.search.method import EXACT, Method
from mapper.search.methods import map_execution
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator


def map_workload(
    workload: Workload,
    architecture: Architecture,
    price: PriceList,
    objective: str = "edp",
    method: Method = EXACT,
) -> dict[str, SearchResult]:
    """Operator name -> result. ``calls`` of a repeated operator are zero: none were needed.

    Raises ``InfeasibleError`` for the first operator that the hardware cannot run.
    """
    return dict(map_each(workload, architecture, price, objective, method))


def map_each(
    workload: Workload,
    architecture: Architecture,
    price: PriceList,
    objective: str = "edp",
    method: Method = EXACT,
) -> Iterator[tuple[str, SearchResult]]:
    """The results of ``map_workload`` one by one, as they are found."""
    known: dict[Hashable, SearchResult] = {}
    for operator in workload.operators:
        key = same_work(workload, operator)
        if key in known:
            first = known[key]
            mapping = replace(first.mapping, operator=operator.name)
            yield operator.name, replace(first, mapping=mapping, calls=0)
        else:
            run = execution(workload, operator, architecture)
            known[key] = map_execution(method, run, architecture.leakage_w, price, objective)
            yield operator.name, known[key]


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

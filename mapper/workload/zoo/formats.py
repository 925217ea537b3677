"""A network that was traced in one format, with its weights in another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from arch.datatypes import accumulator_of, sparsity
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator, Tensor
from mapper.workload.parameters import Value


def in_formats(workload: Workload, values: Mapping[str, Value], dense: Collection[str]) -> Workload:
    """With ``weights`` and ``sparsity`` as chosen, of matrices that products alone read; all
    others (tables, norms, the output matrix where it is ``dense``) stay as they are."""
    chosen = {key: str(values[key]) for key in ("weights", "sparsity") if key in values}
    same = {"weights": str(values["dtype"]), "sparsity": "1"}
    if same | chosen == same:
        return workload
    matrices = _matrices(workload) - set(dense)
    tensors = {t.name: _stored(t, chosen) if t.name in matrices else t for t in workload.tensors}
    operators = tuple(
        _accumulating(operator, tensors) if _weight(operator) in matrices else operator
        for operator in workload.operators
    )
    return replace(workload, tensors=tuple(tensors.values()), operators=operators)


def _weight(operator: Operator) -> str | None:
    return operator.inputs[1].tensor if operator.operation == "mac" else None


def _matrices(workload: Workload) -> set[str]:
    weights = {tensor.name for tensor in workload.tensors if tensor.kind == "weight"}
    others = {
        access.tensor
        for operator in workload.operators
        for access in operator.inputs
        if access.tensor != _weight(operator)
    }
    return weights.intersection(name for o in workload.operators if (name := _weight(o))) - others


def _stored(tensor: Tensor, chosen: Mapping[str, str]) -> Tensor:
    return replace(
        tensor,
        dtype=chosen.get("weights", tensor.dtype),
        sparsity=sparsity(chosen.get("sparsity", "1")),
    )


def _accumulating(operator: Operator, tensors: Mapping[str, Tensor]) -> Operator:
    formats = (tensors[access.tensor].dtype for access in operator.inputs)
    return replace(operator, accumulator_dtype=accumulator_of(*formats))

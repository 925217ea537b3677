"""Collects tensors and operators of a workload in execution order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from arch.datatypes import Bits, Sparsity, accumulator_of
from mapper.workload.graph import Workload
from mapper.workload.nests import Nest
from mapper.workload.operators import Access, Operator, SideWork, Tensor
from mapper.workload.writing.notation import nest

#: Vector operations that add up many values, and so need a wider accumulator than their result.
SUMMING = ("add", "mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """How operands are stored: activations, weights (and their sparsity), caches of attention."""

    activations: str
    weights: str
    cache: str
    weight_sparsity: Sparsity | None = None
    activation_sparsity: Sparsity | None = None

    @classmethod
    def all_in(cls, dtype: str) -> Formats:
        return cls(activations=dtype, weights=dtype, cache=dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operator before it has tensors. ``whole`` and ``classes`` name its loops."""

    kind: str
    operation: str
    nest: Nest
    ops: Bits = 1
    issues: Bits = 1
    whole: str = ""
    classes: Mapping[str, str] = field(default_factory=dict)
    side: tuple[SideWork, ...] = ()
    dtype: str | None = None
    """Of the result; ``None``: that of activations."""
    causal: bool = False


def product(text: str, sizes: Mapping[str, int], kind: str = "matmul") -> Step:
    """A contraction of two operands."""
    return Step(kind=kind, operation="mac", nest=nest(text, sizes))


def pointwise(kind: str, operation: str, text: str, sizes: Mapping[str, int], ops: int = 1) -> Step:
    """Something done to every element."""
    return Step(kind=kind, operation=operation, nest=nest(text, sizes), ops=ops)


class Builder:
    """A workload that grows. Names of results are names of tensors."""

    def __init__(self, formats: Formats) -> None:
        self.formats = formats
        self.notes: list[str] = []
        self._tensors: dict[str, Tensor] = {}
        self._operators: list[Operator] = []

    def input(self, name: str, shape: Sequence[int], dtype: str | None = None) -> str:
        dense = dtype is not None
        sparsity = None if dense else self.formats.activation_sparsity
        return self._add(name, shape, dtype or self.formats.activations, "input", sparsity)

    def weight(self, name: str, shape: Sequence[int], dtype: str | None = None) -> str:
        """A parameter; one with a ``dtype`` of its own (a norm's gain) is dense."""
        sparsity = None if dtype else self.formats.weight_sparsity
        return self._add(name, shape, dtype or self.formats.weights, "weight", sparsity)

    def gain(self, name: str, shape: Sequence[int]) -> str:
        """A parameter that is never quantized below the activations: norms and biases."""
        return self.weight(name, shape, self.formats.activations)

    def result(self, name: str, shape: Sequence[int], dtype: str | None = None) -> str:
        """A tensor that several operators will fill."""
        return self._add(name, shape, dtype or self.formats.activations, "activation", None)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name].shape

    def tensor(self, name: str) -> Tensor:
        return self._tensors[name]

    def emit(self, name: str, step: Step, inputs: Sequence[str], into: str | None = None) -> str:
        """Adds the operator; its result is ``into``, or a new tensor of just the right shape."""
        target = into or f"{name}.out"
        if into is None:
            self.result(target, _just_right(step.nest), step.dtype)
        self._operators.append(
            Operator(
                name=name,
                kind=step.kind,
                operation=step.operation,
                extents=dict(step.nest.extents),
                inputs=tuple(map(Access, inputs, step.nest.inputs)),
                output=Access(target, step.nest.output),
                accumulator_dtype=self._accumulator(step, inputs, target),
                ops_per_point=step.ops,
                issues_per_point=step.issues,
                whole_dims=frozenset(step.whole.split()),
                dim_classes=tuple(step.classes.items()),
                side=step.side,
                causal=step.causal,
            )
        )
        return target

    def workload(self, name: str, outputs: Sequence[str]) -> Workload:
        """What was built; results that nobody reads further are ``outputs``."""
        for output in outputs:
            if self._tensors[output].kind == "activation":
                self._tensors[output] = replace(self._tensors[output], kind="output")
        return Workload(
            name=name,
            tensors=tuple(self._tensors.values()),
            operators=tuple(self._operators),
            folded=tuple(self.notes),
        )

    def _accumulator(self, step: Step, inputs: Sequence[str], target: str) -> str:
        if step.operation == "mac":
            return accumulator_of(*(self._tensors[name].dtype for name in inputs))
        dtype = self._tensors[target].dtype
        return accumulator_of(dtype) if step.operation in SUMMING else dtype

    def _add(
        self, name: str, shape: Sequence[int], dtype: str, kind: str, sparsity: Sparsity | None
    ) -> str:
        if name in self._tensors:
            raise ValueError(f"two tensors are named {name}")
        self._tensors[name] = Tensor(
            name=name, shape=tuple(shape), dtype=dtype, kind=kind, sparsity=sparsity
        )
        return name


def _just_right(nest: Nest) -> tuple[int, ...]:
    return tuple(
        1 + index.offset + sum(step * (nest.extents[dim] - 1) for dim, step in index.terms)
        for index in nest.output
    )

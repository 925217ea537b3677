"""The backward pass: gradients in the reverse order of the operators that need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from arch.datatypes import accumulator_of
from arch.errors import InputError, Problem
from mapper.workload.graph import Workload, disjoint
from mapper.workload.nests import at
from mapper.workload.operators import Access, Operator, Tensor
from mapper.workload.training.contribution import Contribution, gradient_of
from mapper.workload.training.rules import contributions


class Backward:
    """Gradients of a workload, emitted as soon as all that adds to each is known.

    A gradient that one operator gives, or several in regions of their own, is written in
    place; otherwise each part is written on its own and a sum adds them up.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.tensors: dict[str, Tensor] = {}
        self.operators: list[Operator] = []
        self._parts: dict[str, list[Contribution]] = {}
        self._gradients: dict[str, str] = {}
        self._uses = Counter(
            access.tensor for operator in workload.operators for access in operator.inputs
        )
        self._check_caches()
        for operator in reversed(workload.operators):
            self._step(operator)
        for tensor in workload.tensors:
            if tensor.kind == "weight" and tensor.name in self._parts:
                self._emit(tensor.name)

    def gradient(self, tensor: str) -> str | None:
        """The tensor's gradient, if it has one."""
        return self._gradients.get(tensor)

    def _check_caches(self) -> None:
        inputs = {t.name for t in self.workload.tensors if t.kind == "input"}
        updated = [o.name for o in self.workload.operators if o.output.tensor in inputs]
        if updated:
            message = (
                f"{updated[0]} writes into a cache of earlier tokens, whose gradients belong to "
                "earlier steps: a training step sees all its tokens at once; train on "
                "phase=prefill (without ctx), with seq as long as the context"
            )
            raise InputError(Problem(message, where="training"))

    def _step(self, operator: Operator) -> None:
        written = operator.output.tensor
        if written not in self._gradients:
            self._emit(written)
        gradient = self._gradients.get(written)
        if gradient is None:
            return
        wanted = {
            access.tensor
            for access in operator.inputs
            if self.workload.tensor(access.tensor).kind in ("weight", "activation", "output")
        }
        for tensor, part in contributions(self.workload, operator, gradient, wanted):
            self._parts.setdefault(tensor, []).append(part)
        for tensor in wanted:
            only_use = self._uses[tensor] == 1
            if only_use and self.workload.tensor(tensor).kind == "weight":
                self._emit(tensor)

    def _emit(self, name: str) -> None:
        """Everything that adds to the gradient of the tensor, and their sum."""
        tensor = self.workload.tensor(name)
        parts = self._parts.pop(name, [])
        seed = [Contribution(same_as=self._seed(tensor))] if tensor.kind == "output" else []
        parts = [*seed, *parts]
        if len(parts) == 1 and parts[0].same_as:
            self._gradients[name] = parts[0].same_as
        elif parts and _apart(parts):
            target = self._tensor(tensor, gradient_of(name))
            self.operators += [o for part in parts for o in part.into(target)]
            self._gradients[name] = target
        elif parts:
            self._gradients[name] = self._sum(tensor, parts)

    def _seed(self, tensor: Tensor) -> str:
        """The gradient of the loss, which comes from outside."""
        name = gradient_of(f"loss.{tensor.name}")
        self.tensors[name] = replace(tensor, name=name, kind="input")
        return name

    def _sum(self, tensor: Tensor, parts: Iterable[Contribution]) -> str:
        names = []
        for number, part in enumerate(parts):
            if part.same_as:
                names.append(part.same_as)
                continue
            name = self._tensor(tensor, f"{gradient_of(tensor.name)}{number}")
            self.operators += part.into(name)
            names.append(name)
        target = self._tensor(tensor, gradient_of(tensor.name))
        dims = [f"a{axis}" for axis in range(len(tensor.shape))]
        self.operators.append(
            Operator(
                name=f"{tensor.name}.grad_sum",
                kind="add",
                operation="add",
                extents=dict(zip(dims, tensor.shape, strict=True)),
                inputs=tuple(Access(name, at(*dims)) for name in names),
                output=Access(target, at(*dims)),
                accumulator_dtype=accumulator_of(tensor.dtype),
                ops_per_point=max(1, len(names) - 1),
            )
        )
        return target

    def _tensor(self, tensor: Tensor, name: str) -> str:
        self.tensors[name] = Tensor(
            name=name, shape=tensor.shape, dtype=tensor.dtype, kind="activation"
        )
        return name


def _apart(parts: Iterable[Contribution]) -> bool:
    """Whether all are operators that write regions of their own."""
    parts = list(parts)
    if any(part.same_as for part in parts):
        return False
    groups = [part.operators for part in parts]
    return all(
        disjoint(one, other)
        for left, right in combinations(groups, 2)
        for one in left
        for other in right
    )

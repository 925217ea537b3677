"""A workload: tensors and the operators that connect them, as an acyclic graph."""

from __future__ import annotations

from dataclasses import dataclass

from mapper.workload.operators import Operator, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Operators in execution order (each tensor is produced before it is read).

    ``folded`` lists what the importer merged into a neighbour and why (batch normalization
    into a convolution, a view that moves no data), so that nothing disappears silently.
    """

    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    folded: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_order(self)

    def tensor(self, name: str) -> Tensor:
        return next(t for t in self.tensors if t.name == name)

    @property
    def macs(self) -> int:
        return sum(op.macs for op in self.operators)

    @property
    def parameters(self) -> int:
        """Elements of all weight tensors."""
        return sum(t.elements for t in self.tensors if t.kind == "weight")

"""One operator's part of one tensor's gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mapper.workload.operators import Access, Operator

#: Stands for the gradient's tensor until it is known whether others add to it.
PENDING = "<gradient>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """Operators that write it (to ``PENDING``), or the gradient that it simply is (``same_as``)."""

    operators: tuple[Operator, ...] = ()
    same_as: str = ""

    def into(self, tensor: str) -> tuple[Operator, ...]:
        return tuple(
            replace(operator, output=Access(tensor, operator.output.index))
            for operator in self.operators
        )


def gradient_of(tensor: str) -> str:
    return f"{tensor}.grad"

"""An operator with its program, and what makes two operators equal."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field

from arch.spec import Architecture
from mapper.cost import Mappings
from mapper.hierarchy import Execution, execution
from mapper.lower import lower_execution
from mapper.mapping import Mapping
from mapper.program import Program, Work
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from mapper.workload.same_work import same_work


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """One operator on its compute unit. ``work`` is the program's total, per component.

    Of a fused group, ``execution`` is the first operator's and ``others`` are those of the rest;
    ``loaded`` is what must be read of tensors that the group keeps on the chip.
    """

    execution: Execution
    program: Program
    work: dict[str, Work]
    others: tuple[Execution, ...] = ()
    loaded: MappingABC[str, Work] = field(default_factory=dict)

    @property
    def executions(self) -> tuple[Execution, ...]:
        return (self.execution, *self.others)


def lower_operator(
    workload: Workload, operator: Operator, mapping: Mapping, architecture: Architecture
) -> Lowered:
    run = execution(workload, operator, architecture)
    program = lower_execution(run, mapping)
    return Lowered(execution=run, program=program, work=program.total_work())


def operators_with_mappings(
    workload: Workload, mappings: Mappings
) -> Iterator[tuple[Operator, Mapping, Hashable]]:
    """Operators in order, each with its mapping and a signature; equal ones cost the same."""
    missing = [o.name for o in workload.operators if o.name not in mappings]
    if missing:
        raise ValueError(f"{workload.name}: no mapping for {', '.join(missing)}")
    for operator in workload.operators:
        mapping = mappings[operator.name]
        yield operator, mapping, (same_work(workload, operator), mapping.choices)
